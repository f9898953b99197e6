// Spares: processes that have imported PyTorch already and wait to become a worker, so that a
// replacement of a Python worker is back without that second. The first process that is started for
// this makes the others, by doubling itself; where it cannot, each imports PyTorch itself.
// Promises   Start() gives a process for any spec: a spare that is ready and fits, or a fresh one.
//            A spare becomes what the spec says: command line, environment, streams, descriptors;
//            polite it is not, since it has come up already.
//            Where they are made by doubling, the next one is ready soon after one was taken.
//            What cannot have spares (another program than a Python script, a Python without the
//            package `evenkeel`) goes on without them, and says so once.
// Does not   see that a spare hangs; that shows when it is a worker.
// Threads    the loop's, which must be one that outlives the processes (elastic/process/spawn.h).
// Errors     of Start(): those of Spawn().
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>

#include <sys/types.h>

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "elastic/process/child.h"
#include "elastic/process/spawn.h"

namespace keel {

inline constexpr Duration kSpareDelay = std::chrono::seconds(2);

class Spares {
 public:
  // At most so many at a time. What imports PyTorch is begun when no worker has been started for
  // `delay`.
  Spares(boost::asio::io_context& loop, int count, Duration delay);
  ~Spares();

  // A worker with such a spec has shown that it trains in place: those that replace it, or others
  // of its host, have the same program.
  void MakeFor(const ChildSpec& worker);
  struct Started {
    Child child;
    bool was_spare = false;
  };
  Result<Started> Start(const ChildSpec& spec);

 private:
  // Behind a pointer, since what waits for a word of it may outlive the list.
  struct Spare {
    Spare(boost::asio::io_context& loop, Child started) : child(std::move(started)), gate(loop) {}

    std::optional<Child> child;   // until it is taken, or gone
    boost::asio::local::stream_protocol::socket gate;
    bool is_ready = false;
    char word = 0;
    int32_t made = 0;   // what a maker answers: the process, or 0
  };

  void MakeLater();
  void MakeOne();
  Status StartOne();
  Status AskMaker();
  Status Add(Child child, Fd gate);
  void Listen(const std::shared_ptr<Spare>& spare);
  void OnWord(const std::shared_ptr<Spare>& spare);
  void ListenToMaker(const std::shared_ptr<Spare>& maker);
  void OnMade(pid_t pid);
  void OnGone(const std::shared_ptr<Spare>& spare);
  void LoseMaker(const std::string& why);
  void GiveUp(const std::string& why);

  boost::asio::io_context& loop_;
  const Duration delay_;
  int wanted_;                        // 0: none, or no longer
  int failed_ = 0;                    // ended before they were ready, one after the other
  std::optional<ChildSpec> like_;     // a worker's; nothing: none has shown what it is
  boost::asio::steady_timer later_;
  std::list<std::shared_ptr<Spare>> spares_;
  std::shared_ptr<Spare> maker_;      // ready to make more; not among the spares
  std::list<Fd> asked_;               // the gates of those that it has not answered for
};

}  // namespace keel
