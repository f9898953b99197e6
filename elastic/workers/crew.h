// Crew: the workers of this host's seats, with their logs.
// Promises   a seat has one worker at a time. What workers say and how they end is reported with
//            the seat's index. A worker that hangs gets the time to write its own stacks before it
//            is killed. The destructor leaves no worker behind.
// Does not   decide anything (elastic/decisions/host_machine.h).
// Threads    the loop's.
// Errors     of Start(): those of Spawn(), and of making folders for logs.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "elastic/process/politeness.h"
#include "elastic/protocol/limits.h"
#include "elastic/report/failures.h"
#include "elastic/report/lost_output.h"
#include "elastic/workers/log_tail.h"
#include "elastic/workers/output_pump.h"
#include "elastic/workers/plan.h"
#include "elastic/workers/process.h"
#include "elastic/workers/spares.h"
#include "elastic/workers/start.h"

namespace keel {

class Crew {
 public:
  struct Events {
    std::function<void(int index, const WorkerMessage& message)> on_message;
    // kPeerLost: the worker closed its end; otherwise it wrote garbage.
    std::function<void(int index, const Error& why)> on_link_broken;
    // The kernel has begun to end a worker in place, which has said all that it will say. Its end
    // may take a while: its memory is freed first.
    std::function<void(int index, const ExitStatus& status)> on_ending;
    std::function<void(int index, const ExitStatus& status)> on_ended;
  };
  // EndPoliteness(), but for tests.
  using PolitenessEnd = std::function<bool(pid_t leader)>;
  static Result<std::unique_ptr<Crew>> Open(boost::asio::io_context& loop,
                                            const WorkerPlan& plan, Files& files,
                                            Random& random, Environment own, Events events,
                                            StatusLine* status = nullptr,
                                            Duration stacks_limit = kStacksLimit,
                                            Duration spare_delay = kSpareDelay,
                                            PolitenessEnd end_politeness = EndPoliteness);
  ~Crew();

  // Fills in `start.logs`.
  Status Start(WorkerStart start);
  // A polite worker is one of those that train once it is sent an epoch, and is polite no more.
  void Send(int index, const SupervisorMessage& message);
  // Sends the signal to the whole process group.
  void Signal(int index, int signal);
  // Logs the stacks as seen from outside, and lets the worker write its own, if it can.
  void DumpStacks(int index);
  void KillAll();

  // Describes the end of the seat's last worker; `rank` is the last one it had.
  WorkerFailure Describe(int index, int rank, const ExitStatus& status, int64_t seen_nanos);
  // Waits until files and console have taken what the workers wrote. False: the log folder does not
  // answer, and the destructor would wait until it does.
  bool ShowRest(TimePoint deadline);
  // What log files have missed of it so far.
  std::vector<LostBytes> lost_output() const { return lost_.All(); }

 private:
  struct Seat {
    std::shared_ptr<WorkerProcess> process;
    pid_t pid = 0;
    SeatLogs logs;
    std::vector<int> streams;          // of the pump
    ChildSpec spec;                    // what it was started with
    bool in_place = false;             // it said hello
    std::unique_ptr<boost::asio::steady_timer> polite;   // until that has ended
    int ending_looks = 0;              // so often it was found ending
    std::unique_ptr<boost::asio::steady_timer> stacks;   // while it writes its stacks
  };

  Crew(boost::asio::io_context& loop, const WorkerPlan& plan, Files& files, Environment own,
       Events events, WorkerLogs logs, StatusLine* status, Duration stacks_limit,
       Duration spare_delay, PolitenessEnd end_politeness);
  static void TellLost(boost::asio::io_context& loop, const LostBytes& lost);
  Status TakeOutput(const WorkerStart& start, Seat& seat, ChildSpec& spec, std::vector<Fd>& ends);
  Result<Fd> TakeStream(const StreamPlan& plan, bool is_stderr, const WorkerStart& start,
                        Seat& seat);
  void OnMessage(int index, const WorkerMessage& message);
  void OnEnd(int index, const ExitStatus& status);
  void LookForEndings();
  void EndPoliteAfter(Seat& seat, Duration delay);
  void EndPolite(Seat& seat);

  boost::asio::io_context& loop_;
  const WorkerPlan plan_;
  Files& files_;
  const Environment own_;
  const Events events_;
  const Duration stacks_limit_;
  const PolitenessEnd end_politeness_;
  WorkerLogs logs_;
  LostOutput lost_;
  LogTail tail_;
  std::unique_ptr<OutputPump> pump_;
  const bool may_be_polite_;
  std::vector<Seat> seats_;
  Spares spares_;
  boost::asio::steady_timer endings_;
  bool looks_for_endings_ = false;
};

}  // namespace keel
