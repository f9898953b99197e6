// What a host does that the job goes on without, though nobody asked it to leave: it was taken for
// dead, refused, or its machine is not to be trusted.
#include "elastic/decisions/host_machine.h"
#include "elastic/protocol/exit_codes.h"

namespace keel {

void HostMachine::On(const Buried& event, TimePoint now) {
  slot_.reset();
  switch (event.tombstone.why) {
    case Tombstone::Why::kRefused: return EndJob(kExitRefused, event.tombstone.reason, now);
    case Tombstone::Why::kShunned: return EndJob(kExitShunned, event.tombstone.reason, now);
    case Tombstone::Why::kExpired: return Fence(event.tombstone.reason, now);
  }
}

// It leaves as if a signal had asked it to: its other workers have what the job needs. But nothing
// is saved where bits may be wrong.
void HostMachine::On(const ShunnedSeen& event, TimePoint now) {
  const ShunnedHost* const own = event.record.FindLauncher(config_.incarnation);
  if (own == nullptr) return;
  if (mode_ == Mode::kFencing) return EndJob(kExitShunned, own->reason, now);
  if (mode_ != Mode::kMember) return;
  own_code_ = kExitShunned;
  if (record_.unfit.empty()) return LeaveAlone(own->reason, config_.save_limit, now);
  LeaveAlone(own->reason, Duration(0), now);
  KillSeats(own->reason, now);
}

// The other hosts go on without this one, so none of its workers may make another step.
void HostMachine::Fence(const std::string& reason, TimePoint now) {
  epoch_over_ = true;
  outside_since_ = now;
  if (mode_ == Mode::kMember) mode_ = Mode::kFencing;
  KillSeats(reason, now);
}

void HostMachine::OnKillAsked(const std::string& reason, TimePoint now) {
  if (mode_ == Mode::kExited) return;
  // One that the kernel is ending with 0 has finished, whatever is sent to it now.
  KillSeats(reason, now, /*spares_finished=*/true);
  Settle(now);
}

void HostMachine::KillSeats(const std::string& reason, TimePoint now, bool spares_finished) {
  for (int index = 0; index < config_.seats; ++index) {
    seats_[index].start_at.reset();
    if (!HasProcess(RecordOf(index).state)) continue;
    if (spares_finished && WorkerOf(index).has_finished) continue;
    // One that has said that it failed has died of its own, though it takes a moment to end.
    Kill(index, reason, WorkerOf(index).has_failed, now);
  }
}

void HostMachine::BeginAnew() {
  mode_ = Mode::kMember;
  epoch_.reset();
  deaths_.clear();
  for (int index = 0; index < config_.seats; ++index) {
    record_.seats[index] = {};
    MustMove(index, SeatEvent::kRegisteredAnew);
  }
  // Restarts stay spent, and the job has begun, also where nobody is left who tells of the epoch
  // that counted them.
  const ToldEpoch former = std::exchange(record_.epoch, {});
  record_.epoch.first = former.first;
  record_.epoch.restarts = former.restarts;
  record_.epoch.restarts_recent = former.restarts_recent;
  record_.outside = 0;
  record_.deaths = record_.incidents = 0;
  Do(RegisterAnew{},
     "this host was taken for dead; its workers have ended, and it registers again");
}

}  // namespace keel
