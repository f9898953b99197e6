// Adds up losses, and reports them rarely.
#include "elastic/report/lost_output.h"

#include <algorithm>
#include <optional>

namespace keel {
namespace {

constexpr Duration kPauseFirst = std::chrono::seconds(10);
constexpr Duration kPauseLast = std::chrono::minutes(10);

}  // namespace

void LostOutput::Note(const std::string& where, uint64_t bytes, const std::string& why,
                      TimePoint now) {
  std::optional<LostBytes> told;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[where];
    const bool is_first = entry.lost.bytes == 0;
    entry.lost.where = where;
    entry.lost.bytes += bytes;
    entry.lost.why = why;
    if (is_first || now >= entry.tell_at) {
      entry.pause = std::clamp(2 * entry.pause, kPauseFirst, kPauseLast);
      entry.tell_at = now + entry.pause;
      told = entry.lost;
    }
  }
  if (told && tell_) tell_(*told);
}

std::vector<LostBytes> LostOutput::All() const {
  const std::lock_guard lock(mutex_);
  std::vector<LostBytes> all;
  for (const auto& [where, entry] : entries_) all.push_back(entry.lost);
  return all;
}

}  // namespace keel
