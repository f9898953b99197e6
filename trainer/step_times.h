// StepTimes: where the time of a step went, on one worker.
// Promises   parts do not overlap; their sum is the step, except for what is too short to be
//            measured.
// Does not   see what happens beside the computation: `exchange` is the wait that backward did not
//            hide, `data` the wait that loading ahead did not hide.
// Threads    a plain value; a StepWatch belongs to one thread.
#pragma once

#include <array>
#include <string_view>

#include "base/clock.h"

namespace keel {

struct StepTimes {
  Duration data{0};
  Duration forward{0};
  Duration backward{0};
  Duration exchange{0};
  Duration vote{0};
  Duration optimizer{0};
  Duration recheck{0};
  Duration save{0};
  bool operator==(const StepTimes&) const = default;

  // The time that a worker spends on its own lanes, whatever other workers there are.
  Duration Own() const { return data + forward + backward; }
  Duration Total() const { return Own() + exchange + vote + optimizer + recheck + save; }
  StepTimes& operator+=(const StepTimes& other);
};

struct StepPart {
  std::string_view name;   // in logs
  Duration StepTimes::*part;
};
inline constexpr std::array kStepParts = {
    StepPart{"data", &StepTimes::data},         StepPart{"forward", &StepTimes::forward},
    StepPart{"backward", &StepTimes::backward}, StepPart{"exchange", &StepTimes::exchange},
    StepPart{"vote", &StepTimes::vote},         StepPart{"optimizer", &StepTimes::optimizer},
    StepPart{"recheck", &StepTimes::recheck},
    StepPart{"save", &StepTimes::save}};

// Divides the time that passes among the parts.
class StepWatch {
 public:
  explicit StepWatch(StepTimes& times, Clock& clock = RealClock())
      : times_(times), clock_(clock), last_(clock.Monotonic()) {}

  // The time since the last call, or since the watch began, belongs to this part.
  void Add(Duration StepTimes::*part) {
    const TimePoint now = clock_.Monotonic();
    times_.*part += now - last_;
    last_ = now;
  }

 private:
  StepTimes& times_;
  Clock& clock_;
  TimePoint last_;
};

}  // namespace keel
