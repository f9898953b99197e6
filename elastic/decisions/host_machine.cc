// The supervisor's decisions about its epochs and about itself. Its seats are in host_seats.cc.
#include "elastic/decisions/host_machine.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "elastic/protocol/exit_codes.h"

namespace keel {
namespace {

// A timer that fires this late means that the supervisor was suspended (SIGSTOP, a debugger, a
// paused VM).
constexpr Duration kLate = std::chrono::seconds(1);

int64_t Millis(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

}  // namespace

HostMachine::HostMachine(HostConfig config, Random random, TimePoint now)
    : config_(std::move(config)), random_(std::move(random)), born_(now),
      outside_since_(now), seats_(config_.seats) {
  record_.incarnation = config_.incarnation;
  record_.host = config_.host;
  record_.address = config_.address;
  record_.machine = config_.machine;
  record_.order = config_.order;
  record_.forgiven = config_.forgiven;
  record_.health = config_.health;
  record_.role = config_.role;
  record_.seats.resize(config_.seats);
  published_ = record_;
  Do(Publish{true}, "to register");
}

void HostMachine::OnMemberEvent(const MemberEvent& event, TimePoint now) {
  if (mode_ == Mode::kExited) return;
  std::visit([&](const auto& one) { On(one, now); }, event);
  Settle(now);
}

void HostMachine::OnStopAsked(const std::string& reason, Duration deadline, TimePoint now,
                       int signal) {
  if (mode_ == Mode::kFencing) {   // its workers are being killed: nothing is left to be saved
    EndJob(kExitUnsaved, reason + ", after this host was taken for dead", now);
  } else if (mode_ == Mode::kMember) {
    stop_signal_ = signal;
    LeaveAlone(reason, deadline, now);
  }
  Settle(now);
}

// The epoch is broken first: its workers wait for that store, or for others that do, so they could
// never agree on a step to stop at.
void HostMachine::OnNoStore(const std::string& reason, TimePoint now) {
  if (mode_ != Mode::kMember && mode_ != Mode::kFencing) return;
  if (!epoch_over_) LeaveEpoch(reason, now);
  EndJob(kExitFailed, reason, now);
  Settle(now);
}

void HostMachine::OnSaveAsked(const std::string& reason, TimePoint now) {
  for (int index = 0; index < config_.seats; ++index) {
    if (RecordOf(index).state != SeatState::kRunning || !WorkerOf(index).link) continue;
    Do(SendToWorker{index, SaveMessage{reason}}, reason);
  }
  Settle(now);
}

std::vector<HostAction> HostMachine::TakeActions() { return std::exchange(actions_, {}); }

void HostMachine::On(const KindKnown& event, TimePoint) {
  if (event.kind == JobKind::kInPlace) kind_ = event.kind;
}

void HostMachine::On(const EpochSeen& event, TimePoint now) { TakeEpoch(event.epoch, now); }

void HostMachine::On(const BreakSeen& event, TimePoint now) {
  const BreakRecord& record = event.record;
  if (!epoch_ || epoch_->id != record.id || epoch_over_) return;
  reported_ = record.id;
  for (int index = 0; index < config_.seats; ++index) {
    const bool named = std::count(record.ranks.begin(), record.ranks.end(), RecordOf(index).rank);
    if (!named || PlaceOf(index) == nullptr || !HasProcess(RecordOf(index).state)) continue;
    if (WorkerOf(index).has_finished) continue;   // the kernel takes its time
    Do(SignalWorker{index, 0, true}, record.reason);
    Kill(index, record.reason, true, now);
  }
  LeaveEpoch(record.reason, now);
}

void HostMachine::On(const JoiningSeen& event, TimePoint) {
  joining_ = event.epoch;
  for (int index = 0; index < config_.seats; ++index) TellJoin(index);
}

void HostMachine::On(const StopSeen& event, TimePoint now) {
  job_stops_ = true;
  if (mode_ != Mode::kMember) return;
  Leave(event.stop.reason, std::chrono::milliseconds(event.stop.deadline_ms), now);
}

// --- Epochs ---

const EpochWorker* HostMachine::PlaceOf(int index) const {
  if (epoch_over_ || !epoch_) return nullptr;
  for (const EpochWorker& worker : epoch_->workers) {
    if (worker.slot == epoch_slot_ && worker.index == index) {
      const bool its_own = worker.worker.empty() || worker.worker == record_.seats[index].worker;
      return its_own ? &worker : nullptr;
    }
  }
  return nullptr;
}

// The board names an epoch. It is the one that this host is in, if a new store took that up, or the
// next one.
void HostMachine::TakeEpoch(EpochRecord epoch, TimePoint now) {
  newest_read_ = {epoch.number, epoch.id};
  // Then it was the end of an earlier run of this job, or of other hosts.
  if (record_.finished_id != epoch.id) NoteFinished({});
  const bool mine = slot_ && epoch.FindHost(*slot_, config_.incarnation) != nullptr;
  const bool same = epoch_ && epoch_->id == epoch.id;
  if (!epoch_over_ && !(same && mine)) {
    LeaveEpoch("epoch " + std::to_string(epoch.number) + " has been formed without this host", now);
  }
  record_.epoch.first = epoch.first;
  if (!mine) return NoteNamed(epoch);
  const bool promised = epoch.number <= record_.outside;
  const bool was_over = epoch_over_;
  epoch_ = std::move(epoch);
  epoch_slot_ = *slot_;
  if (same) return;
  epoch_over_ = false;
  // Before its first epoch a host spends restarts of its own. From now on the coordinator counts
  // the job's (PROTOCOL.md section 9), and the host's own deaths must not stop it from starting.
  if (record_.epoch.number == 0) deaths_.clear();
  record_.epoch = ToldBy(config_.incarnation, *epoch_);
  NoteTried(*epoch_);
  entered_ = now;
  KEEL_CHECK(was_over || !AnyProcess() || in_place(), "a foreign epoch was entered beside another");
  bool all = mode_ == Mode::kMember && !promised;
  for (const EpochWorker& place : epoch_->workers) {
    if (!all) break;
    if (place.slot == epoch_slot_) all = TakeSeat(place, now);
  }
  if (all) return;
  Report(BreakCause::kNotEntered,
         config_.host + " cannot enter epoch " + std::to_string(epoch_->number), now);
}

bool HostMachine::TakeSeat(const EpochWorker& place, TimePoint now) {
  if (place.index >= config_.seats) return false;
  SeatRecord& record = RecordOf(place.index);
  Seat& seat = seats_[place.index];
  if (place.worker.empty()) {
    if (!MayMove(place.index, SeatEvent::kAwaited)) return false;   // it has a process already
    record.epoch = epoch_->number;
    record.rank = place.rank;
    seat.start_at = now + RestartDelay(seat.failures_in_a_row);
    return true;
  }
  const bool can = NextStep(seat.phase, SeatEvent::kEntered).has_value();
  if (record.worker != place.worker || !can) return false;
  record.epoch = epoch_->number;
  record.rank = place.rank;
  Enter(place.index, now);
  return true;
}

void HostMachine::Enter(int index, TimePoint now) {
  KEEL_CHECK(epoch_->number > record_.outside, "entering an epoch after promising not to");
  MustMove(index, SeatEvent::kEntered);
  RecordOf(index).position = {};   // the worker has told no position of this epoch yet
  RecordOf(index).activity = {};
  NoteHeard(index, now);
  Worker& worker = WorkerOf(index);
  if (worker.link) worker.link->told_join = false;
  worker.limit.reset();
  Do(EnterEpoch{index, RecordOf(index).rank, *epoch_}, epoch_->reason);
  TellJoin(index);
}

void HostMachine::LeaveEpoch(const std::string& reason, TimePoint now) {
  epoch_over_ = true;
  outside_since_ = now;
  for (int index = 0; index < config_.seats; ++index) BreakSeat(index, reason, now);
}

// The epoch cannot go on, so a worker that is inside it parks or ends.
void HostMachine::BreakSeat(int index, const std::string& reason, TimePoint now) {
  seats_[index].start_at.reset();
  if (RecordOf(index).state != SeatState::kRunning) return;
  // Nobody can hasten that, and its work is done, whatever its group does now.
  if (WorkerOf(index).has_finished) return;
  if (WorkerOf(index).link) {
    Do(SendToWorker{index, BreakMessage{epoch_->number, reason}}, reason);
    // One that has failed breaks the epoch before its process has ended, which may take a while.
    Limit(index, now + config_.park_limit,
          "did not park within " + DurationText(config_.park_limit) +
              " of the break; if its steps take longer, raise --park-limit",
          WorkerOf(index).has_failed);
  } else if (in_place()) {   // it was started for this epoch, and has not said hello yet
    MustMove(index, SeatEvent::kNotEntered);
    LimitStart(index);
  } else {
    Terminate(index, reason, now);
  }
}

void HostMachine::Report(BreakCause cause, const std::string& reason, TimePoint now) {
  if (reported_ != epoch_->id) {
    reported_ = epoch_->id;
    BreakRecord record{epoch_->number, epoch_->id, cause, config_.incarnation, reason, {}};
    Do(ReportBreak{std::move(record)}, reason);
  }
  if (!epoch_over_) LeaveEpoch(reason, now);
}

// No worker is inside the epoch, and none is on its way into it.
bool HostMachine::AllOutside() const {
  for (int index = 0; index < config_.seats; ++index) {
    const SeatRecord& record = record_.seats[index];
    if (record.state == SeatState::kRunning || record.state == SeatState::kStopping) return false;
    const bool on_its_way = record.state == SeatState::kStarting ||
                            record.state == SeatState::kReady ||
                            (record.state == SeatState::kEmpty && seats_[index].start_at);
    if (on_its_way && record.epoch == record_.epoch.number && !epoch_over_) return false;
  }
  return true;
}

// --- The host as a whole ---

void HostMachine::Leave(const std::string& reason, Duration deadline, TimePoint now) {
  mode_ = Mode::kLeaving;
  record_.state = MemberState::kLeaving;
  record_.reason = reason;
  record_.deadline_ms = Millis(deadline);
  leave_by_ = now + deadline + config_.close_limit;
  StopSeats(reason, deadline, now);
}

// The others go on, unless nobody can take the role of this host.
void HostMachine::LeaveAlone(const std::string& reason, Duration deadline, TimePoint now) {
  job_stops_ = coordinates_ && !has_heirs_;
  Leave(reason, deadline, now);
}

void HostMachine::StopSeats(const std::string& reason, Duration deadline, TimePoint now) {
  for (int index = 0; index < config_.seats; ++index) {
    if (stopped_outside_.empty() && IsOnItsWayIn(index)) {
      stopped_outside_ = RankText(index) + " was stopped before it entered the epoch: " + reason;
    }
    StopSeat(index, deadline, reason, now);
  }
}

// Workers inside an epoch cannot agree on a step, nor even meet, with one that was stopped before
// it entered. So the epoch breaks, and each of them saves what it holds. This is asked again and
// again, because the host may hear from others that workers are in place only after the stop.
void HostMachine::BreakIfStoppedOutside(TimePoint now) {
  if (epoch_over_) stopped_outside_.clear();
  if (!in_place() || stopped_outside_.empty()) return;
  Report(BreakCause::kLeft, std::exchange(stopped_outside_, {}), now);
}

// A worker that was told to stop agrees with its group on a step. While the store is away nobody
// can tell this host that a member is gone, and a machine that loses its power closes no
// connection. So a worker that does not move meanwhile must not wait for the vote until its time is
// up.
TimePoint HostMachine::AloneAt(int index) const {
  const std::optional<Worker>& worker = seats_[index].worker;
  const bool inside =
      PlaceOf(index) != nullptr && record_.seats[index].state == SeatState::kRunning;
  if (!inside || !worker->stop || worker->leaving_step) return kNever;
  const StopWish& stop = *worker->stop;
  return std::max(store_grace_,
                  std::max(stop.moved, contact_.value_or(stop.moved)) + stop.alone_after);
}

// After the break the workers of this host park, and each saves what it holds.
void HostMachine::LeaveAloneIfCutOff(TimePoint now) {
  for (int index = 0; index < config_.seats; ++index) {
    if (now < AloneAt(index)) continue;
    return LeaveEpoch(RankText(index) + " was told to stop and has not moved for " +
                          DurationText(now - WorkerOf(index).stop->moved) +
                          ", and the store cannot be reached",
                      now);
  }
}

bool HostMachine::IsOnItsWayIn(int index) const {
  const SeatRecord& record = record_.seats[index];
  if (PlaceOf(index) == nullptr || record.epoch != epoch_->number) return false;
  switch (record.state) {
    case SeatState::kEmpty:
    case SeatState::kStarting:
    case SeatState::kReady: return true;
    case SeatState::kRunning: return !seats_[index].worker->link;
    default: return false;
  }
}

void HostMachine::EndJob(int code, const std::string& reason, TimePoint now) {
  if (mode_ == Mode::kEnding) return;
  const bool stopping = mode_ == Mode::kLeaving;
  mode_ = Mode::kEnding;
  exit_code_ = own_code_.value_or(code);
  record_.state = MemberState::kLeaving;
  record_.reason = reason;
  record_.deadline_ms = Millis(config_.save_limit);
  record_.refused = code == kExitRefused || code == kExitShunned;
  for (int index = 0; index < config_.seats; ++index) {
    seats_[index].start_at.reset();
    if (code == kExitFinished) Terminate(index, reason, now);
  }
  if (code != kExitFinished && !stopping) StopSeats(reason, config_.save_limit, now);
}

// Whether the job has made no step that could be lost.
bool HostMachine::NothingMade(const SeatRecord& seat) const {
  if (config_.program_says_hello && !in_place()) return true;   // no worker has said hello yet
  const bool first = !epoch_ || epoch_->number == epoch_->first;
  return in_place() && first && seat.position.step <= 0;
}

// Workers that fail before any epoch had them, beside a job that runs, are the affair of this host:
// it may have another program or version. It leaves, and the job does not notice.
void HostMachine::GiveUpOutside(TimePoint now) {
  if (mode_ != Mode::kMember || !in_place() || record_.epoch.number > 0 || AnyProcess()) return;
  const auto failed = [&](const SeatRecord& seat) { return seat.state == SeatState::kDead; };
  if (!std::all_of(record_.seats.begin(), record_.seats.end(), failed)) return;
  const RestartDecision restart = DecideRestart(deaths_, config_.restarts, now);
  if (restart.go_on || restart.again != kNever) return;
  EndJob(kExitFailed,
         "the workers of " + config_.host + " failed before they could join (" + restart.reason +
             "): the last one " + record_.seats.back().ended,
         now);
}

// A host whose workers were all told to stop, one by one, has no worker left, so it leaves.
void HostMachine::LeaveIfAllLeft(TimePoint now) {
  const bool all_left =
      std::all_of(record_.seats.begin(), record_.seats.end(),
                  [](const SeatRecord& seat) { return seat.state == SeatState::kLeft; });
  if (mode_ != Mode::kMember || !in_place() || !all_left) return;
  LeaveAlone("all workers of " + config_.host + " were told to stop", config_.save_limit, now);
}

// It may have left while it still received what the others have.
bool HostMachine::HasNothingToSave(int index) const {
  const SeatRecord& seat = record_.seats[index];
  const bool others_have_it = !job_stops_ && seats_[index].left_without_state;
  return seat.worker.empty() || NothingMade(seat) || others_have_it;
}

// A host that leaves alone finds its exit code by what its own workers did, for no coordinator
// tells it one.
int HostMachine::LeaveCode() const {
  if (own_code_) return *own_code_;
  for (int index = 0; index < config_.seats; ++index) {
    const SeatRecord& seat = record_.seats[index];
    const bool good = seat.state == SeatState::kFinished ||
                      (seat.state == SeatState::kLeft && (seat.saved || !in_place()));
    if (!good && !HasNothingToSave(index)) return kExitUnsaved;
  }
  return kExitStopped;
}

void HostMachine::Exit(int code, const std::string& why) {
  mode_ = Mode::kExited;
  record_.state = MemberState::kLeft;
  published_ = record_;
  Do(Publish{true}, why);
  Do(ExitHost{code}, why);
}

// A supervisor that acts long after a limit, or after the time of its next wake-up, was suspended.
// What the store and its workers said meanwhile is yet to be read, so limits that passed in that
// time are extended by a moment.
void HostMachine::Forgive(TimePoint now) {
  const bool was_stopped = now > NextWake() && now - NextWake() > kLate;
  const auto is_stale = [&](TimePoint limit) {
    return now >= limit && (was_stopped || now - limit > kLate);
  };
  bool seems_cut_off = is_stale(StoreDeadline());
  for (int index = 0; index < config_.seats; ++index) seems_cut_off |= is_stale(AloneAt(index));
  if (seems_cut_off) store_grace_ = now + kLate;
  for (Seat& seat : seats_) {
    if (!seat.worker) continue;
    std::optional<KillLimit>& limit = seat.worker->limit;
    if (limit && is_stale(limit->at)) limit->at = now + kLate;
    // Or the worker would seem silent, although its messages wait to be read.
    if (was_stopped && seat.worker->link) seat.worker->link->heard = now;
  }
}

// Why the job would have ended although the store had stayed: a worker here that is dead spent more
// than the last restart of the job, and the store was there still. One that died afterwards may
// have died because the others were gone. However many die in an epoch, they spend one restart.
std::optional<std::string> HostMachine::LastFailure() const {
  const int64_t spent = int64_t{record_.epoch.restarts_recent} + 1;
  if (!contact_ || record_.epoch.number == 0 || spent <= config_.restarts.restarts_max) return {};
  for (size_t index = 0; index < record_.seats.size(); ++index) {
    const SeatRecord& seat = record_.seats[index];
    const std::optional<TimePoint>& died = seats_[index].died;
    const bool is_dead = seat.state == SeatState::kDead && seat.epoch == record_.epoch.number;
    if (!is_dead || !died || *died > *contact_) continue;
    return RankText(static_cast<int>(index)) + " " + seat.ended + " (" + std::to_string(spent) +
           (spent == 1 ? " failure, " : " failures, ") +
           std::to_string(config_.restarts.restarts_max) + " allowed), and then the store was lost";
  }
  return {};
}

void HostMachine::CheckStore(TimePoint now) {
  if (now < StoreDeadline()) return;
  const std::string lost = "the store could not be reached for " +
                           DurationText(contact_ ? config_.store_limit : config_.join_limit);
  if (mode_ == Mode::kLeaving) return EndJob(LeaveCode(), record_.reason + ", and " + lost, now);
  const bool finished =
      std::all_of(record_.seats.begin(), record_.seats.end(),
                  [](const SeatRecord& seat) { return seat.state == SeatState::kFinished; });
  const std::optional<std::string> failure = finished ? std::nullopt : LastFailure();
  if (failure) return EndJob(kExitFailed, *failure, now);
  EndJob(finished ? kExitFinished : kExitQuorumLost, "timed out: " + lost, now);
}

void HostMachine::OnTime(TimePoint now) {
  if (mode_ == Mode::kExited) return;
  Forgive(now);
  CheckStore(now);
  Settle(now);
}

TimePoint HostMachine::NextWake() const {
  if (mode_ == Mode::kExited) return kNever;
  TimePoint wake = StoreDeadline();
  if (mode_ == Mode::kLeaving && !AnyProcess()) wake = std::min(wake, leave_by_);
  if (AnyInPlace()) wake = std::min(wake, alive_at_);
  for (const Seat& seat : seats_) {
    if (seat.start_at) wake = std::min(wake, *seat.start_at);
    if (seat.worker && seat.worker->limit) wake = std::min(wake, seat.worker->limit->at);
  }
  for (int index = 0; index < config_.seats; ++index) {
    wake = std::min({wake, AloneAt(index), SilentAt(index)});
  }
  return wake;
}

// Runs after every input: does what is due, promises what can be promised, and publishes the record
// if it has changed.
void HostMachine::Settle(TimePoint now) {
  Forgive(now);
  BreakIfStoppedOutside(now);
  LeaveAloneIfCutOff(now);
  for (int index = 0; index < config_.seats; ++index) CheckSeat(index, now);
  NoteSilence(now);
  TellAlive(now);
  if (record_.outside < record_.epoch.number && AllOutside()) {
    record_.outside = record_.epoch.number;
  }
  const Duration window = config_.restarts.window;
  if (window > Duration(0) && now - entered_ >= window) record_.epoch.restarts_recent = 0;
  LeaveIfAllLeft(now);
  GiveUpOutside(now);
  SettleMode(now);
  record_.kind = kind_;
  if (record_ == published_) return;
  const bool hurry = WithoutStandings(record_) != WithoutStandings(published_);
  published_ = record_;
  Do(Publish{hurry}, "its record has changed");
}

void HostMachine::SettleMode(TimePoint now) {
  if (AnyProcess()) return;
  switch (mode_) {
    case Mode::kMember:
    case Mode::kExited: return;
    case Mode::kFencing: return BeginAnew();
    case Mode::kEnding: return Exit(exit_code_, record_.reason);
    case Mode::kLeaving:
      if (!job_stops_ || !slot_ || now >= leave_by_) Exit(LeaveCode(), record_.reason);
      return;
  }
}

}  // namespace keel
