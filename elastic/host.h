// Host: the supervisor's brain, a state machine over its seats (PROTOCOL.md sections 5, 6, 9, 10).
// Promises   the same inputs give the same actions; `outside` in its record is kept: a worker is put
//            into an epoch only if that is newer; every state that waits for a worker has a limit,
//            after which the worker's process group is killed.
// Does not   start, signal or read anything: it says what to do (TakeActions), and is told what
//            happened. So the supervisor and the simulator run the very same machine.
// Threads    one.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/random.h"
#include "elastic/exit_status.h"
#include "elastic/link_messages.h"
#include "elastic/member.h"
#include "elastic/restarts.h"

namespace keel {

struct HostConfig {
  std::string incarnation;
  std::string host;
  std::string address;
  int seats = 1;
  RestartPolicy restarts;
  Duration join_timeout = std::chrono::seconds(600);      // for the store to appear
  Duration store_limit = std::chrono::seconds(60);        // for it to come back
  Duration park_limit = std::chrono::seconds(5);
  Duration start_limit = std::chrono::seconds(600);       // from exec to ready, in place
  Duration shutdown_timeout = std::chrono::seconds(30);   // from SIGTERM to SIGKILL
  Duration save_limit = std::chrono::seconds(30);         // from stop to SIGTERM, unless told
  Duration close_timeout = std::chrono::seconds(30);      // for the coordinator to say the end
};

// What to do. `why` is for the log.
struct StartWorker {
  int index = 0;
  std::string worker;                 // its incarnation
  std::optional<EpochRecord> epoch;   // nothing: it waits for one
  int rank = -1;
};
struct SendToWorker { int index = 0; SupervisorMessage message; };
struct SignalWorker { int index = 0; int signal = 0; bool dump_stacks = false; };
struct Publish {};                    // record() has changed
struct ReportBreak { BreakRecord record; };
struct RegisterAnew {};
struct ExitHost { int code = 0; };    // no worker is left; the record says so
struct HostAction {
  std::variant<StartWorker, SendToWorker, SignalWorker, Publish, ReportBreak, RegisterAnew,
               ExitHost> what;
  std::string why;
};

class Host {
 public:
  Host(HostConfig config, Random random, TimePoint now);

  void OnWorkerMessage(int index, const WorkerMessage& message, TimePoint now);
  // The control link was closed, or held garbage: the worker counts as one that died.
  void OnLinkBroken(int index, const std::string& reason, TimePoint now);
  void OnWorkerEnded(int index, const ExitStatus& status, TimePoint now);
  // There is no process: exec failed.
  void OnStartFailed(int index, const std::string& reason, TimePoint now);
  void OnMemberEvent(const MemberEvent& event, TimePoint now);
  // The board had our beat as of that time.
  void OnContact(TimePoint beat) { contact_ = beat; }
  // A signal to the supervisor: leave, with so much time to save.
  void OnStopAsked(const std::string& reason, Duration deadline, TimePoint now);
  // NextWake() is due.
  void OnTime(TimePoint now);
  TimePoint NextWake() const;

  std::vector<HostAction> TakeActions();
  const MemberRecord& record() const { return record_; }
  const std::optional<EpochRecord>& epoch() const { return epoch_; }

 private:
  // What the host as a whole is about.
  enum class Mode {
    kMember,    // takes part
    kLeaving,   // a stop was asked for, of this host or of the job
    kFencing,   // was taken for dead: its workers must go before it may register anew
    kEnding,    // the job is over for it
    kExited,
  };

  // What is known of a seat beyond its record.
  struct Seat {
    bool hello = false;
    bool signalled = false;             // its end is our doing
    bool leaving = false;               // it said so
    bool breaking = false;              // told of the break of its epoch
    bool told_join = false;
    bool told_stop = false;
    int failures_in_a_row = 0;
    TimePoint started;
    std::optional<TimePoint> start_at;  // a start that is due
    std::optional<TimePoint> term_at;   // when its process group gets SIGTERM
    std::optional<TimePoint> kill_at;   // ... SIGKILL
    std::string limit;                  // what passed then
  };

  SeatRecord& RecordOf(int index) { return record_.seats[index]; }
  bool Inside(int index) const;
  bool IsMemberOf(int index) const;
  bool AnyProcess() const;
  bool in_place() const { return kind_ == JobKind::kInPlace; }
  const EpochWorker* MyPlace(int index) const;

  // What workers say.
  void On(int index, const HelloMessage& message, TimePoint now);
  void On(int index, const ReadyMessage& message, TimePoint now);
  void On(int index, const ParkedMessage& message, TimePoint now);
  void On(int index, const AtMessage& message, TimePoint now);
  void On(int index, const SavedMessage& message, TimePoint now);
  void On(int index, const LeavingMessage& message, TimePoint now);
  void On(int index, const ByeMessage& message, TimePoint now);

  // What the board says.
  void On(const Registered& event, TimePoint now);
  void On(const KindKnown& event, TimePoint now);
  void On(const EpochSeen& event, TimePoint now);
  void On(const BreakSeen& event, TimePoint now);
  void On(const JoiningSeen& event, TimePoint now);
  void On(const StopSeen& event, TimePoint now);
  void On(const EndSeen& event, TimePoint now);
  void On(const PresenceSeen&, TimePoint) {}
  void On(const Buried& event, TimePoint now);

  // Epochs.
  void EnterEpoch(EpochRecord epoch, TimePoint now);
  void EnterSeat(int index, TimePoint now);
  void LeaveEpoch(const std::string& reason, TimePoint now);
  void BreakSeat(int index, const std::string& reason, TimePoint now);
  void Report(BreakCause cause, const std::string& reason, TimePoint now);
  void PromiseOutside();
  bool AllSeatsOut() const;

  // Seats.
  void Start(int index, TimePoint now);
  void StartIdleSeats(TimePoint now);
  void StopSeat(int index, Duration deadline, const std::string& reason, TimePoint now);
  void Signal(int index, int signal, const std::string& why);
  void Terminate(int index, const std::string& why, TimePoint now);
  void Kill(int index, const std::string& why);
  void TellJoin(int index);
  void SeatEnded(int index, const ExitStatus& status, TimePoint now);
  void SeatDied(int index, TimePoint now);
  void PlanRestart(int index, bool own_fault, TimePoint now);

  // The host as a whole.
  void Leave(const std::string& reason, Duration deadline, TimePoint now);
  void EndJob(int code, const std::string& reason, Duration deadline, TimePoint now);
  int LeaveCode() const;
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
  Mode mode_ = Mode::kMember;
  JobKind kind_ = JobKind::kForeign;
  std::optional<int64_t> slot_;
  MemberRecord record_;
  MemberRecord published_;
  std::vector<Seat> seats_;
  std::optional<EpochRecord> epoch_;   // the newest one that this host was put into
  bool epoch_over_ = true;
  std::string reported_;               // the id of the epoch whose break was reported
  int64_t joining_ = 0;
  std::vector<TimePoint> deaths_;
  std::optional<TimePoint> contact_;
  bool job_stops_ = false;             // the whole job, not only this host
  std::optional<TimePoint> leave_by_;
  int exit_code_ = 0;
  std::vector<HostAction> actions_;
};

}  // namespace keel
