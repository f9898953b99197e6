// Schedule: the learning rate as a pure function of the step.
// Written as text, so that it can stand on a command line and in a manifest:
//   constant                                      the base rate throughout
//   constant:warmup=100                           any kind may rise from 0 first, linearly
//   cosine:warmup=100,total=1000,min=0.1          then falls along half a cosine to min * base
//   linear:warmup=100,total=1000,min=0            then falls on a straight line to min * base
//   step:every=30,factor=0.1                      times factor after every 30 steps (after warmup)
// Promises   the same step gives the same bits on every machine: no function of libm is used, whose
//            last bit depends on the host. Step w-1 of a warm-up of w steps is the first at the
//            full rate, so no step has rate 0 unless min is 0. After `total` it stays at min.
//            Text() reads back as the same schedule.
// Threads    a plain value: const methods from any thread.
// Errors     kInvalid, quoting the text and the part that is wrong, and saying what may stand
//            there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace keel {

class Schedule {
 public:
  Schedule() = default;  // constant
  static Result<Schedule> Parse(std::string_view text);

  // What the base rate is multiplied with at `step`, the first being 0.
  double Factor(uint64_t step) const;
  std::string Text() const;

 private:
  enum class Kind { kConstant, kCosine, kLinear, kStep };
  friend class ScheduleParser;

  double Fall(uint64_t step) const;

  Kind kind_ = Kind::kConstant;
  uint64_t warmup_ = 0;
  uint64_t total_ = 0;   // cosine and linear; counts the warm-up
  uint64_t every_ = 0;   // step
  double min_ = 0;
  double factor_ = 0;
};

}  // namespace keel
