// Reads the two forms that torchrun knows; local ranks may have more than one digit here.
#include "elastic/workers/stream_map.h"

#include <limits>
#include <optional>
#include <string_view>

#include "base/text.h"

namespace keel {
namespace {

// "0" to "3": bit 0 is stdout, bit 1 is stderr.
std::optional<StreamChoice> ReadChoice(std::string_view text) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '3') return std::nullopt;
  const int bits = text[0] - '0';
  return StreamChoice{(bits & 1) != 0, (bits & 2) != 0};
}

bool ReadPair(std::string_view text, StreamMap& map) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  const Result<int64_t> local_rank = ParseInteger(text.substr(0, colon));
  const std::optional<StreamChoice> choice = ReadChoice(text.substr(colon + 1));
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  if (!local_rank.ok() || *local_rank < 0 || *local_rank > kMost || !choice) return false;
  return map.some.emplace(static_cast<int>(*local_rank), *choice).second;
}

}  // namespace

StreamChoice StreamMap::Of(int local_rank) const {
  const auto found = some.find(local_rank);
  return found == some.end() ? all : found->second;
}

Result<StreamMap> ParseStreamMap(const std::string& text) {
  StreamMap map;
  if (const auto choice = ReadChoice(text)) {
    map.all = *choice;
    return map;
  }
  for (std::string_view rest = text;;) {
    const size_t comma = rest.find(',');
    if (!ReadPair(rest.substr(0, comma), map)) {
      return Error{Code::kInvalid, Shown(text) + " must be 0 (neither), 1 (stdout), 2 (stderr) or "
                                   "3 (both), or such a number for some local ranks, each "
                                   "of them once: 0:1,1:2"};
    }
    if (comma == std::string_view::npos) return map;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace keel
