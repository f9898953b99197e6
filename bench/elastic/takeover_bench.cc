// What it takes when the coordinator of N hosts is killed: N times what a supervisor has of the job
// (Board: threads, connections to real TCPStores, presence; HostMachine) with workers in place that
// are only acted, spread over some processes.
// Prints for each N, median and worst of the runs: from SIGKILL of the coordinator's process until
// each other host has the next epoch; and the processor time of a host, a second while the job
// trains, and for the takeover. With several N, which take turns, also the ratios of the last to
// the first.
// Usage: takeover_bench [--runs R] [--workers W] [--json] N...
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/log.h"
#include "base/process_setup.h"
#include "base/random.h"
#include "base/text.h"
#include "elastic/board/board.h"
#include "elastic/decisions/host_machine.h"
#include "elastic/process/proc_file.h"
#include "store/tcp_store_maker.h"
#include "store/torch_log.h"

namespace keel {
namespace {

namespace asio = boost::asio;

constexpr Duration kLimit = std::chrono::seconds(40);
// Of the steady state.
constexpr Duration kSettleTime = std::chrono::seconds(3);
constexpr Duration kWatchTime = std::chrono::seconds(6);
constexpr Duration kStepTime = std::chrono::milliseconds(250);
// As in board_bench.cc. The hosts that may come to coordinate have processes of their own.
constexpr int kHostsPerProcess = 20;

double Seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

// --- A host, in the process of its share ---

// Acts the workers of one host: they are ready at once, make steps, and park when they are told.
class ActedHost {
 public:
  using OnEntered = std::function<void(int64_t epoch)>;

  static Result<std::unique_ptr<ActedHost>> Open(asio::io_context& loop, StoreMaker& stores,
                                                 const JobPolicy& policy, int workers,
                                                 uint16_t port, bool keeps, Random random,
                                                 std::function<void()> on_registered,
                                                 OnEntered on_entered) {
    std::unique_ptr<ActedHost> host(new ActedHost(loop, workers, random, std::move(on_entered)));
    std::unique_ptr<StoreServer> server;
    if (keeps) {
      KEEL_TRY_ASSIGN(server, stores.Serve("", port));
    }
    Board::Events events;
    events.on_member_event = [one = host.get(), on_registered](const MemberEvent& event) {
      if (std::holds_alternative<Registered>(event)) on_registered();
      one->machine_.OnMemberEvent(event, RealClock().Monotonic());
      one->Act();
    };
    events.on_contact = [one = host.get()](TimePoint beat) { one->machine_.OnContact(beat); };
    events.on_decision = [](const Decision&) {};
    events.on_trouble = [](const Status&) {};
    events.on_reason = [](const Error&) {};
    events.on_lost = [one = host.get()](const std::string& coordinator, int64_t promised,
                                        bool refused) {
      one->machine_.OnBoardLost(coordinator, promised, refused, RealClock().Monotonic());
      one->Act();
    };
    events.on_no_store = [](const Error&) {};
    events.on_finished = [] {};
    BoardClientConfig member;
    member.job = "bench";
    Board::Where where = {.endpoints = {{"127.0.0.1", port}},
                          .server = std::move(server),
                          .own_address = "127.0.0.1",
                          .incarnation = host->machine_.record().incarnation};
    KEEL_TRY_ASSIGN(host->board_, Board::Open(loop, RealClock(), stores, std::move(where), member,
                                              policy, random.Fork("board"), std::move(events)));
    host->Act();
    host->Step();
    return host;
  }

  // The group sees that one of its workers is gone.
  void BreakGroup() {
    for (size_t i = 0; i < steps_.size(); ++i) Say(i, ParkedMessage{epoch_, steps_[i], false});
  }

 private:
  ActedHost(asio::io_context& loop, int workers, Random& random, OnEntered on_entered)
      : loop_(loop),
        timer_(loop),
        step_timer_(loop),
        on_entered_(std::move(on_entered)),
        machine_(ConfigOf(workers, RandomId(random, 16)), random.Fork("host"),
                 RealClock().Monotonic()),
        steps_(workers, 0) {}

  static HostConfig ConfigOf(int workers, const std::string& incarnation) {
    HostConfig config;
    config.incarnation = incarnation;
    config.host = "host-" + incarnation;
    config.address = "127.0.0.1";
    config.seats = workers;
    return config;
  }

  void Say(size_t index, WorkerMessage message) {
    asio::post(loop_, [this, index, message = std::move(message)] {
      machine_.OnWorkerMessage(static_cast<int>(index), message, RealClock().Monotonic());
      Act();
    });
  }

  void Act() {
    for (;;) {
      const std::vector<HostAction> actions = machine_.TakeActions();
      if (actions.empty()) break;
      for (const HostAction& action : actions) Do(action);
    }
    const TimePoint wake = machine_.NextWake();
    if (wake == kNever) return;
    timer_.expires_after(std::max(wake - RealClock().Monotonic(), Duration(0)));
    timer_.async_wait([this](const boost::system::error_code& failure) {
      if (failure) return;
      machine_.OnTime(RealClock().Monotonic());
      Act();
    });
  }

  void Do(const HostAction& action) {
    if (const auto* const start = std::get_if<StartWorker>(&action.what)) {
      HelloMessage hello;
      hello.fingerprint = "bench";
      Say(start->index, hello);
      Say(start->index, ReadyMessage{});
    } else if (const auto* const enter = std::get_if<EnterEpoch>(&action.what)) {
      epoch_ = enter->epoch.number;
      Say(enter->index, AtMessage{{++steps_[enter->index], 0, 0}});
      if (enter->index == 0) on_entered_(epoch_);
    } else if (const auto* const send = std::get_if<SendToWorker>(&action.what)) {
      const auto* const broken = std::get_if<BreakMessage>(&send->message);
      if (broken == nullptr) return;
      Say(send->index, ParkedMessage{broken->epoch, steps_[send->index], false});
    } else if (const auto* const publish = std::get_if<Publish>(&action.what)) {
      board_->Publish(machine_.record(), machine_.counted(), publish->hurry);
    } else if (const auto* const report = std::get_if<ReportBreak>(&action.what)) {
      board_->ReportBreak(report->record);
    } else if (!std::exchange(has_failed_, true)) {
      std::fprintf(stderr, "takeover_bench: a host does more than it should: %s\n",
                   action.why.c_str());
    }
  }

  void Step() {
    step_timer_.expires_after(kStepTime);
    step_timer_.async_wait([this](const boost::system::error_code& failure) {
      if (failure) return;
      const auto& seats = machine_.record().seats;
      for (size_t i = 0; i < seats.size(); ++i) {
        if (seats[i].state == SeatState::kRunning) Say(i, AtMessage{{++steps_[i], 0, 0}});
      }
      Step();
    });
  }

  asio::io_context& loop_;
  asio::steady_timer timer_;
  asio::steady_timer step_timer_;
  const OnEntered on_entered_;
  HostMachine machine_;
  std::vector<int64_t> steps_;
  int64_t epoch_ = 0;
  bool has_failed_ = false;
  std::unique_ptr<Board> board_;
};

// --- A share of the hosts ---

// What a share tells, in this order: that all of its hosts have registered; that all have the first
// epoch; and that all have the next one.
struct Told {
  TimePoint at;
  int64_t number = 0;
};
// What a share is told: the port; and then that the group of the epoch broke.
using Command = uint16_t;

class Share {
 public:
  struct Plan {
    int hosts = 0;      // of the job
    int workers = 1;    // of each
    int count = 0;      // of hosts here
    bool keeps = false;
  };

  // Forks it while there are no threads yet.
  static Result<Share> Fork(const Plan& plan) {
    KEEL_TRY_ASSIGN(PipeEnds down, MakePipe());
    KEEL_TRY_ASSIGN(PipeEnds up, MakePipe());
    const pid_t child = fork();
    if (child < 0) return Error{Code::kIo, std::string("forking: ") + std::strerror(errno)};
    if (child != 0) return Share(child, std::move(down.write), std::move(up.read));
    up.read.Close();
    down.write.Close();
    const Status done = Run(plan, down.read, up.write);
    std::fprintf(stderr, "takeover_bench: %s\n", done.ok() ? "over" : done.error().message.c_str());
    _exit(1);
  }

  Status Say(Command command) {
    if (write(down_.number(), &command, sizeof command) == sizeof command) return Ok();
    return Error{Code::kPeerLost, "a share of the hosts does not listen"};
  }

  Result<Told> Hear(TimePoint deadline) {
    Told told;
    if (!WaitReadable(up_, deadline)) return Error{Code::kTimeout, "some hosts did not come"};
    if (read(up_.number(), &told, sizeof told) == sizeof told) return told;
    return Error{Code::kPeerLost, "a share of the hosts has ended"};
  }

  Duration Cpu() const {
    const auto stat = ReadProcFile("/proc/" + std::to_string(child_) + "/stat");
    if (!stat) return Duration(0);
    const std::vector<std::string> words = SplitList(stat->substr(stat->rfind(')') + 2), ' ');
    const Result<int64_t> user = ParseInteger(words.at(11)), system = ParseInteger(words.at(12));
    if (!user.ok() || !system.ok()) return Duration(0);
    return std::chrono::nanoseconds(1'000'000'000 / sysconf(_SC_CLK_TCK)) * (*user + *system);
  }

  void Kill() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(std::exchange(child_, -1), nullptr, 0);
  }

 private:
  Share(pid_t child, Fd down, Fd up) : child_(child), down_(std::move(down)), up_(std::move(up)) {}

  static Status Run(const Plan& plan, Fd& down, Fd& up);

  pid_t child_;
  Fd down_;
  Fd up_;
};

Status Share::Run(const Plan& plan, Fd& down, Fd& up) {
  Command port = 0;
  if (read(down.number(), &port, sizeof port) != sizeof port) _exit(0);
  asio::io_context loop;
  const auto work = asio::make_work_guard(loop);
  TcpStoreMaker stores;
  JobPolicy policy;
  policy.hosts_min = plan.hosts - 1;
  policy.hosts_max = plan.hosts;
  Random random(EntropySeed());
  const auto tell = [&up](int64_t number) {
    const Told told{RealClock().Monotonic(), number};
    if (write(up.number(), &told, sizeof told) != sizeof told) _exit(0);
  };
  int registered = 0, entered = 0;
  int64_t before = 0;
  std::vector<int64_t> epochs(plan.count, 0);
  std::vector<std::unique_ptr<ActedHost>> hosts;
  for (int i = 0; i < plan.count; ++i) {
    const auto on_registered = [&] {
      if (++registered == plan.count) tell(0);
    };
    const auto on_entered = [&, i](int64_t epoch) {
      if (epochs[i] <= before && epoch > before && ++entered == plan.count) tell(epoch);
      epochs[i] = epoch;
    };
    KEEL_TRY_ASSIGN(auto host, ActedHost::Open(loop, stores, policy, plan.workers, port, plan.keeps,
                                               random.Fork(std::to_string(i)), on_registered,
                                               on_entered));
    hosts.push_back(std::move(host));
  }
  asio::posix::stream_descriptor commands(loop, down.Release());
  Command command = 0;
  asio::async_read(commands, asio::buffer(&command, sizeof command),
                   [&](const boost::system::error_code& failure, size_t) {
                     if (failure) _exit(0);
                     before = *std::max_element(epochs.begin(), epochs.end());
                     entered = 0;
                     for (const auto& host : hosts) host->BreakGroup();
                   });
  loop.run();
  return Ok();
}

// --- One run ---

struct Figures {
  double takeover_s = 0;       // until the last host had the next epoch
  double steady_cpu_ms = 0;    // of a host, a second
  double coordinator_cpu_ms = 0;   // of that one, a second
  double takeover_cpu_ms = 0;  // of a host
};

Result<TimePoint> LastOf(std::vector<Share>& shares, size_t first) {
  TimePoint last{};
  const TimePoint deadline = RealClock().Monotonic() + kLimit;
  for (size_t i = first; i < shares.size(); ++i) {
    KEEL_TRY_ASSIGN(const Told told, shares[i].Hear(deadline));
    last = std::max(last, told.at);
  }
  return last;
}

Duration CpuOf(const std::vector<Share>& shares) {
  Duration sum{0};
  for (size_t i = 1; i < shares.size(); ++i) sum += shares[i].Cpu();
  return sum;
}

Result<Figures> Measure(std::vector<Share>& shares, int hosts, uint16_t port) {
  // The coordinator and its heirs come first, so that they have the first slots.
  const size_t early = std::min<size_t>(shares.size(), 1 + kHeirsMax);
  for (size_t i = 0; i < early; ++i) {
    KEEL_TRY(shares[i].Say(port));
    KEEL_TRY(shares[i].Hear(RealClock().Monotonic() + kLimit));
  }
  for (size_t i = early; i < shares.size(); ++i) KEEL_TRY(shares[i].Say(port));
  KEEL_TRY(LastOf(shares, early));
  KEEL_TRY(LastOf(shares, 0));
  RealClock().SleepUntil(RealClock().Monotonic() + kSettleTime);
  Figures figures;
  const TimePoint begin = RealClock().Monotonic();
  const Duration before = CpuOf(shares), before_first = shares[0].Cpu();
  RealClock().SleepUntil(begin + kWatchTime);
  const double watched = Seconds(RealClock().Monotonic() - begin);
  figures.coordinator_cpu_ms = 1e3 * Seconds(shares[0].Cpu() - before_first) / watched;
  figures.steady_cpu_ms =
      (1e3 * Seconds(CpuOf(shares) - before) / watched + figures.coordinator_cpu_ms) / hosts;
  const Duration cpu = CpuOf(shares);
  const TimePoint at = RealClock().Monotonic();
  shares[0].Kill();
  for (size_t i = 1; i < shares.size(); ++i) KEEL_TRY(shares[i].Say(0));
  KEEL_TRY_ASSIGN(const TimePoint last, LastOf(shares, 1));
  figures.takeover_s = Seconds(last - at);
  figures.takeover_cpu_ms = 1e3 * Seconds(CpuOf(shares) - cpu) / (hosts - 1);
  return figures;
}

Result<uint16_t> FreePort() {
  KEEL_TRY_ASSIGN(const ListenSocket socket, ListenSocket::Listen("", 0));
  return socket.port();
}

Result<Figures> RunOnce(int hosts, int workers) {
  KEEL_TRY_ASSIGN(const uint16_t port, FreePort());
  std::vector<Share> shares;
  int left = hosts;
  Result<Figures> figures = Error{Code::kInvalid, "no run"};
  while (left > 0) {
    const bool is_early = shares.size() <= kHeirsMax;
    const int count = is_early ? 1 : std::min(left, kHostsPerProcess);
    Result<Share> share = Share::Fork({hosts, workers, count, shares.empty()});
    if (!share.ok()) break;
    shares.push_back(*std::move(share));
    left -= count;
  }
  if (left == 0) figures = Measure(shares, hosts, port);
  for (Share& share : shares) share.Kill();
  return figures;
}

// --- All runs ---

struct Options {
  int runs = 1;
  int workers = 1;
  bool json = false;
  std::vector<int> hosts;
};

Result<Options> Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--json") {
      options.json = true;
      continue;
    }
    const bool is_option = word == "--runs" || word == "--workers";
    if (is_option && i + 1 == argc) return Error{Code::kInvalid, word + " needs a number"};
    KEEL_TRY_ASSIGN(const int64_t number, ParseInteger(is_option ? argv[++i] : word));
    if (number < 1 || number > 10000) return Error{Code::kInvalid, "1 to 10000, please"};
    if (word == "--runs") {
      options.runs = static_cast<int>(number);
    } else if (word == "--workers") {
      options.workers = static_cast<int>(number);
    } else {
      options.hosts.push_back(static_cast<int>(number));
    }
  }
  if (options.hosts.empty()) return Error{Code::kInvalid, "how many hosts?"};
  return options;
}

struct Spread {
  double median = 0, worst = 0;
};

Spread SpreadOf(const std::vector<Figures>& all, double Figures::* member) {
  std::vector<double> values;
  for (const Figures& one : all) values.push_back(one.*member);
  std::sort(values.begin(), values.end());
  return values.empty() ? Spread{} : Spread{values[values.size() / 2], values.back()};
}

void Print(const Options& options, const std::vector<std::vector<Figures>>& all) {
  for (size_t i = 0; i < all.size(); ++i) {
    const Spread takeover = SpreadOf(all[i], &Figures::takeover_s);
    const Spread steady = SpreadOf(all[i], &Figures::steady_cpu_ms);
    const Spread coordinator = SpreadOf(all[i], &Figures::coordinator_cpu_ms);
    const Spread cpu = SpreadOf(all[i], &Figures::takeover_cpu_ms);
    std::printf(options.json
                    ? "{\"hosts\": %d, \"workers\": %d, \"came\": %zu, \"of\": %d, "
                      "\"takeover_s\": [%.3f, %.3f], \"host_cpu_ms_per_s\": [%.3f, %.3f], "
                      "\"coordinator_cpu_ms_per_s\": [%.1f, %.1f], "
                      "\"takeover_host_cpu_ms\": [%.2f, %.2f]}\n"
                    : "%d hosts of %d: %zu of %d came; next epoch after %.3f s (worst %.3f); "
                      "a host takes %.3f ms/s (worst %.3f), the coordinator's %.1f (worst %.1f), "
                      "and %.2f ms for the takeover (worst %.2f)\n",
                options.hosts[i], options.workers, all[i].size(), options.runs, takeover.median,
                takeover.worst, steady.median, steady.worst, coordinator.median, coordinator.worst,
                cpu.median, cpu.worst);
  }
  if (all.size() < 2) return;
  const auto ratio = [&](double Figures::* member) {
    const double first = SpreadOf(all.front(), member).median;
    return first > 0 ? SpreadOf(all.back(), member).median / first : 0;
  };
  std::printf(options.json
                  ? "{\"steady_ratio\": %.2f, \"takeover_ratio\": %.2f}\n"
                  : "processor time of a host, ratio: %.2f training, %.2f for the takeover\n",
              ratio(&Figures::steady_cpu_ms), ratio(&Figures::takeover_cpu_ms));
}

Status RunAll(const Options& options) {
  KEEL_TRY(RaiseFileLimit());
  std::vector<std::vector<Figures>> all(options.hosts.size());
  for (int run = 0; run < options.runs; ++run) {
    for (size_t i = 0; i < all.size(); ++i) {
      const Result<Figures> figures = RunOnce(options.hosts[i], options.workers);
      if (!figures.ok()) {
        std::fprintf(stderr, "takeover_bench: %s\n", figures.error().message.c_str());
        continue;
      }
      std::fprintf(stderr, "%d: %.3f s, %.3f ms/s (%.1f), %.2f ms\n", options.hosts[i],
                   figures->takeover_s, figures->steady_cpu_ms, figures->coordinator_cpu_ms,
                   figures->takeover_cpu_ms);
      all[i].push_back(*figures);
    }
  }
  Print(options, all);
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
  const Result<Options> options = Parse(argc, argv);
  if (!options.ok()) {
    std::fprintf(stderr, "usage: takeover_bench [--runs R] [--workers W] [--json] N...: %s\n",
                 options.error().message.c_str());
    return 2;
  }
  const Status done = RunAll(*options);
  if (done.ok()) return 0;
  std::fprintf(stderr, "takeover_bench: %s\n", done.error().message.c_str());
  return 1;
}
