// How long the board takes to form an epoch of N hosts that arrive all at once: N times what a
// supervisor has of it (Board: threads, connections to one real TCPStore, presence), spread over
// some processes, without any worker.
// Prints "formed after <s> s (decided after <s> s), arriving took <s> s, cpu <s> s": from when the
// last host had registered until every host has read the epoch (until it was decided); from the
// first start to that; and the processor time of all of it.
// Usage: board_bench <hosts> [sealed]     sealed: the job has a token
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/log.h"
#include "base/process_setup.h"
#include "base/random.h"
#include "base/text.h"
#include "elastic/board/board.h"
#include "store/seal/sealed_stores.h"
#include "store/tcp_store_maker.h"
#include "store/torch_log.h"

namespace keel {
namespace {

constexpr Duration kLimit = std::chrono::seconds(120);
// One process connects one by one and looks through its sockets each time, which the processes of
// a job need not: small shares keep that out of the figure.
constexpr int kHostsPerProcess = 20;

double Seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

Duration CpuOf(int who) {
  rusage used{};
  getrusage(who, &used);
  const auto time = [](const timeval& value) {
    return Duration(std::chrono::seconds(value.tv_sec)) +
           std::chrono::microseconds(value.tv_usec);
  };
  return time(used.ru_utime) + time(used.ru_stime);
}

// When the last of some hosts did what; the monotonic clock is the same for all processes.
struct Times {
  TimePoint registered;
  TimePoint decided;      // by the coordinator, and written
  TimePoint entered;
};

class Fleet {
 public:
  Fleet(int hosts, StoreMaker& stores, uint16_t port, const std::optional<Seal>& seal)
      : stores_(stores), port_(port), seal_(seal), random_(EntropySeed()) {
    policy_.hosts_min = hosts;
    policy_.hosts_max = hosts;
  }

  // `server`: of the board, for the host that keeps it.
  Status Arrive(std::unique_ptr<StoreServer> server) {
    const std::string incarnation = RandomId(random_, 16);
    Board::Events events;
    events.on_member_event = [this](const MemberEvent& event) { Note(event); };
    events.on_contact = [](TimePoint) {};
    events.on_decision = [this](const Decision& decision) {
      if (decision.verdict == Decision::Verdict::kForm) times_.decided = RealClock().Monotonic();
    };
    events.on_trouble = [this](const Status& status) {
      if (!status.ok()) trouble_ = status.error().message;
    };
    events.on_finished = [] {};
    BoardClientConfig member;
    member.job = "bench";
    Board::Where where = {.endpoints = {{"127.0.0.1", port_}},
                          .server = std::move(server),
                          .own_address = "127.0.0.1",
                          .incarnation = incarnation,
                          .seal = seal_};
    KEEL_TRY_ASSIGN(auto board, Board::Open(loop_, RealClock(), Stores(), std::move(where), member,
                                            policy_,
                                            random_.Fork("board"), std::move(events)));
    MemberRecord record;
    record.incarnation = incarnation;
    record.host = "host-" + incarnation;
    record.address = "127.0.0.1";
    record.seats.resize(1);
    board->Publish(record, {}, true);
    boards_.push_back(std::move(board));
    return Ok();
  }

  Result<Times> AwaitEpoch() {
    const TimePoint end = RealClock().Monotonic() + kLimit;
    while (entered_ < boards_.size()) {
      loop_.run_one_for(std::chrono::milliseconds(100));
      if (RealClock().Monotonic() < end) continue;
      return Error{Code::kTimeout, std::to_string(registered_) + " of " +
                                       std::to_string(boards_.size()) + " hosts have registered, " +
                                       std::to_string(entered_) + " entered; " + trouble_};
    }
    return times_;
  }

 private:
  // What a launcher sees of a store it remembers for itself alone.
  StoreMaker& Stores() {
    if (!seal_) return stores_;
    sealed_.push_back(std::make_unique<SealedStores>(stores_, *seal_, std::set<std::string>()));
    return *sealed_.back();
  }
  void Note(const MemberEvent& event) {
    if (std::holds_alternative<Registered>(event)) {
      ++registered_;
      times_.registered = RealClock().Monotonic();
    } else if (std::holds_alternative<EpochSeen>(event)) {
      ++entered_;
      times_.entered = RealClock().Monotonic();
    }
  }

  StoreMaker& stores_;
  const uint16_t port_;
  const std::optional<Seal> seal_;
  std::vector<std::unique_ptr<SealedStores>> sealed_;
  Random random_;
  JobPolicy policy_;
  boost::asio::io_context loop_;
  // Without it a loop that waits for its threads only would not wait at all.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      loop_.get_executor()};
  size_t registered_ = 0;
  size_t entered_ = 0;
  Times times_;
  std::string trouble_;
  std::vector<std::unique_ptr<Board>> boards_;
};

// A share of the hosts, in a process of its own, forked while there are no threads yet: starting
// the program anew would mostly measure how LibTorch is loaded. It begins when it is told the port,
// and tells its times when it has them.
class Share {
 public:
  static Result<Share> Fork(int hosts, int count, const std::optional<Seal>& seal) {
    KEEL_TRY_ASSIGN(PipeEnds down, MakePipe());
    KEEL_TRY_ASSIGN(PipeEnds up, MakePipe());
    const pid_t child = fork();
    if (child < 0) return Error{Code::kIo, std::string("forking: ") + std::strerror(errno)};
    Share share = child == 0 ? Share(std::move(down.read), std::move(up.write))
                             : Share(std::move(down.write), std::move(up.read));
    if (child != 0) return share;
    const Status done = share.Run(hosts, count, seal);
    if (!done.ok()) std::fprintf(stderr, "board_bench: %s\n", done.error().message.c_str());
    _exit(done.ok() ? 0 : 1);
  }

  Status Start(uint16_t port) {
    if (write(down_.number(), &port, sizeof port) == sizeof port) return Ok();
    return Error{Code::kPeerLost, "a share of the hosts did not wait to begin"};
  }

  Status AddTo(Times& times) {
    Times its;
    if (read(up_.number(), &its, sizeof its) != sizeof its) {
      return Error{Code::kPeerLost, "a share of the hosts gave no times"};
    }
    times.registered = std::max(times.registered, its.registered);
    times.entered = std::max(times.entered, its.entered);
    return Ok();
  }

 private:
  Share(Fd down, Fd up) : down_(std::move(down)), up_(std::move(up)) {}

  Status Run(int hosts, int count, const std::optional<Seal>& seal) {
    uint16_t port = 0;
    if (read(down_.number(), &port, sizeof port) != sizeof port) {
      return Error{Code::kPeerLost, "the bench ended before its hosts began"};
    }
    TcpStoreMaker stores;
    Fleet fleet(hosts, stores, port, seal);
    for (int i = 0; i < count; ++i) KEEL_TRY(fleet.Arrive(nullptr));
    KEEL_TRY_ASSIGN(const Times times, fleet.AwaitEpoch());
    if (write(up_.number(), &times, sizeof times) == sizeof times) return Ok();
    return Error{Code::kPeerLost, "the bench did not wait for the times"};
  }

  Fd down_;
  Fd up_;
};

Status Measure(int hosts, const std::optional<Seal>& seal) {
  KEEL_TRY(RaiseFileLimit());
  std::vector<Share> shares;
  for (int left = hosts - 1; left > 0; left -= kHostsPerProcess) {
    KEEL_TRY_ASSIGN(Share share, Share::Fork(hosts, std::min(left, kHostsPerProcess), seal));
    shares.push_back(std::move(share));
  }
  TcpStoreMaker stores;
  KEEL_TRY_ASSIGN(std::unique_ptr<StoreServer> server, stores.Serve("", 0));
  const uint16_t port = server->port();
  Fleet fleet(hosts, stores, port, seal);
  const TimePoint begin = RealClock().Monotonic();
  for (Share& share : shares) KEEL_TRY(share.Start(port));
  KEEL_TRY(fleet.Arrive(std::move(server)));
  KEEL_TRY_ASSIGN(Times times, fleet.AwaitEpoch());
  for (Share& share : shares) KEEL_TRY(share.AddTo(times));
  while (wait(nullptr) > 0) {}
  const Duration cpu = CpuOf(RUSAGE_SELF) + CpuOf(RUSAGE_CHILDREN);
  std::printf("formed after %.4f s (decided after %.4f s), arriving took %.3f s, cpu %.3f s\n",
              Seconds(times.entered - times.registered), Seconds(times.decided - times.registered),
              Seconds(times.registered - begin), Seconds(cpu));
  return Ok();
}

}  // namespace
}  // namespace keel

int main(int argc, char** argv) {
  using namespace keel;
  IgnoreSigpipe();
  RouteTorchLog();
  OmitTorchStacks();
  SetLogLevel(LogLevel::kError);
  const bool is_sealed = argc == 3 && std::string_view(argv[2]) == "sealed";
  const Result<int64_t> hosts = ParseInteger(argc == 2 || is_sealed ? argv[1] : "");
  if (!hosts.ok() || *hosts < 1 || *hosts > 10000) {
    std::fprintf(stderr, "usage: board_bench <hosts> [sealed]\n");
    return 2;
  }
  const Status done = Measure(static_cast<int>(*hosts),
                             is_sealed ? std::optional(Seal("a token for the bench"))
                                       : std::nullopt);
  if (done.ok()) return 0;
  std::fprintf(stderr, "board_bench: %s\n", done.error().message.c_str());
  return 1;
}
