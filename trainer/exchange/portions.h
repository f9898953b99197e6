// Portions: how much of a state is sent in each step to members that catch up, so that nobody who
// computes waits for it.
// Promises   parts are sent whole and in order, at least one in each step, and all of them within
//            kStepsUsual steps; within kStepsMax where more at a time is late. All members that are
//            told the same times decide the same.
// Does not   move anything (trainer/loop/catch_up.h).
// Threads    one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace keel {

class Portions {
 public:
  static constexpr uint64_t kStepsUsual = 32;
  static constexpr uint64_t kStepsMax = 512;

  // Bytes of each part, and those that the first step sends, if parts are small.
  Portions(std::vector<uint64_t> parts, uint64_t first);

  // The parts [begin, end) that the next step sends; empty once all were sent.
  struct Range {
    size_t begin = 0;
    size_t end = 0;
    bool empty() const { return begin == end; }
  };
  Range Next() const { return From(next_); }
  // That step was made: the busiest sender took `sent_ns`, while the busiest member computed for
  // `computed_ns`. It sends twice as much, or half, where that leaves time, or took too long.
  void Note(int64_t sent_ns, int64_t computed_ns);
  // Whether it will take more than the usual steps, and is known how many: what it sent last was
  // not late, or it cannot send less.
  bool is_slow() const;
  // In how many steps what is left is sent, if these go on as they are.
  uint64_t steps_left() const;
  // What is left is sent without steps between.
  void TakeAll() {
    next_ = parts_.size();
    sent_ = bytes_;
  }

  // How long what is left would take, by how long the last portions took.
  int64_t rest_ns() const;

  bool done() const { return next_ == parts_.size(); }
  uint64_t bytes_sent() const { return sent_; }
  uint64_t bytes() const { return bytes_; }

 private:
  Range From(size_t begin) const;
  uint64_t LeastOver(uint64_t steps) const { return bytes_ / steps + 1; }
  uint64_t BytesOf(const Range& range) const;

  const std::vector<uint64_t> parts_;
  const uint64_t bytes_;
  uint64_t least_;          // of a step; less where that was late
  uint64_t wanted_;         // of the next step, if parts were small
  bool was_late_ = false;   // the last one
  uint64_t steps_ = 0;      // made
  uint64_t sent_ = 0;
  uint64_t timed_bytes_ = 0;   // of the last portion that took any time
  int64_t timed_ns_ = 0;
  size_t next_ = 0;
};

}  // namespace keel
