// WorkerProcess: one worker while it runs: its process and its control link, watched by the loop.
// Promises   its end is reported once, after all that it said on its link, and after its whole
//            process group is gone. Nothing is reported once Forget() was called.
// Does not   decide when to end it (elastic/decisions/host_machine.h) or what it is started with
//            (elastic/workers/start.h).
// Threads    the loop's, which must be the one that outlives the process (elastic/process/spawn.h).
// Errors     those of Spawn().
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/line_framer.h"
#include "elastic/process/child.h"
#include "elastic/process/spawn.h"
#include "elastic/protocol/control_link.h"

namespace keel {

// The descriptor under which a worker has its end of the link.
inline constexpr int kWorkerControlFd = 3;

class WorkerProcess : public std::enable_shared_from_this<WorkerProcess> {
 public:
  struct Events {
    std::function<void(const WorkerMessage& message)> on_message;
    std::function<void(const Error& why)> on_link_broken;
    std::function<void(const ExitStatus& status)> on_end;
  };
  // What makes a process of a spec: Spawn(), or a spare that becomes it.
  using Starter = std::function<Result<Child>(const ChildSpec& spec)>;
  // Adds the link to what `spec` says.
  static Result<std::shared_ptr<WorkerProcess>> Start(boost::asio::io_context& loop, ChildSpec spec,
                                                      Events events,
                                                      const Starter& starter = Spawn);

  pid_t pid() const { return pid_; }
  // Does not wait: what the worker has not read yet is kept.
  void Send(const SupervisorMessage& message);
  void SignalGroup(int signal);
  // Calls nothing of `events` from now on, and ends the process.
  void Forget();

 private:
  WorkerProcess(boost::asio::io_context& loop, Child child, Events events);

  Status Watch(Fd link);
  void AwaitEnd();
  void OnEnd();
  void Read();
  void TakeBytes(std::string_view bytes);
  void DrainLink();
  void BreakLink(const Error& why);
  void TellUnknown(const std::string& type);
  void Write();

  std::optional<Child> child_;    // until its end was seen
  const pid_t pid_;
  Events events_;
  boost::asio::posix::stream_descriptor ended_;
  boost::asio::local::stream_protocol::socket link_;
  LineFramer framer_;
  std::set<std::string> unknown_types_;   // those that were logged
  std::array<char, 4096> buffer_;
  std::deque<std::string> outbox_;
};

}  // namespace keel
