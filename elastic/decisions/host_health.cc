// What comes of a check of this machine, before the process of a worker is made.
#include "elastic/decisions/host_machine.h"
#include "elastic/protocol/exit_codes.h"

namespace keel {

// Its time begins with its process.
void HostMachine::OnFit(int index, TimePoint now) {
  record_.health = kHealthGood;
  if (mode_ == Mode::kExited || !HasProcess(RecordOf(index).state)) return;
  Worker& worker = WorkerOf(index);
  worker.started = now;
  if (worker.limit && !IsSignalled(seats_[index].phase)) {
    worker.limit.reset();
    LimitStart(index);
  }
  Settle(now);
}

// What its other workers hold is good, as far as anybody knows, so they leave as if a signal had
// asked them to.
void HostMachine::OnUnfit(const std::string& reason, int code, TimePoint now) {
  if (code == kExitShunned) record_.health = reason;   // else it says nothing of the machine
  if (mode_ == Mode::kFencing) {
    EndJob(code, reason, now);
  } else if (mode_ == Mode::kMember) {
    own_code_ = code;
    LeaveAlone(reason, config_.save_limit, now);
  }
  Settle(now);
}

void HostMachine::OnNotStarted(int index, TimePoint now) {
  if (mode_ == Mode::kExited) return;
  End(index, SeatEvent::kEndedStopped, "was told to end before it was started",
      &HostBlame::not_started, now);
  RecordOf(index).worker.clear();   // nobody has been there
  Settle(now);
}

}  // namespace keel
