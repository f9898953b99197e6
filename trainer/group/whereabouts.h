// Whereabouts: where a worker is in its epoch: its position, what it does there, and which other
// worker it waits for, if any. The supervisor is told, so that if a group stands still, the worker
// that holds up the others can be named.
// Promises   positions of an epoch only rise. A worker is said to wait for another one only while
//            its training thread can do nothing else.
// Does not   find out anything by itself: the code that works or waits tells it.
// Threads    BeginEpoch(), At(), Tick() and Place(): the training thread, which is the one that
//            called BeginEpoch(); all else: any.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "elastic/protocol/position.h"

namespace keel {

// The order in which an epoch goes through them at one step. A step ends with kApplying; what
// follows belongs to the next one.
enum class Phase { kMeeting, kEvaluating, kSaving, kComputing, kVoting, kApplying, kParked };
std::string PhaseText(Phase phase);

class Whereabouts {
 public:
  struct Now {
    Position position;
    Activity activity;
    bool lacks = false;   // the whole state is not there yet
  };
  // `on_move`: told by At() and Tick(), on the training thread.
  explicit Whereabouts(std::function<void(const Now& now)> on_move = {})
      : on_move_(std::move(on_move)) {}

  void BeginEpoch(int64_t step, bool lacks = false);
  // A position that falls is a bug of ours. A call with the present step and phase counts as a
  // tick.
  void At(int64_t step, Phase phase, bool lacks = false);
  // Something long makes progress in the same phase.
  void Tick();
  // What the training thread does; told together with the phase: "lane 3, forward".
  void Place(std::string place);

  Now Look() const;
  // For who tells it every kTellPause while nothing else is told, where the program may compile
  // what it computes for the first time (torch.compile): while it is in its own code there, each
  // such look counts as a tick, for kStartLimit in all.
  Now LookAgain();

  // What another thread does; told while the training thread has handed over to it.
  void SidePlace(std::string place);

  // As long as this lives, its thread waits for that worker (a rank, or Activity::kAnybody).
  class Waiting {
   public:
    Waiting(Whereabouts& of, int rank) : of_(of), number_(of.Begin(rank)) {}
    ~Waiting() { of_.End(number_); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    Whereabouts& of_;
    const uint64_t number_;
  };
  // As long as this lives, the training thread waits for other threads of this worker, and thus for
  // whichever workers these wait for.
  class HandedOver {
   public:
    explicit HandedOver(Whereabouts& of) : of_(of) { of.HandOver(true); }
    ~HandedOver() { of_.HandOver(false); }
    HandedOver(const HandedOver&) = delete;
    HandedOver& operator=(const HandedOver&) = delete;

   private:
    Whereabouts& of_;
  };

 private:
  struct Wait {
    uint64_t number = 0;
    bool is_training = false;   // the training thread itself waits
    int rank = 0;
  };
  uint64_t Begin(int rank);
  void End(uint64_t number);
  void HandOver(bool over);
  Now LookLocked() const;

  const std::function<void(const Now& now)> on_move_;
  mutable std::mutex mutex_;
  std::thread::id training_;   // all below: guarded by mutex_
  Position position_;
  Phase phase_ = Phase::kMeeting;
  bool lacks_ = false;
  std::string place_;
  std::string side_place_;
  std::vector<Wait> waits_;    // in the order they began
  uint64_t next_wait_ = 0;
  int handed_over_ = 0;
  // Of this process, in all its epochs: the phases that it has gone through, and those ticks.
  std::set<Phase> known_;
  int64_t first_ticks_ = 0;
};

}  // namespace keel
