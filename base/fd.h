// Fd: owns one file descriptor.
// Promises   closes it once; every descriptor made here is close-on-exec.
// Threads    a plain value: one thread at a time.
#pragma once

#include <utility>

#include "base/clock.h"
#include "base/result.h"

namespace keel {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int number) : number_(number) {}
  Fd(Fd&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Fd() { Close(); }

  bool valid() const { return number_ >= 0; }
  int number() const { return number_; }
  void Close();
  // Gives the number up; it stays open.
  int Release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

struct PipeEnds {
  Fd read;
  Fd write;
};
Result<PipeEnds> MakePipe();

// Waits until `fd` has something to say: data, its end, or (a pidfd) the process's death. False
// when the deadline, on the real clock, came first; one in the past only looks.
bool WaitReadable(const Fd& fd, TimePoint deadline);

}  // namespace keel
