// HealthCheck: runs the command by which a user says whether this machine is fit for a worker.
// Promises   one outcome, within the plan's limit. The command gets SIGKILL then, with all of its
//            process group, and nobody waits for the end of what is stuck in the kernel, but the
//            loop's own. Of what it printed, the last line is told.
// Does not   decide what becomes of a host that is not fit (elastic/decisions/host_machine.h).
// Threads    the loop's, which must be the one that outlives the command
//            (elastic/process/spawn.h).
// Errors     none: a command that cannot be run is an outcome, too.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/environment.h"
#include "elastic/process/child.h"

namespace keel {

struct HealthPlan {
  std::string command;        // for /bin/sh
  Duration limit{0};
  Environment environment;
};

struct HealthOutcome {
  enum class Verdict {
    kFit,
    kUnfit,
    kCannotRun,               // the command, which says nothing of the machine
    kStopped,                 // somebody no longer wants to know
  };
  Verdict verdict = Verdict::kFit;
  std::string reason;         // of all but kFit
};

// What the end of the command means. `status`: nothing if it was ended at the limit; `said`: the
// end of what it printed.
HealthOutcome JudgeHealth(const HealthPlan& plan, const std::optional<ExitStatus>& status,
                          std::string_view said);

class HealthCheck : public std::enable_shared_from_this<HealthCheck> {
 public:
  using OnEnd = std::function<void(const HealthOutcome& outcome)>;
  // `on_end` is called by the loop, never from here.
  static std::shared_ptr<HealthCheck> Start(boost::asio::io_context& loop, HealthPlan plan,
                                            OnEnd on_end);
  // Ends it, and calls nothing from now on.
  void Forget();

 private:
  HealthCheck(boost::asio::io_context& loop, HealthPlan plan, OnEnd on_end);

  Status Spawn();
  void AwaitEnd();
  void AwaitLimit();
  void Read();
  void ReadRest();
  void Take(std::string_view bytes);
  void End(const HealthOutcome& outcome);

  const HealthPlan plan_;
  OnEnd on_end_;                                      // until it was called
  std::optional<Child> child_;
  boost::asio::posix::stream_descriptor ended_;
  boost::asio::posix::stream_descriptor output_;
  boost::asio::steady_timer limit_;
  std::array<char, 4096> buffer_;
  std::string said_;                                  // the end of it
};

// For a launcher that has no loop yet: returns once the check has ended, or one of `signals` came.
HealthOutcome CheckHealth(HealthPlan plan, const std::vector<int>& signals);

}  // namespace keel
