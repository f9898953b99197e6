// Doubles and halves what a step sends, by how its sending compares with its computing.
#include "trainer/exchange/portions.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace keel {
namespace {

// Of the time that is computed, in percent: below the first there is room for twice as much, and
// above the second the exchange of gradients would wait.
constexpr int64_t kRoom = 35;
constexpr int64_t kLate = 80;
// A second, where nothing is known.
constexpr uint64_t kUnknownRate = 50'000'000;

}  // namespace

Portions::Portions(std::vector<uint64_t> parts, uint64_t first)
    : parts_(std::move(parts)),
      bytes_(std::accumulate(parts_.begin(), parts_.end(), uint64_t{0})),
      least_(LeastOver(kStepsUsual)),
      wanted_(std::max(first, least_)) {}

Portions::Range Portions::From(size_t begin) const {
  Range range{begin, begin};
  uint64_t bytes = 0;
  while (range.end < parts_.size() && (bytes == 0 || bytes + parts_[range.end] <= wanted_ ||
                                       bytes < least_)) {
    bytes += parts_[range.end++];
  }
  return range;
}

uint64_t Portions::BytesOf(const Range& range) const {
  return std::accumulate(parts_.begin() + static_cast<std::ptrdiff_t>(range.begin),
                         parts_.begin() + static_cast<std::ptrdiff_t>(range.end), uint64_t{0});
}

int64_t Portions::rest_ns() const {
  const double left = static_cast<double>(bytes_ - sent_);
  const double a_byte = timed_bytes_ > 0 ? static_cast<double>(timed_ns_) /
                                               static_cast<double>(timed_bytes_)
                                         : 1e9 / static_cast<double>(kUnknownRate);
  return static_cast<int64_t>(left * a_byte);
}

bool Portions::is_slow() const {
  const bool known = !was_late_ || least_ == LeastOver(kStepsMax);
  return known && steps_ + steps_left() > kStepsUsual;
}

uint64_t Portions::steps_left() const {
  uint64_t steps = 0;
  for (size_t next = next_; next < parts_.size(); ++steps) next = From(next).end;
  return steps;
}

void Portions::Note(int64_t sent_ns, int64_t computed_ns) {
  const Range made = Next();
  const uint64_t bytes = BytesOf(made);
  sent_ += bytes;
  next_ = made.end;
  if (sent_ns > 0) {
    timed_bytes_ = bytes;
    timed_ns_ = sent_ns;
  }
  ++steps_;
  const auto share = [&](int64_t percent) { return computed_ns / 100 * percent; };
  was_late_ = sent_ns > share(kLate);
  if (was_late_) {
    // Where a large part was late, it is not known whether that little is.
    if (wanted_ == least_ && bytes / 2 <= least_) {
      least_ = std::max(least_ / 2, LeastOver(kStepsMax));
    }
    wanted_ = std::max(least_, std::min(wanted_, bytes) / 2);
  } else if (sent_ns < share(kRoom) && bytes * 2 >= wanted_) {
    wanted_ = std::min(wanted_ * 2, bytes_);
  }
}

}  // namespace keel
