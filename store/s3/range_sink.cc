// Compares places in the object, not in the answer.
#include "store/s3/range_sink.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "store/s3/answers.h"

namespace keel {
namespace {

// A server that ignores ranges sends more than was asked for. Up to here it is let finish, so that
// the connection can be kept.
constexpr uint64_t kTooMuchBytes = uint64_t{1} << 20;

}  // namespace

bool RangeSink::Take(const HttpAnswer& answer, std::span<const std::byte> piece) {
  if (answer.bytes == 0) {
    const auto range = ParseContentRange(answer.Header("content-range"));
    first_ = range ? range->first : 0;
    filled_ = 0;
  }
  const uint64_t begin = first_ + answer.bytes;
  const uint64_t end = begin + piece.size();
  const uint64_t wanted_end = offset_ + into_.size();
  const uint64_t from = std::max(begin, offset_);
  const uint64_t to = std::min(end, wanted_end);
  // Bytes arrive in order, so those before `from` are there if `filled_` reaches so far.
  if (from < to && from - offset_ == filled_) {
    std::memcpy(into_.data() + filled_, piece.data() + (from - begin), to - from);
    filled_ += to - from;
  }
  return end < wanted_end + kTooMuchBytes;
}

std::string RangeSink::Flaw(const HttpAnswer& answer) const {
  const std::string header = answer.Header("content-range");
  const auto range = ParseContentRange(header);
  if (answer.status == 206 && !range) {
    return "its answer to a range does not say what part it is (" + Shown(header) + ")";
  }
  if (range && range->first > offset_) {
    return "it sent the part from byte " + std::to_string(range->first) + " on, asked for " +
           std::to_string(offset_);
  }
  const std::string length = answer.Header("content-length");
  const Result<int64_t> whole = ParseInteger(length);
  uint64_t total = range ? range->total : answer.bytes;
  if (!range && whole.ok()) total = static_cast<uint64_t>(std::max<int64_t>(*whole, 0));
  const uint64_t left = total > offset_ ? total - offset_ : 0;
  const uint64_t expected = std::min<uint64_t>(left, into_.size());
  // A try without a body never came to Take().
  const size_t filled = answer.bytes == 0 ? 0 : filled_;
  if (filled == expected) return "";
  return "it sent " + std::to_string(filled) + " of " + std::to_string(expected) + " bytes";
}

}  // namespace keel
