// Jobs of several hosts with foreign workers: what each epoch costs and leaves behind, and hosts
// that are asked to leave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <set>

#include "tests/support/file_text.h"
#include "tests/tools/job_hosts.h"
#include "tests/tools/listening_sockets.h"

namespace keel {
namespace {

using ::testing::HasSubstr;

class KeelrunForeignHosts : public ::testing::Test, protected JobHosts {
 protected:
  // Says all about itself, and runs until it may finish; `trap`: what SIGTERM does to it.
  std::unique_ptr<Launched> StartTelling(const std::string& name, std::vector<std::string> options,
                                         const std::string& trap = "") {
    options.push_back("--no-python");
    return Start(name, options,
                 {"sh", "-c", trap + "echo up rank $RANK of $WORLD_SIZE restarts "
                              "$TORCHELASTIC_RESTART_COUNT port $MASTER_PORT pid $$$$ end; "
                              "while [ ! -e " + done_file() + " ]; do sleep 0.05; done"});
  }

  static constexpr const char* kSoon = "--rdzv-conf=last_call_timeout=0.2";
  static constexpr const char* kEndWell = "trap 'echo bye; exit 0' TERM; ";
};

// What the host listens on while its epochs come and go.
class Listening {
 public:
  explicit Listening(const Launched& host) : host_(host) {}

  // At the first epoch, then at each later one, told by a worker's line.
  void Note(const std::string& up) {
    const auto port = static_cast<uint16_t>(NumberAfter(up, "port"));
    const auto sockets = ListeningSockets(host_.pid());
    if (epochs_++ == 0) at_start_ = sockets.size();
    // The store of the epoch before may stay, for workers that were just stopped.
    EXPECT_LE(sockets.size(), at_start_ + 1) << host_.Output();
    bool is_new = false;   // the socket, not the port, which may be given out again
    for (const auto& [socket, number] : sockets) {
      is_new |= seen_.insert(socket).second && number == port;
    }
    EXPECT_TRUE(is_new) << up << "\n" << host_.Output();
    // Whoever inherits a store's socket keeps its port.
    EXPECT_TRUE(ListeningSockets(static_cast<pid_t>(NumberAfter(up, "pid"))).empty());
  }

  void ExpectAllClosed() const {
    const std::set<uint64_t> all = AllListeningSockets();
    for (const uint64_t socket : seen_) EXPECT_EQ(all.count(socket), 0U);
  }

 private:
  const Launched& host_;
  int epochs_ = 0;
  size_t at_start_ = 0;
  std::set<uint64_t> seen_;
};

TEST_F(KeelrunForeignHosts, EpochsLeaveNoPortBehind) {
  constexpr int kKills = 5;
  const auto first = StartTelling("first", {"--nnodes=1:2", "--max-restarts=20", kSoon});
  Listening listening(*first);
  std::string up = first->Await("^up rank 0 of 1 restarts 0 ");
  listening.Note(up);
  const size_t at_start = ListeningSockets(first->pid()).size();
  EXPECT_GE(at_start, 3U);   // the board, the presence of others, the epoch
  for (int kills = 1; kills <= kKills; ++kills) {
    SignalPidIn(up, SIGKILL);
    up = first->Await("^up rank 0 of 1 restarts " + std::to_string(kills) + " ");
    listening.Note(up);
  }
  // A host comes, goes and comes: two epochs each time.
  for (int visits = 1; visits <= 3; ++visits) {
    const auto second = StartTelling("second", {"--nnodes=1:2", "--max-restarts=20"});
    listening.Note(first->Await("^up rank 0 of 2 ", visits));
    EXPECT_EQ(ListeningSockets(second->pid()).size(), 1U) << "its peer port alone";
    second->Kill();
    // After the first attempt and its restarts.
    listening.Note(first->Await("^up rank 0 of 1 ", 1 + kKills + visits));
  }
  LetFinish();
  EXPECT_EQ(first->ExitCode(), 0) << first->Output();
  listening.ExpectAllClosed();
  EXPECT_TRUE(AwaitNoneMarked(mark()));
}

TEST_F(KeelrunForeignHosts, AComingAndALeavingHostSpendNoRestart) {
  // None is allowed.
  const auto first = StartTelling("first", {"--nnodes=1:2", "--max-restarts=0", kSoon});
  const std::string alone = first->Await("^up rank 0 of 1 restarts 0 ");
  const auto second = StartTelling("second", {"--nnodes=1:2", "--max-restarts=0"});
  const std::string here = first->Await("^up rank 0 of 2 restarts 0 ");
  const std::string there = second->Await("^up rank 1 of 2 restarts 0 ");
  EXPECT_EQ(NumberAfter(here, "port"), NumberAfter(there, "port"));
  EXPECT_NE(NumberAfter(here, "port"), NumberAfter(alone, "port"));
  second->Kill();
  first->Await("^up rank 0 of 1 restarts 0 ", 2);
  LetFinish();
  EXPECT_EQ(first->ExitCode(), 0) << first->Output();
  EXPECT_EQ(first->Count("^up"), 3) << first->Output();
  EXPECT_THAT(first->Output(), HasSubstr("joined"));
  EXPECT_TRUE(AwaitNoneMarked(mark()));
}

// What was spent before is what the newcomer is told, too.
TEST_F(KeelrunForeignHosts, ANewcomerIsToldOfTheRestartsThatWereSpent) {
  const auto first = StartTelling("first", {"--nnodes=1:2", "--max-restarts=3", kSoon});
  SignalPidIn(first->Await("^up rank 0 of 1 restarts 0 "), SIGKILL);
  first->Await("^up rank 0 of 1 restarts 1 ");
  const auto second = StartTelling("second", {"--nnodes=1:2", "--max-restarts=3"});
  first->Await("^up rank 0 of 2 restarts 1 ");
  SignalPidIn(second->Await("^up rank 1 of 2 restarts 1 "), SIGKILL);
  first->Await("^up rank 0 of 2 restarts 2 ");
  second->Await("^up rank 1 of 2 restarts 2 ");
  LetFinish();
  EXPECT_EQ(first->ExitCode(), 0) << first->Output();
  EXPECT_EQ(second->ExitCode(), 0) << second->Output();
  EXPECT_TRUE(AwaitNoneMarked(mark()));
}

TEST_F(KeelrunForeignHosts, AHostThatIsAskedToLeaveDoesAndTheOtherGoesOn) {
  const auto first = StartTelling("first", {"--nnodes=1:3", kSoon});
  first->Await("^up rank 0 of 1 ");
  // Takes its time, so that the host says that it leaves before it is gone: of one whose worker
  // ends at once, the others may learn only that it left.
  const std::string seen = folder().File("seen");
  const auto well = StartTelling(
      "well", {"--nnodes=1:3"},
      "trap 'while [ $WORLD_SIZE = 3 ] && [ ! -e " + seen +
          " ]; do sleep 0.05; done; echo bye; exit 0' TERM; ");
  well->Await("^up rank 1 of 2 restarts 0 ");
  const auto badly = StartTelling("badly", {"--nnodes=1:3"});
  well->Await("^up rank 1 of 3 restarts 0 ");
  badly->Await("^up rank 2 of 3 restarts 0 ");
  first->Await("^up rank 0 of 3 restarts 0 ");
  // Its worker ends well: nothing is lost.
  well->Signal(SIGTERM);
  first->Await("epoch-breaks .* leaves: SIGTERM");
  WriteFile(seen, "");
  EXPECT_EQ(well->ExitCode(), 75) << well->Output();
  EXPECT_GE(well->Count("^bye"), 1) << well->Output();
  first->Await("^up rank 0 of 2 restarts 0 ", 2);
  badly->Await("^up rank 1 of 2 restarts 0 ");
  // Its worker dies of it: whatever that had in memory is lost.
  badly->Signal(SIGTERM);
  EXPECT_EQ(badly->ExitCode(), 77) << badly->Output();
  first->Await("^up rank 0 of 1 restarts 0 ", 2);
  LetFinish();
  EXPECT_EQ(first->ExitCode(), 0) << first->Output();
  EXPECT_TRUE(AwaitNoneMarked(mark()));
}

TEST_F(KeelrunForeignHosts, WhereTooFewWouldStayAStopOfOneStopsAll) {
  const auto first = StartTelling("first", {"--nnodes=2"}, kEndWell);
  const auto second = StartTelling("second", {"--nnodes=2"}, kEndWell);
  first->Await("^up rank [01] of 2 ");
  second->Await("^up rank [01] of 2 ");
  second->Signal(SIGTERM);
  EXPECT_EQ(second->ExitCode(), 75) << second->Output();
  EXPECT_EQ(first->ExitCode(), 75) << first->Output();
  EXPECT_EQ(first->Count("^bye"), 1) << first->Output();
  EXPECT_TRUE(AwaitNoneMarked(mark()));
}

TEST_F(KeelrunForeignHosts, TheStoresHostIsAskedToLeaveAndTheOtherGoesOn) {
  const auto first = StartTelling("first", {"--nnodes=1:2"}, kEndWell);
  first->Await("job-started.*hosted_here=true");
  const auto second = StartTelling("second", {"--nnodes=1:2"});
  first->Await("^up rank 0 of 2 ");
  second->Await("^up rank 1 of 2 ");
  first->Signal(SIGTERM);
  EXPECT_EQ(first->ExitCode(), 75) << first->Output();
  EXPECT_EQ(first->Count("^bye"), 1) << first->Output();
  second->Await("^up rank 0 of 1 restarts 0 ");
  LetFinish();
  EXPECT_EQ(second->ExitCode(), 0) << second->Output();
  EXPECT_TRUE(AwaitNoneMarked(mark()));
}

}  // namespace
}  // namespace keel
