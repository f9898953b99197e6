// TimeLedger: how the time of a host's seats was spent: how much went into steps that counted, and
// what took the rest.
// Promises   all parts together are the time since the beginning, once for each seat. Steps count
//            as far as their worker told of them (`figures` on the control link): for one that is
//            killed, up to the last half second is missing. Those that a job makes again, since it
//            went on from an older state, count no more: each like the seat's mean one.
// Does not   know why a step was lost, or what a foreign worker does: inside an epoch, everything
//            but steps and evaluation is one part.
// Threads    one.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json_fwd.h"
#include "elastic/protocol/control_link.h"
#include "elastic/protocol/records.h"

namespace keel {

// Worker-time, by what it was spent on.
struct WorkerTime {
  bool knows_steps = false;   // some worker told figures
  Duration steps{0};          // that counted
  Duration evaluating{0};
  Duration beside_steps{0};   // else inside an epoch: meeting, redone steps, the last save;
                              // if no figures are told: all of an epoch
  Duration between_epochs{0}; // ready or parked
  Duration starting{0};
  Duration stopping{0};
  Duration no_worker{0};      // none was there, or it had finished

  Duration Total() const;
  // The part of all time that went into steps; 0 before any time has passed.
  double Goodput() const;
};

struct TimePart {
  std::string_view name;     // in metrics and JSON
  std::string_view words;
  Duration WorkerTime::*part;
};
inline constexpr std::array kTimeParts = {
    TimePart{"steps", "steps", &WorkerTime::steps},
    TimePart{"evaluating", "evaluation", &WorkerTime::evaluating},
    TimePart{"beside_steps", "in epochs, outside of steps", &WorkerTime::beside_steps},
    TimePart{"between_epochs", "between epochs", &WorkerTime::between_epochs},
    TimePart{"starting", "starting", &WorkerTime::starting},
    TimePart{"stopping", "stopping", &WorkerTime::stopping},
    TimePart{"no_worker", "without a worker", &WorkerTime::no_worker}};

// "goodput 0.93: of 24.1 s of worker time here 22.4 s went into steps that counted; the rest:
// starting 4.1%, between epochs 1.2%", the largest part first.
std::string WorkerTimeText(const WorkerTime& time);
// Seconds by the parts' names, and the goodput; null if unknown.
Json WorkerTimeJson(const WorkerTime& time);

class TimeLedger {
 public:
  TimeLedger(size_t seats, TimePoint now);

  // To be called when seats change: they are like this from now on.
  void OnSeats(const std::vector<SeatRecord>& seats, TimePoint now);
  // Figures of the worker that now sits there.
  void OnFigures(size_t index, const FiguresMessage& figures);
  // Time stops here: later sums are as of now.
  void OnEnd(TimePoint now);

  WorkerTime Sum(TimePoint now) const;

 private:
  enum Bucket { kInside, kBetween, kStarting, kStopping, kEmpty, kBuckets };
  struct Seat {
    TimePoint since;                       // when it entered its present state
    SeatState state = SeatState::kEmpty;
    std::string worker;
    std::array<Duration, kBuckets> spent{};
    bool told = false;
    Duration steps{0}, evaluating{0};              // of its former workers
    Duration worker_steps{0}, worker_evaluating{0};   // of the present one
    int64_t made = 0, worker_made = 0;             // steps, likewise
    bool worker_tells = false;                     // the present one has made some
    int64_t furthest = 0;                          // step that one of them was at
    int64_t lost = 0;                              // of the steps made
    Duration lost_time{0};
  };
  static Bucket BucketOf(SeatState state);
  static void Lose(Seat& seat, int64_t steps);
  static void Note(Seat& seat, TimePoint now);

  std::vector<Seat> seats_;
  bool over_ = false;
};

}  // namespace keel
