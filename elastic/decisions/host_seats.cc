// The supervisor's seats: what becomes of a worker from its start to its end.
#include <signal.h>

#include <algorithm>

#include "base/text.h"
#include "elastic/decisions/hangs.h"
#include "elastic/decisions/host_machine.h"
#include "elastic/protocol/differing_words.h"
#include "elastic/protocol/exit_codes.h"
#include "elastic/protocol/limits.h"
#include "store/lease/lease_times.h"

namespace keel {
namespace {

// For its supervisor to say anything to a worker of an epoch that has no quorum.
constexpr Duration kLeaseQuietLimit = std::chrono::seconds(2);
static_assert(kLeaseFormLimit + kLeaseQuietLimit <= kLeaseStillLimit);

constexpr const char* kNotSaved = "did not save before the stop's deadline: give it more time with "
                                  "--shutdown-timeout";

// Tells the user what to do about a worker that speaks another version of the link.
std::string OtherLinkText(int64_t version) {
  return "speaks version " + std::to_string(version) + " of the link to keelrun, which speaks " +
         "version " + std::to_string(kControlVersion) +
         ": rebuild the program with the same release of Evenkeel as keelrun, or start it with the "
         "keelrun of its own release";
}

// Tells of a link that broke although the worker had not said goodbye.
std::string BrokenLinkText(const Error& why) {
  const std::string text = "broke its control link: " + why.message;
  if (why.code != Code::kPeerLost) {
    return text + " (nothing but Evenkeel may write to the descriptor in " + kControlFdVariable +
           ")";
  }
  return text + " without a goodbye (the program must leave the descriptor in " +
         kControlFdVariable + " open), and ran on for more than " + DurationText(kLinkGrace);
}

}  // namespace

bool HostMachine::AnyProcess() const {
  return std::any_of(record_.seats.begin(), record_.seats.end(),
                     [](const SeatRecord& seat) { return HasProcess(seat.state); });
}

HostMachine::Worker& HostMachine::WorkerOf(int index) {
  KEEL_CHECK(seats_[index].worker, "seat " << index << " has no worker");
  return *seats_[index].worker;
}

bool HostMachine::MayMove(int index, SeatEvent event) {
  Seat& seat = seats_[index];
  SeatRecord& record = RecordOf(index);
  const std::optional<SeatStep> step = NextStep(seat.phase, event);
  if (!step) return false;
  seat.phase = step->to;
  record.state = StateOf(step->to);
  if (!HasProcess(record.state)) {
    seat.worker.reset();
    record.lacks = true;
  } else if (!seat.worker) {
    seat.worker = Worker{};
    record.lacks = true;   // until it tells
    seat.left_without_state = false;
  }
  return true;
}

void HostMachine::MustMove(int index, SeatEvent event) {
  KEEL_CHECK(MayMove(index, event), "seat " << index << " was " << SeatEventName(event)
                                            << " while " << SeatPhaseName(seats_[index].phase));
}

std::string HostMachine::RankText(int index) const {
  const SeatRecord& record = record_.seats[index];
  const std::string name = record.rank < 0 ? "seat " + std::to_string(index)
                                           : "rank " + std::to_string(record.rank);
  return name + " on " + config_.host;
}

void HostMachine::LimitStart(int index) {
  Limit(index, WorkerOf(index).started + config_.start_limit,
        "was not ready within " + DurationText(config_.start_limit) +
            " of its start; if it needs longer, raise --start-limit",
        true);
}

void HostMachine::Limit(int index, TimePoint at, const std::string& what, bool is_fault) {
  std::optional<KillLimit>& limit = WorkerOf(index).limit;
  if (limit && limit->at <= at) return;
  limit = KillLimit{at, RankText(index) + " " + what, is_fault};
}

// --- What workers say ---

void HostMachine::OnWorkerMessage(int index, const WorkerMessage& message, TimePoint now) {
  if (mode_ == Mode::kExited || !HasProcess(RecordOf(index).state)) return;
  NoteHeard(index, now);
  std::visit([&](const auto& one) { On(index, one, now); }, message);
  Settle(now);
}

void HostMachine::On(int index, const HelloMessage& message, TimePoint now) {
  Worker& worker = WorkerOf(index);
  if (worker.link || !NextStep(seats_[index].phase, SeatEvent::kHello)) return;
  const bool other_program = message.version != kControlVersion;
  const bool other_numerics =
      !record_.fingerprint.empty() && record_.fingerprint != message.fingerprint;
  if (other_program || other_numerics) {
    const std::string why =
        other_program ? OtherLinkText(message.version)
                      : "has another numerics fingerprint: " +
                            Shown(DifferingWords(message.fingerprint, record_.fingerprint)) +
                            ", where another worker here has " +
                            Shown(DifferingWords(record_.fingerprint, message.fingerprint)) +
                            ": give all workers of a host the same program, device and options";
    Do(SendToWorker{index, RefusedMessage{why}}, RankText(index) + " " + why);
    Kill(index, RankText(index) + " " + why, true, now);
    // The worker's successor would be refused for the same reason.
    return EndJob(kExitRefused, RankText(index) + " " + why, now);
  }
  MustMove(index, SeatEvent::kHello);
  worker.link = Link{now};
  kind_ = JobKind::kInPlace;
  record_.fingerprint = message.fingerprint;
  LimitStart(index);
  alive_at_ = now;
}

void HostMachine::On(int index, const ReadyMessage& message, TimePoint now) {
  SeatRecord& record = RecordOf(index);
  if (!MayMove(index, SeatEvent::kReady)) return;
  WorkerOf(index).limit.reset();
  record.position.step = message.step;
  record.lacks = message.step < 0;
  if (mode_ == Mode::kLeaving || mode_ == Mode::kEnding) {
    return Terminate(index, record_.reason, now);
  }
  const EpochWorker* const place = PlaceOf(index);
  if (place != nullptr && record.epoch == epoch_->number) Enter(index, now);
}

void HostMachine::On(int index, const ParkedMessage& message, TimePoint now) {
  SeatRecord& record = RecordOf(index);
  if (message.epoch != record.epoch || !MayMove(index, SeatEvent::kParked)) return;
  record.position.step = message.step;
  record.lacks = message.step < 0;
  Worker& worker = WorkerOf(index);
  // A worker that has said goodbye must still end within the limit that began then.
  if (!worker.said_bye) {
    worker.limit.reset();
    if (worker.stop) Limit(index, worker.stop->save_by, kNotSaved, false);
  }
  if (!message.at_boundary && !epoch_over_) {
    Report(BreakCause::kReported, RankText(index) + " saw the group break", now);
  }
}

void HostMachine::On(int index, const AtMessage& message, TimePoint now) {
  MustMove(index, SeatEvent::kAt);
  SeatRecord& record = RecordOf(index);
  const SeatRecord before = record;
  record.position = message.position;
  record.activity = message.activity;
  record.lacks = message.lacks;
  // A worker that stands still tells the same position again and again.
  std::optional<StopWish>& stop = WorkerOf(index).stop;
  if (stop && HasMoved(before, record)) stop->moved = now;
}

// Nothing is decided by figures; some are told to all hosts.
void HostMachine::On(int index, const FiguresMessage& message, TimePoint) {
  WorkerChecks& told = WorkerOf(index).checks;
  WorkerChecks& all = record_.blame.checks;
  all.rechecks += message.checks.rechecks - told.rechecks;
  all.differences += message.checks.differences - told.differences;
  all.slow_steps += message.checks.slow_steps - told.slow_steps;
  told = message.checks;
}

void HostMachine::On(int index, const SavedMessage& message, TimePoint) {
  MustMove(index, SeatEvent::kSaved);
  std::optional<int64_t>& saved = WorkerOf(index).saved_step;
  saved = std::max(saved.value_or(kNoStep), message.step);
  NoteSaved(index);
}

void HostMachine::On(int index, const LeavingMessage& message, TimePoint now) {
  WorkerOf(index).leaving_step = message.step;
  seats_[index].left_without_state = message.step < 0;
  NoteSaved(index);
  const bool was_inside = RecordOf(index).state == SeatState::kRunning;
  const bool alone = mode_ == Mode::kLeaving && !job_stops_;
  MustMove(index, alone ? SeatEvent::kLeavingAlone : SeatEvent::kLeaving);
  if (alone && was_inside) LetOthersGoOn(index, now);
}

// A process that holds much memory may take long to end. Its group has stopped together, so the
// other hosts need not wait for that. This is for a host that leaves alone: if its host stayed, the
// next epoch would count on this worker.
void HostMachine::LetOthersGoOn(int index, TimePoint now) {
  const SeatRecord& record = RecordOf(index);
  // A break before the last worker of this host has saved would take that save from it.
  if (PlaceOf(index) == nullptr || record.epoch != epoch_->number || !AllOutside()) return;
  Report(BreakCause::kLeft, RankText(index) + " leaves: " + record_.reason, now);
}

// A checkpoint of an earlier step is not the one that the stop asked for, and a worker that leaves
// without any state (step -1) has saved none.
void HostMachine::NoteSaved(int index) {
  const Worker& worker = WorkerOf(index);
  const int64_t saved = worker.saved_step.value_or(kNoStep);
  RecordOf(index).saved = saved >= 0 && worker.leaving_step && saved >= *worker.leaving_step;
}

void HostMachine::On(int index, const ByeMessage& message, TimePoint now) {
  RecordOf(index).ended = message.message;
  WorkerOf(index).said_bye = true;
  WorkerOf(index).has_failed = message.code == kExitFailed || message.code == kExitShunned;
  if (message.code == kExitShunned) record_.unfit = message.message;
  // A worker that says goodbye and stays is at fault: if that did not count, its successors could
  // do the same for ever. While the host stops it does not matter, since nothing is started again.
  Limit(index, now + config_.shutdown_limit,
        "said goodbye, but did not end within " + DurationText(config_.shutdown_limit),
        mode_ == Mode::kMember);
  // The worker will enter no epoch. If it still counted as ready, the next one would wait for it.
  MayMove(index, mode_ == Mode::kMember ? SeatEvent::kBye : SeatEvent::kByeInStop);
  // Another attempt would be refused for the same reason, so the whole host ends.
  if (message.code == kExitRefused) EndJob(kExitRefused, message.message, now);
}

void HostMachine::OnLinkBroken(int index, const Error& why, TimePoint now) {
  if (mode_ == Mode::kExited || !HasProcess(RecordOf(index).state)) return;
  // A worker that said goodbye closes its link and may then take long to end. kLinkGrace is for one
  // that closes its link without a word.
  const Worker& worker = WorkerOf(index);
  const bool was_expected = worker.said_bye && why.code == Code::kPeerLost;
  if (!was_expected && (worker.link || why.code != Code::kPeerLost)) {
    Limit(index, now + kLinkGrace, BrokenLinkText(why), true);
  }
  Settle(now);
}

// --- Its end ---

void HostMachine::OnStartFailed(int index, const std::string& reason, TimePoint now) {
  if (mode_ == Mode::kExited) return;
  End(index, SeatEvent::kEndedDead, "could not be started: " + reason, &HostBlame::not_started,
      now);
  Settle(now);
}

void HostMachine::OnWorkerEnding(int index, const ExitStatus& status, TimePoint now) {
  const SeatRecord& record = RecordOf(index);
  if (mode_ == Mode::kExited || !HasProcess(record.state) || !in_place()) return;
  Worker& worker = WorkerOf(index);
  // A signal cannot hasten it, and a worker that has ended well is not at fault for the time that
  // the kernel takes.
  if (status.ok() && !IsSignalled(seats_[index].phase)) {
    worker.limit.reset();
    worker.has_finished = true;
  }
  if (record.state != SeatState::kRunning) return;
  const bool in_epoch = PlaceOf(index) != nullptr && record.epoch == epoch_->number;
  // Who was told to end, or said goodbye, ends as it should.
  if (!in_epoch || status.ok() || worker.said_bye || IsSignalled(seats_[index].phase)) return;
  worker.has_failed = true;
  Report(BreakCause::kDied, RankText(index) + " " + status.Text(), now);
  Settle(now);
}

std::string HostMachine::OnWorkerEnded(int index, const ExitStatus& status, TimePoint now) {
  std::string how = status.Text();
  if (mode_ == Mode::kExited || !HasProcess(RecordOf(index).state)) return how;
  const std::string said = RecordOf(index).ended;
  const std::string fault = WorkerOf(index).fault;
  if (!said.empty()) how += ": " + said;
  if (!fault.empty()) how += " by its launcher: " + fault;
  WorkerOf(index).lost_device = status == ExitStatus::Exited(kExitDeviceLost);
  End(index, EndOf(index, status), how, CauseOf(index, status), now);
  Settle(now);
  return how;
}

SeatEvent HostMachine::EndOf(int index, const ExitStatus& status) const {
  const Worker& worker = *seats_[index].worker;
  const bool signalled = IsSignalled(seats_[index].phase);
  const bool stopping = mode_ == Mode::kLeaving || mode_ == Mode::kEnding;
  // A worker in place that was taken for a foreign one, since it had not said hello yet when its
  // epoch broke, takes the signal for a wish to stop.
  if (signalled && worker.fault.empty() && !stopping) return SeatEvent::kEndedStopped;
  if (status.ok() && (worker.leaving_step || (stopping && signalled))) return SeatEvent::kEndedLeft;
  return status.ok() && !signalled ? SeatEvent::kEndedFinished : SeatEvent::kEndedDead;
}

int64_t HostBlame::*HostMachine::CauseOf(int index, const ExitStatus& status) const {
  const Worker& worker = *seats_[index].worker;
  if (worker.lost_device) return &HostBlame::lost_device;
  if (!worker.fault.empty()) return &HostBlame::ended;
  return status.kind == ExitStatus::Kind::kExited ? &HostBlame::exited : &HostBlame::signalled;
}

void HostMachine::End(int index, SeatEvent event, const std::string& how,
                      int64_t HostBlame::*cause, TimePoint now) {
  SeatRecord& record = RecordOf(index);
  Seat& seat = seats_[index];
  const Worker& worker = WorkerOf(index);
  const bool in_epoch = PlaceOf(index) != nullptr && record.epoch == epoch_->number;
  const std::string who = RankText(index);
  // A host that was refused leaves, and what its workers do must not cost the job a restart.
  const bool own_fault = event == SeatEvent::kEndedDead && !record_.refused &&
                         (!IsSignalled(seat.phase) || !worker.fault.empty());
  const bool settled = now - worker.started >= kSettled;
  // All that were there may die of one thing. Those who lost their GPU may have lost a peer first.
  const bool is_incident = own_fault && !worker.lost_device &&
                           (!incident_ || worker.started >= *incident_);
  const int failures_before = settled ? 0 : seat.failures_in_a_row;
  MustMove(index, event);
  seat.failures_in_a_row = 0;
  seat.died = own_fault && in_epoch ? std::optional(now) : std::nullopt;
  record.silent = false;
  record.ended = how;
  if (own_fault) {
    seat.failures_in_a_row = failures_before + 1;
    deaths_.push_back(now);
    ++record_.deaths;
    ++(record_.blame.*cause);
  }
  if (is_incident) {
    ++record_.incidents;
    incident_ = now;
  }
  if (!in_epoch) return;
  if (own_fault) {
    Report(BreakCause::kDied, who + " " + how, now);
  } else if (record_.refused) {
    Report(BreakCause::kLeft, who + " leaves: " + how, now);
  } else if (event == SeatEvent::kEndedLeft && in_place() && !job_stops_) {
    const std::string why = record_.reason.empty() ? "" : ": " + record_.reason;
    Report(BreakCause::kLeft, who + " leaves" + why, now);
  }
}

// --- Its start ---

// In a job in place, a seat without a worker gets one, which waits for the next epoch.
void HostMachine::PlanStart(int index, TimePoint now) {
  const SeatState state = RecordOf(index).state;
  if (state != SeatState::kEmpty && state != SeatState::kDead) return;
  if (!in_place() || mode_ != Mode::kMember || !slot_ || seats_[index].start_at) return;
  const RestartDecision restart = DecideRestart(deaths_, config_.restarts, now);
  const TimePoint delayed = now + RestartDelay(seats_[index].failures_in_a_row);
  if (restart.go_on) seats_[index].start_at = delayed;
  if (!restart.go_on && restart.again != kNever) {
    seats_[index].start_at = std::max(delayed, restart.again);
  }
}

void HostMachine::Start(int index, TimePoint now) {
  SeatRecord& record = RecordOf(index);
  Seat& seat = seats_[index];
  const EpochWorker* const place = PlaceOf(index);
  const bool for_epoch = place != nullptr && place->worker.empty() &&
                         record.state == SeatState::kEmpty && record.epoch == epoch_->number;
  seat.start_at.reset();
  record = {};
  const bool inside = for_epoch && !in_place();
  MustMove(index, inside ? SeatEvent::kStartedInside : SeatEvent::kStarted);
  WorkerOf(index).started = now;
  record.worker = RandomId(random_, 16);
  StartWorker start{index, record.worker, std::nullopt, -1, OthersTrain(index)};
  if (for_epoch) {
    record.epoch = epoch_->number;
    record.rank = start.rank = place->rank;
    start.epoch = epoch_;
  }
  if (!inside) LimitStart(index);
  Do(std::move(start), for_epoch ? epoch_->reason : "to wait for the next epoch");
}

void HostMachine::TellJoin(int index) {
  const SeatRecord& record = RecordOf(index);
  if (epoch_over_ || joining_ != record.epoch || joining_ != epoch_->number) return;
  if (record.state != SeatState::kRunning) return;
  std::optional<Link>& link = WorkerOf(index).link;
  if (!link || link->told_join) return;
  link->told_join = true;
  Do(SendToWorker{index, JoinMessage{joining_}}, "somebody waits");
}

// Those that wait for a quorum leave their processors, so a newcomer is as fast as without them.
bool HostMachine::OthersTrain(int index) const {
  for (int other = 0; other < config_.seats; ++other) {
    const SeatPhase phase = seats_[other].phase;
    const bool trains = phase == SeatPhase::kRunning || phase == SeatPhase::kParked;
    if (other != index && trains && seats_[other].worker->link) return true;
  }
  return false;
}

bool HostMachine::AnyInPlace() const {
  return std::any_of(seats_.begin(), seats_.end(),
                     [](const Seat& seat) { return seat.worker && seat.worker->link; });
}

// An epoch without a quorum runs only while the lease's beat rises, of which others do not wait for
// longer than kLeaseStillLimit. A supervisor that is suspended breaks no epoch by that time.
Duration HostMachine::QuietLimit() const {
  const bool by_lease = !epoch_over_ && epoch_ && epoch_->by_lease;
  return by_lease ? std::min(config_.quiet_limit, kLeaseQuietLimit) : config_.quiet_limit;
}

// Tells workers that their supervisor is there. If it is suspended, the other hosts may go on
// without it while its workers know nothing. A worker that hears no `alive` therefore parks by
// itself, before the coordinator's fence_limit has passed.
void HostMachine::TellAlive(TimePoint now) {
  const Duration limit = QuietLimit();
  const bool is_told = now < alive_at_ && alive_at_ <= now + limit / 4;   // and not of a longer one
  if (is_told || !AnyInPlace()) return;
  alive_at_ = now + limit / 4;
  for (int index = 0; index < config_.seats; ++index) {
    if (!seats_[index].worker || !seats_[index].worker->link) continue;
    Do(SendToWorker{index, AliveMessage{limit / std::chrono::milliseconds(1)}}, "");
  }
}

void HostMachine::NoteHeard(int index, TimePoint now) {
  std::optional<Link>& link = WorkerOf(index).link;
  if (link) link->heard = now;
  RecordOf(index).silent = false;
}

// A worker inside an epoch tells its position again and again. One that tells nothing has been
// suspended as a whole process, by SIGSTOP or with its machine.
TimePoint HostMachine::SilentAt(int index) const {
  if (seats_[index].phase != SeatPhase::kRunning || record_.seats[index].silent) return kNever;
  const Worker& worker = *seats_[index].worker;
  const bool should_tell = worker.link && !worker.leaving_step;
  return should_tell ? worker.link->heard + kSilentAfter : kNever;
}

void HostMachine::NoteSilence(TimePoint now) {
  for (int index = 0; index < config_.seats; ++index) {
    if (SilentAt(index) <= now) RecordOf(index).silent = true;
  }
}

void HostMachine::CheckSeat(int index, TimePoint now) {
  PlanStart(index, now);
  const Seat& seat = seats_[index];
  if (seat.start_at && *seat.start_at <= now) Start(index, now);
  if (!seat.worker || !seat.worker->limit || now < seat.worker->limit->at) return;
  const KillLimit limit = *seat.worker->limit;
  Kill(index, "timed out: " + limit.why, limit.is_fault, now);
}

// --- Stopping ---

void HostMachine::StopSeat(int index, Duration deadline, const std::string& reason, TimePoint now) {
  seats_[index].start_at.reset();
  const SeatState state = RecordOf(index).state;
  if (!HasProcess(state)) return;
  Worker& worker = WorkerOf(index);
  if (worker.stop) return;
  const bool has_state = state == SeatState::kRunning || state == SeatState::kParked;
  if (worker.link && has_state) {
    Do(SendToWorker{index, StopMessage{reason, deadline / std::chrono::milliseconds(1)}}, reason);
    worker.stop = StopWish{now + deadline, now, std::max(deadline / kAlonePart, kAloneLimitMin)};
    Limit(index, worker.stop->save_by, kNotSaved, false);
  } else {
    Terminate(index, reason, now);
    Limit(index, now + deadline, "did not end within " + DurationText(deadline), false);
  }
}

void HostMachine::Terminate(int index, const std::string& why, TimePoint now) {
  if (!HasProcess(RecordOf(index).state) || IsSignalled(seats_[index].phase)) return;
  MustMove(index, SeatEvent::kSignalled);
  const int signal = WorkerOf(index).link ? SIGTERM : stop_signal_;
  Do(SignalWorker{index, signal, false}, why);
  Limit(index, now + config_.shutdown_limit, "did not end after " + SignalName(signal), false);
}

// Sends SIGKILL, and sends it again after a while if the process is still there, so that the log
// shows that even this has no effect.
void HostMachine::Kill(int index, const std::string& why, bool is_fault, TimePoint now) {
  Worker& worker = WorkerOf(index);
  if (is_fault && !IsSignalled(seats_[index].phase)) worker.fault = why;
  MustMove(index, SeatEvent::kSignalled);
  Do(SignalWorker{index, SIGKILL, false}, why);
  const std::string text = RankText(index) + " did not end after SIGKILL: it may be stuck in the "
                                             "kernel, as in a file system that does not answer";
  worker.limit = KillLimit{now + config_.shutdown_limit, text, false};
}

}  // namespace keel
