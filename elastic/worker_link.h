// WorkerLink: an in-place worker's end of the control link to its supervisor
// (elastic/PROTOCOL.md section 4).
// Promises   Send() never waits: what the supervisor has not read yet is kept; of positions (`at`)
//            and of figures only the newest. Messages are received in order. A break is known the
//            moment it arrives, whatever the worker's threads are busy with: BreakToken() and
//            WatchBreak() need no thread that receives. A closed link (the supervisor is gone, or
//            sent garbage) breaks all epochs; Receive() reports it after the last message. A
//            supervisor that is silent for longer than it promised breaks the epoch: it may stand
//            still while the others go on without it. From the first `at` of an epoch until
//            `parked` or `bye` the link repeats where the worker is, so that silence means that
//            the process stands still.
// Does not   end the process when the link closes: its owner does. Reach the supervisor after a
//            failed Send().
// Threads    all methods from any thread; destroyed by one. A thread of its own reads; callbacks
//            run there, and hold it up.
// Errors     kNotFound: no supervisor started us; kInvalid: KEEL_CONTROL_FD leads nowhere;
//            kPeerLost: the link is closed; kTimeout; kCancelled; kNoSpace: the supervisor reads
//            nothing.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/environment.h"
#include "base/fd.h"
#include "base/line_framer.h"
#include "base/result.h"
#include "elastic/protocol/control_link.h"
#include "store/cancel.h"

namespace keel {

// It has more than 25 methods and 12 data members because the reader, the sender and the break
// tokens of epochs share one socket, one lock and one order of messages.
class WorkerLink {
 public:
  using OnBreak = std::function<void(const std::string& reason)>;

  // Takes the descriptor that KEEL_CONTROL_FD names, keeps it from our children, and makes the
  // program answer StackSignal() (elastic/process/stack_signal.h).
  static Result<std::unique_ptr<WorkerLink>> FromEnvironment(const Environment& environment);
  // `socket`: a connected stream socket.
  static Result<std::unique_ptr<WorkerLink>> Open(Fd socket);
  // Loses what was sent but not yet taken by the supervisor's side: call Flush() before.
  ~WorkerLink();

  Status Send(const WorkerMessage& message);
  // What the link tells by itself while the worker sends no `at`; without it, the last `at` again.
  // Called on the link's thread, which must not wait for long; it must not use the link.
  void TellWhere(std::function<AtMessage()> where);
  // Returns once all that was sent has left this process.
  Status Flush(TimePoint deadline);

  // The next message.
  Result<SupervisorMessage> Receive(TimePoint deadline,
                                    const CancelToken& cancel = CancelToken::Never());
  // The same without waiting; empty if no message is there.
  Result<std::optional<SupervisorMessage>> TryReceive();

  // Raised as soon as the epoch (or a later one) is broken or the link is closed. If that has
  // happened before, it is raised already.
  CancelToken BreakToken(int64_t epoch);

  // Calls `on_break` once, at that same moment, unless destroyed before. The destructor waits for a
  // call that runs, so that call must not destroy it. If the break has happened before, the thread
  // that asks calls `on_break` at once.
  class BreakWatch {
   public:
    BreakWatch(BreakWatch&&) noexcept = default;
    BreakWatch& operator=(BreakWatch&&) = delete;
    ~BreakWatch();

   private:
    friend class WorkerLink;
    struct State;
    explicit BreakWatch(std::shared_ptr<State> state);

    std::shared_ptr<State> state_;
  };
  [[nodiscard]] BreakWatch WatchBreak(int64_t epoch, OnBreak on_break);

  bool closed() const;
  // For a poll() loop: readable while TryReceive() has something to return, be it a closed link.
  const Fd& ready_fd() const { return ready_; }

 private:
  struct Outgoing {
    std::string line;
    size_t type = 0;            // its index in WorkerMessage
  };
  // The watches that a break concerns, to be called without the lock.
  using Watches = std::vector<std::shared_ptr<BreakWatch::State>>;

  WorkerLink(Fd socket, Fd wake, Fd ready);

  void Run();
  void AwaitWork(bool& readable, bool& writable);
  bool ReadSome();
  Status TakeLines();
  void Take(SupervisorMessage message);
  Duration UntilTooQuiet() const;
  void BreakIfTooQuiet();
  Duration UntilTold() const;
  void TellAgain();
  Status SendLocked(const WorkerMessage& message);
  Watches BreakUpTo(int64_t epoch, const std::string& reason);
  void Close(const std::string& why);
  void WriteSome();
  std::optional<SupervisorMessage> PopFront();
  Error ClosedError() const;

  const Fd socket_;
  const Fd wake_;    // makes the reader look again
  const Fd ready_;
  // The reader's own:
  LineFramer framer_;
  Duration quiet_limit_{0};   // 0: the supervisor has promised nothing
  TimePoint heard_;           // when it last said something
  int64_t entered_ = 0;       // the newest epoch

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<SupervisorMessage> inbox_;             // all below: guarded by mutex_
  std::deque<Outgoing> outbox_;
  size_t outbox_bytes_ = 0;
  size_t front_sent_ = 0;                           // bytes of the first one in outbox_
  std::function<AtMessage()> where_;                // may be empty
  std::optional<AtMessage> told_;                   // the last `at` of the epoch it is in
  TimePoint told_at_;
  bool stopping_ = false;
  std::optional<std::string> closed_;               // why, once it is closed
  int64_t broken_ = 0;                              // this epoch and all earlier ones are over
  std::string break_reason_;
  std::map<int64_t, CancelToken> tokens_;
  std::multimap<int64_t, std::shared_ptr<BreakWatch::State>> watches_;
  std::thread reader_;
};

}  // namespace keel
