// Results lie one after the other: the loss, the buffers' digest, then that of each gradient.
#include "trainer/loop/lane_result.h"

#include <cstring>

#include "base/text.h"

namespace keel {
namespace {

constexpr size_t kNamedMost = 3;

size_t BytesOf(size_t parameters) { return sizeof(float) + (1 + parameters) * sizeof(Digest); }

void Append(const void* from, size_t count, std::vector<std::byte>& to) {
  const auto* const bytes = static_cast<const std::byte*>(from);
  to.insert(to.end(), bytes, bytes + count);
}

}  // namespace

Digest LaneResult::All() const { return DigestOf(EncodeResults({*this})); }

std::string DifferencesOf(const LaneResult& a, const LaneResult& b,
                          const std::vector<std::string>& names) {
  std::vector<std::string> found;
  if (std::memcmp(&a.loss, &b.loss, sizeof(float)) != 0) found.emplace_back("the loss");
  if (a.buffers != b.buffers) found.emplace_back("the buffers");
  for (size_t i = 0; i < std::min(a.gradients.size(), b.gradients.size()); ++i) {
    if (a.gradients[i] == b.gradients[i]) continue;
    found.push_back("the gradient of " +
                    (i < names.size() ? names[i] : "parameter " + std::to_string(i)));
  }
  if (found.size() <= kNamedMost) return JoinList(found, ", ");
  const std::string more = std::to_string(found.size() - kNamedMost);
  found.resize(kNamedMost);
  return JoinList(found, ", ") + " and " + more + " more";
}

std::vector<std::byte> EncodeResults(const std::vector<LaneResult>& results) {
  std::vector<std::byte> bytes;
  for (const LaneResult& result : results) {
    Append(&result.loss, sizeof(float), bytes);
    Append(&result.buffers.bytes, sizeof(Digest), bytes);
    for (const Digest& digest : result.gradients) Append(&digest.bytes, sizeof(Digest), bytes);
  }
  return bytes;
}

Result<std::vector<LaneResult>> DecodeResults(std::span<const std::byte> bytes,
                                              size_t parameters) {
  const size_t each = BytesOf(parameters);
  if (bytes.size() % each != 0) {
    return Error{Code::kCorrupt, std::to_string(bytes.size()) + " bytes are no results of lanes " +
                                     "with " + std::to_string(parameters) + " gradients"};
  }
  std::vector<LaneResult> results;
  const auto take = [&bytes](void* to, size_t count) {
    std::memcpy(to, bytes.data(), count);
    bytes = bytes.subspan(count);
  };
  while (!bytes.empty()) {
    LaneResult result;
    take(&result.loss, sizeof(float));
    take(&result.buffers.bytes, sizeof(Digest));
    result.gradients.resize(parameters);
    for (Digest& digest : result.gradients) take(&digest.bytes, sizeof(Digest));
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace keel
