// HostMachine: decides what a supervisor does with its seats and with itself (PROTOCOL.md, sections
// 5, 6, 9 and 10).
// Promises   the same inputs give the same actions; the promise `outside` of its record is kept: a
//            worker is put into an epoch only if that is newer; every state that waits for a worker
//            has a limit, after which the worker's process group is killed, unless the kernel has
//            begun to end it with 0.
// Does not   start, signal or read anything: it says what to do (TakeActions), and is told what
//            happened. So the supervisor and the simulator run the very same machine.
// Threads    one.
#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/random.h"
#include "elastic/decisions/host_wait.h"
#include "elastic/decisions/restarts.h"
#include "elastic/decisions/seat_state.h"
#include "elastic/process/exit_status.h"
#include "elastic/protocol/board_events.h"
#include "elastic/protocol/control_link.h"
#include "elastic/protocol/limits.h"

namespace keel {

struct HostConfig {
  std::string incarnation;
  std::string host;
  std::string address;
  std::string machine;
  int seats = 1;
  int64_t order = 0;                                      // among the hosts, as the user gave it
  bool forgiven = false;                                  // it comes although it was left out
  std::string health;                                     // what its first check said
  std::string role;                                       // of the workers, as the user gave it
  bool program_says_hello = false;                        // its file says that it is in place
  RestartPolicy restarts;
  Duration join_limit = kJoinLimit;                       // for the store to appear
  Duration store_limit = kStoreLimit;                     // for it to come back
  Duration quiet_limit = kQuietLimit;                     // a worker's, for us to say anything
  Duration park_limit = kParkLimit;
  Duration start_limit = kStartLimit;                     // from exec to ready, in place
  Duration shutdown_limit = kShutdownLimit;               // from SIGTERM to SIGKILL
  Duration save_limit = kSaveLimit;                       // from stop to SIGTERM, unless told
  Duration close_limit = kCloseLimit;                     // for the coordinator to say the end
};

// One action that the supervisor is to carry out. `why` is for the log.
struct StartWorker {
  int index = 0;
  std::string worker;                 // its incarnation
  std::optional<EpochRecord> epoch;   // nothing: the worker waits for one
  int rank = -1;
  bool polite = false;                // others train here: it takes what they leave at first
};
// The worker is sent `epoch` on its link.
struct EnterEpoch { int index = 0; int rank = 0; EpochRecord epoch; };
struct SendToWorker { int index = 0; SupervisorMessage message; };
struct SignalWorker { int index = 0; int signal = 0; bool dump_stacks = false; };
// record() has changed. `hurry`: not only in positions, so that others should know at once.
struct Publish { bool hurry = false; };
struct ReportBreak { BreakRecord record; };
struct RegisterAnew {};
struct ExitHost { int code = 0; };    // no worker is left; the record says so
struct HostAction {
  std::variant<StartWorker, EnterEpoch, SendToWorker, SignalWorker, Publish, ReportBreak,
               RegisterAnew, ExitHost> what;
  std::string why;
};

// It has more than 25 methods and 12 data members because each message, event and limit of the
// protocol is a method, and all of them decide about the same seats, epoch and record.
class HostMachine {
 public:
  HostMachine(HostConfig config, Random random, TimePoint now);

  void OnWorkerMessage(int index, const WorkerMessage& message, TimePoint now);
  // The control link was closed (kPeerLost) or held garbage: the worker counts as one that died. A
  // foreign one may close what it does not know.
  void OnLinkBroken(int index, const Error& why, TimePoint now);
  // The kernel has begun to end its process so, which takes a while: the others need not wait.
  void OnWorkerEnding(int index, const ExitStatus& status, TimePoint now);
  // Returns how the worker ended, in words that hold our reason if we killed it for its own fault.
  std::string OnWorkerEnded(int index, const ExitStatus& status, TimePoint now);
  // The worker has no process, because exec failed.
  void OnStartFailed(int index, const std::string& reason, TimePoint now);
  // Before a worker's process is made the machine may be checked. It is fit: the process is made
  // now.
  void OnFit(int index, TimePoint now);
  // It is not, or that cannot be said: this host leaves with `code`, and its workers that wait for
  // the check are told to end.
  void OnUnfit(const std::string& reason, int code, TimePoint now);
  // A worker that waited for the check was told to end, so it has no process.
  void OnNotStarted(int index, TimePoint now);
  void OnMemberEvent(const MemberEvent& event, TimePoint now);
  // The store was reached: the board had this host's beat at that time.
  void OnContact(TimePoint beat);
  // A board that was reached before cannot be any more. `coordinator`: its incarnation; `promised`:
  // the highest promise of this host that it may have; `refused`: its machine is there and says
  // that nobody listens any more.
  void OnBoardLost(const std::string& coordinator, int64_t promised, bool refused, TimePoint now);
  // By the user, who waits for nothing: it is no fault of a worker's.
  void OnKillAsked(const std::string& reason, TimePoint now);
  // A signal asks the supervisor to leave, with so much time to save. Foreign workers get `signal`.
  void OnStopAsked(const std::string& reason, Duration deadline, TimePoint now,
                   int signal = SIGTERM);
  // A store that the workers need cannot be made on this host.
  void OnNoStore(const std::string& reason, TimePoint now);
  // Somebody wants a checkpoint. The workers that can make one are asked for it.
  void OnSaveAsked(const std::string& reason, TimePoint now);
  // NextWake() is due.
  void OnTime(TimePoint now);
  TimePoint NextWake() const;

  // For what it waits, if its workers cannot make steps for now.
  std::optional<HostWait> WaitsFor(TimePoint now) const;

  std::vector<HostAction> TakeActions();
  const MemberRecord& record() const { return record_; }
  const std::optional<EpochRecord>& epoch() const { return epoch_; }
  // Who is in each epoch that record().seen names.
  const std::vector<CountedEpoch>& counted() const { return counted_; }
  // "rank 3 on node7", or "seat 0 on node7" for a seat without a rank.
  std::string RankText(int index) const;

 private:
  // What the host as a whole does.
  enum class Mode {
    kMember,    // it takes part
    kLeaving,   // a stop was asked for, of this host or of the job
    kFencing,   // it was taken for dead: its workers must be gone before it may register anew
    kEnding,    // the job is over for it
    kExited,    // no worker is left, and the record says so
  };

  // Of a worker that has said hello, and therefore is in place.
  struct Link {
    TimePoint heard;                    // when it last said anything
    bool told_join = false;             // in its present epoch
  };

  // Of a worker that was told to stop with its group.
  struct StopWish {
    TimePoint save_by;
    TimePoint moved;                    // when it last moved, or was told
    Duration alone_after{0};            // without the store it may stand still for so long
  };

  // When the worker's process group gets SIGKILL.
  struct KillLimit {
    TimePoint at;
    std::string why;
    bool is_fault = false;              // it counts as a failure of the worker
  };

  // What is known of a seat's process beyond its record.
  struct Worker {
    TimePoint started;
    std::optional<Link> link;
    std::optional<StopWish> stop;
    std::optional<KillLimit> limit;
    std::optional<int64_t> saved_step;
    std::optional<int64_t> leaving_step;
    bool said_bye = false;              // so it closes its link before it ends, signalled or not
    bool has_failed = false;            // it said so, or the kernel is ending it
    bool has_finished = false;          // the kernel is ending it with 0
    bool lost_device = false;           // as its exit code says
    std::string fault;                  // why it was signalled, where it is to blame for it
    WorkerChecks checks;                // as it told last
  };

  struct Seat {
    SeatPhase phase = SeatPhase::kEmpty;
    int failures_in_a_row = 0;          // of the seat, not of the worker
    std::optional<TimePoint> start_at;  // when the next worker is due; only while there is none
    std::optional<TimePoint> died;      // its last worker, in an epoch and by its own fault
    std::optional<Worker> worker;       // while there is a process
    bool left_without_state = false;    // its last worker said so
  };

  SeatRecord& RecordOf(int index) { return record_.seats[index]; }
  // Of a seat that has a process.
  Worker& WorkerOf(int index);
  // Takes the seat to its next phase, and its record with it. May: does nothing and returns false
  // where the event is illegal, as is right for what a worker says. Must: that would be our bug.
  bool MayMove(int index, SeatEvent event);
  void MustMove(int index, SeatEvent event);
  bool AnyProcess() const;
  bool in_place() const { return kind_ == JobKind::kInPlace; }
  // The seat's place in the epoch that is not over; null if it has none.
  const EpochWorker* PlaceOf(int index) const;

  // What workers say.
  void On(int index, const HelloMessage& message, TimePoint now);
  void On(int index, const ReadyMessage& message, TimePoint now);
  void On(int index, const ParkedMessage& message, TimePoint now);
  void On(int index, const AtMessage& message, TimePoint now);
  void On(int index, const SavedMessage& message, TimePoint now);
  void On(int index, const LeavingMessage& message, TimePoint now);
  void On(int index, const ByeMessage& message, TimePoint now);
  void On(int index, const FiguresMessage& message, TimePoint now);
  void On(int, const UnknownMessage&, TimePoint) {}

  // What the board says.
  void On(const Registered& event, TimePoint now);
  void On(const KindKnown& event, TimePoint now);
  void On(const EpochSeen& event, TimePoint now);
  void On(const BreakSeen& event, TimePoint now);
  void On(const JoiningSeen& event, TimePoint now);
  void On(const StopSeen& event, TimePoint now);
  void On(const EndSeen& event, TimePoint now);
  void On(const ShunnedSeen& event, TimePoint now);
  void On(const PresenceSeen&, TimePoint) {}
  void On(const SuccessionSeen& event, TimePoint now);
  void On(const LinkSeen& event, TimePoint now);
  void On(const Buried& event, TimePoint now);

  // Epochs.
  void TakeEpoch(EpochRecord epoch, TimePoint now);
  struct NewestRead {
    int64_t number = 0;
    std::string id;
  };
  void NoteTried(const EpochRecord& epoch);
  void NoteNamed(const EpochRecord& epoch);
  void NoteFinished(const NewestRead& epoch);
  void NoteLinked();
  bool TakeSeat(const EpochWorker& place, TimePoint now);
  void Enter(int index, TimePoint now);
  void LeaveEpoch(const std::string& reason, TimePoint now);
  void BreakSeat(int index, const std::string& reason, TimePoint now);
  void Report(BreakCause cause, const std::string& reason, TimePoint now);
  bool AllOutside() const;

  // Seats.
  void Start(int index, TimePoint now);
  void PlanStart(int index, TimePoint now);
  void Limit(int index, TimePoint at, const std::string& what, bool is_fault);
  void LimitStart(int index);
  void StopSeat(int index, Duration deadline, const std::string& reason, TimePoint now);
  void Terminate(int index, const std::string& why, TimePoint now);
  void Kill(int index, const std::string& why, bool is_fault, TimePoint now);
  void TellJoin(int index);
  Duration QuietLimit() const;
  void TellAlive(TimePoint now);
  void NoteHeard(int index, TimePoint now);
  TimePoint SilentAt(int index) const;
  void NoteSilence(TimePoint now);
  bool AnyInPlace() const;
  bool OthersTrain(int index) const;
  void NoteSaved(int index);
  void LetOthersGoOn(int index, TimePoint now);
  SeatEvent EndOf(int index, const ExitStatus& status) const;
  int64_t HostBlame::*CauseOf(int index, const ExitStatus& status) const;
  void End(int index, SeatEvent event, const std::string& how, int64_t HostBlame::*cause,
           TimePoint now);

  // The host as a whole.
  void StopSeats(const std::string& reason, Duration deadline, TimePoint now);
  bool IsOnItsWayIn(int index) const;
  TimePoint AloneAt(int index) const;
  void LeaveAloneIfCutOff(TimePoint now);
  void BreakIfStoppedOutside(TimePoint now);
  void Leave(const std::string& reason, Duration deadline, TimePoint now);
  void LeaveAlone(const std::string& reason, Duration deadline, TimePoint now);
  void EndJob(int code, const std::string& reason, TimePoint now);
  int LeaveCode() const;
  bool NothingMade(const SeatRecord& seat) const;
  bool HasNothingToSave(int index) const;
  void LeaveIfAllLeft(TimePoint now);
  void GiveUpOutside(TimePoint now);
  void Fence(const std::string& reason, TimePoint now);
  void KillSeats(const std::string& reason, TimePoint now, bool spares_finished = false);
  void BeginAnew();
  void Exit(int code, const std::string& why);
  void Forgive(TimePoint now);
  std::optional<std::string> LastFailure() const;
  void CheckStore(TimePoint now);
  void CheckSeat(int index, TimePoint now);
  void Settle(TimePoint now);
  void SettleMode(TimePoint now);
  TimePoint StoreDeadline() const;

  template <class T>
  void Do(T what, std::string why) { actions_.push_back({std::move(what), std::move(why)}); }

  const HostConfig config_;
  Random random_;
  const TimePoint born_;
  TimePoint outside_since_;            // since when it has no epoch
  Mode mode_ = Mode::kMember;
  JobKind kind_ = JobKind::kForeign;
  std::optional<int64_t> slot_;
  MemberRecord record_;
  MemberRecord published_;
  std::vector<Seat> seats_;
  std::optional<EpochRecord> epoch_;   // the newest one that this host was put into
  int64_t epoch_slot_ = -1;            // the slot that this host has in it
  bool epoch_over_ = true;
  NewestRead newest_read_;             // the newest epoch that a board named
  std::vector<CountedEpoch> counted_;
  std::string late_;                   // the id of the one of them that it was too late for
  bool coordinates_ = false;           // the coordinator is in this process
  bool has_heirs_ = false;             // ... and another host can take its role
  std::string link_seen_;              // the newest epoch that the job's lease named
  bool tells_of_loss_ = false;         // record_.seen.lost is of the board that is lost now
  std::string reported_;               // the id of the epoch whose break was reported
  int64_t joining_ = 0;
  std::vector<TimePoint> deaths_;
  std::optional<TimePoint> incident_;  // the last one of record_.incidents
  std::optional<TimePoint> contact_;
  TimePoint entered_{};                // when it took the epoch that its record tells
  TimePoint store_grace_{};            // the store is not given up before this
  TimePoint alive_at_{};               // when workers are told again that this host is there
  bool job_stops_ = false;             // the whole job stops, not only this host
  std::optional<int> own_code_;        // with which it ends, whatever its workers and the job do
  int stop_signal_ = SIGTERM;          // for foreign workers, which know no `stop` message
  std::string stopped_outside_;        // names a worker of the epoch stopped before it entered
  TimePoint leave_by_ = kNever;
  int exit_code_ = 0;
  std::vector<HostAction> actions_;
};

}  // namespace keel
