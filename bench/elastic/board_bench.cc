// How long the board takes to form an epoch of N hosts: N times what a supervisor has of it (Board:
// threads, connections to one real TCPStore, presence), in one process, without any worker.
// Prints "formed after <s> s, cpu <s> s": from the arrival of the last host until every host has
// read the epoch, and the processor time of all since the first one's arrival.
// Usage: board_bench <hosts>
#include <sys/resource.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/process_setup.h"
#include "base/random.h"
#include "base/text.h"
#include "elastic/board.h"
#include "store/tcp_store_maker.h"
#include "store/torch_log.h"

namespace keel {
namespace {

constexpr Duration kLimit = std::chrono::seconds(120);
constexpr int kCrowd = 10;

double Seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

double CpuSeconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

class Fleet {
 public:
  Fleet(int count, StoreMaker& stores, uint16_t port)
      : count_(count), stores_(stores), port_(port), random_(EntropySeed()) {
    policy_.hosts_min = count;
    policy_.hosts_max = count;
  }

  Status Arrive() {
    const int number = static_cast<int>(boards_.size());
    const std::string incarnation = RandomId(random_, 16);
    Board::Events events;
    events.on_member_event = [this](const MemberEvent& event) {
      if (std::holds_alternative<Registered>(event)) ++registered_;
      if (std::holds_alternative<EpochSeen>(event)) ++entered_;
    };
    events.on_contact = [](TimePoint) {};
    events.on_decision = [](const Decision&) {};
    events.on_trouble = [this](const Status& status) {
      if (!status.ok()) ++troubles_;
    };
    events.on_finished = [] {};
    MemberConfig member;
    member.job = "bench";
    const Board::Where where = {.host = "127.0.0.1",
                                .port = port_,
                                .is_ours = number == 0,
                                .own_address = "127.0.0.1",
                                .incarnation = incarnation};
    KEEL_TRY_ASSIGN(auto board, Board::Open(loop_, RealClock(), stores_, where, member, policy_,
                                            random_.Fork("board"), std::move(events)));
    MemberRecord record;
    record.incarnation = incarnation;
    record.host = "host" + std::to_string(number);
    record.address = "127.0.0.1";
    record.seats.resize(1);
    board->Publish(record, true);
    boards_.push_back(std::move(board));
    return Ok();
  }

  // Until all that have arrived are on the board.
  Status AwaitRegistered() {
    return Await(registered_, static_cast<int>(boards_.size()), "registered");
  }
  Status AwaitEpoch() { return Await(entered_, count_, "entered the epoch"); }

 private:
  Status Await(const int& number, int wanted, const std::string& what) {
    const TimePoint end = RealClock().Monotonic() + kLimit;
    while (number < wanted) {
      loop_.restart();
      loop_.run_one_for(std::chrono::milliseconds(100));
      if (RealClock().Monotonic() < end) continue;
      return Error{Code::kTimeout, "only " + std::to_string(number) + " of " +
                                       std::to_string(wanted) + " hosts have " + what + "; " +
                                       std::to_string(troubles_) + " lost the store"};
    }
    return Ok();
  }

  const int count_;
  StoreMaker& stores_;
  const uint16_t port_;
  Random random_;
  JobPolicy policy_;
  boost::asio::io_context loop_;
  int registered_ = 0;
  int entered_ = 0;
  int troubles_ = 0;
  std::vector<std::unique_ptr<Board>> boards_;
};

Status Measure(int count) {
  KEEL_TRY(RaiseFileLimit());
  TcpStoreMaker stores;
  KEEL_TRY_ASSIGN(const std::unique_ptr<StoreServer> server, stores.Serve(0));
  const double cpu_before = CpuSeconds();
  Fleet fleet(count, stores, server->port());
  for (int i = 0; i + 1 < count; ++i) {
    KEEL_TRY(fleet.Arrive());
    // One process connects one by one, so a crowd would be a queue that no job has.
    if (i % kCrowd == 0 || i + 2 == count) KEEL_TRY(fleet.AwaitRegistered());
  }
  const TimePoint last = RealClock().Monotonic();
  KEEL_TRY(fleet.Arrive());
  KEEL_TRY(fleet.AwaitEpoch());
  const Duration took = RealClock().Monotonic() - last;
  std::printf("formed after %.4f s, cpu %.3f s\n", Seconds(took), CpuSeconds() - cpu_before);
  return Ok();
}

}  // namespace
}  // namespace keel

int main(int argc, char** argv) {
  using namespace keel;
  IgnoreSigpipe();
  RouteTorchLog();
  SetLogLevel(LogLevel::kError);
  const Result<int64_t> count = ParseInteger(argc == 2 ? argv[1] : "");
  if (!count.ok() || *count < 1 || *count > 10000) {
    std::fprintf(stderr, "usage: board_bench <hosts>\n");
    return 2;
  }
  const Status measured = Measure(static_cast<int>(*count));
  if (measured.ok()) return 0;
  std::fprintf(stderr, "board_bench: %s\n", measured.error().message.c_str());
  return 1;
}
