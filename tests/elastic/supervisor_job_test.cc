// The supervisor with real workers and a board in memory: what needs no LibTorch. Whole launchers
// are in tests/tools/keelrun_*_test.cc.
#include "elastic/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <sstream>

#include "base/log.h"
#include "base/posix_files.h"
#include "elastic/launch/meeting.h"
#include "elastic/protocol/board_keys.h"
#include "elastic/protocol/control_link.h"
#include "elastic/protocol/exit_codes.h"
#include "elastic/protocol/records.h"
#include "store/memory_store.h"
#include "store/own_address.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/sanitizers.h"
#include "tests/support/file_text.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

// Every port leads to the one board.
class MemoryStoreMaker : public StoreMaker {
 public:
  Result<std::unique_ptr<StoreServer>> Adopt(ListenSocket socket) override {
    const int call = ++adopted_;
    if (call >= refused_from && call < refused_until) {
      return Error{Code::kForeign, "no descriptors are left"};
    }
    return std::unique_ptr<StoreServer>(new Server(socket.port()));
  }
  Result<std::unique_ptr<Store>> Connect(const std::string&, uint16_t, Duration,
                                         const CancelToken&) override {
    return board.Connect("supervisor");
  }

  MemoryBoard board{RealClock()};
  int refused_from = 0, refused_until = 0;   // of the stores, by number from 1

 private:
  std::atomic<int> adopted_{0};
  class Server : public StoreServer {
   public:
    explicit Server(uint16_t port) : port_(port) {}
    uint16_t port() const override { return port_; }

   private:
    const uint16_t port_;
  };
};

class SupervisorJob : public ::testing::Test {
 protected:
  LaunchConfig Config(int workers, const std::string& script) const {
    LaunchConfig config;
    config.meeting = LaunchConfig::Meeting::kStandalone;
    config.endpoint_port = 0;
    config.workers_per_host = workers;
    config.program = {WorkerProgram::Kind::kBinary, "", "sh", {"-c", script}};
    config.logs.log_dir = folder_.File("logs");
    config.shutdown_limit = 5s;
    return config;
  }

  int Run(const LaunchConfig& config, JobHome* home = nullptr) {
    auto supervisor = Supervisor::Open(
        config, {stores_, files_, RealClock(), Random(EntropySeed()),
                 With(OwnEnvironment(), {{"OUT", folder_.File("out")}}), home});
    EXPECT_OK(supervisor);
    if (!supervisor.ok()) return -1;
    const int code = (*supervisor)->Run();
    summary_ = JobSummaryText((*supervisor)->story().summary());
    failures_ = (*supervisor)->story().failures();
    return code;
  }

  TempDir folder_;
  PosixFiles files_;
  MemoryStoreMaker stores_;
  std::string summary_;
  std::vector<WorkerFailure> failures_;
};

TEST_F(SupervisorJob, EndsWithItsWorkers) {
  EXPECT_EQ(Run(Config(3, "echo $RANK/$WORLD_SIZE >> $OUT")), kExitFinished) << summary_;
  const std::string out = ReadFile(folder_.File("out"));
  for (const char* line : {"0/3\n", "1/3\n", "2/3\n"}) EXPECT_THAT(out, HasSubstr(line));
}

// Whoever takes the port between two attempts may be gone before the next one.
TEST_F(SupervisorJob, WorkersOfOneHostComeBackToTheGivenPortOnceItIsFree) {
  LaunchConfig config = Config(1, "echo at $MASTER_PORT >> $OUT; exit 7");
  config.meeting = LaunchConfig::Meeting::kStatic;
  config.hosts = {1, 1};
  config.node_rank = 0;
  config.endpoint_host = "127.0.0.1";
  config.endpoint_port = 0;
  config.restarts_max = 2;
  stores_.refused_from = 2;   // after the first one
  stores_.refused_until = 3;
  EXPECT_EQ(Run(config), kExitFailed);
  std::istringstream out(ReadFile(folder_.File("out")));
  std::string word, first, second, third;
  out >> word >> first >> word >> second >> word >> third;
  EXPECT_NE(first, second);
  EXPECT_EQ(first, third);
}

TEST_F(SupervisorJob, StartsAllAgainAsOftenAsAllowedAndNamesWhoFailed) {
  LaunchConfig config = Config(2, "echo $TORCHELASTIC_RESTART_COUNT >> $OUT; "
                                  "[ $RANK = 1 ] && exit 7; exec sleep 1000");
  config.restarts_max = 1;
  EXPECT_EQ(Run(config), kExitFailed);
  EXPECT_THAT(ReadFile(folder_.File("out")), HasSubstr("1"));
  ASSERT_EQ(failures_.size(), 2U);
  EXPECT_EQ(failures_[0].rank, 1);
  EXPECT_EQ(failures_[0].status, ExitStatus::Exited(7));
  EXPECT_EQ(failures_[1].rank, 0) << "who was stopped because of it";
  EXPECT_EQ(failures_[1].status, ExitStatus::Killed(SIGTERM));
  EXPECT_THAT(summary_, HasSubstr("went on as epoch 2"));
}

TEST_F(SupervisorJob, AStoreThatIsCutOffForAMomentIsReachedAgain) {
  for (int skip : {5, 20, 40}) stores_.board.PlanFault("supervisor", skip, StoreFault::kCut);
  EXPECT_EQ(Run(Config(2, "sleep 0.3")), kExitFinished) << summary_;
}

// The first store is the job's own, the second one that of its first epoch.
TEST_F(SupervisorJob, AnEpochsStoreThatCannotBeOpenedIsToldOfAndTriedAgain) {
  stores_.refused_from = 2;
  stores_.refused_until = 6;
  std::string log;
  LogToCallback([&](std::string_view line) { log += std::string(line); });
  EXPECT_EQ(Run(Config(2, "true")), kExitFinished) << summary_;
  LogToStderr();
  EXPECT_THAT(log, HasSubstr("store-not-opened reason=\"no descriptors are left\""));
  EXPECT_EQ(log.find("store-not-opened"), log.rfind("store-not-opened")) << "told once";
}

TEST_F(SupervisorJob, GarbageOnTheControlLinkIsAFailureWithAReason) {
  LaunchConfig config = Config(2, "[ $RANK = 1 ] && echo rubbish >&$KEEL_CONTROL_FD; "
                                  "exec sleep 1000");
  config.program.name = "bash";   // sh knows descriptors of one digit only
  EXPECT_EQ(Run(config), kExitFailed);
  EXPECT_THAT(summary_, HasSubstr("broke its control link"));
  EXPECT_THAT(summary_, HasSubstr("rubbish"));
}

TEST_F(SupervisorJob, GarbageOfAWorkerThatEndsAtOnceIsToldOfToo) {
  LaunchConfig config = Config(1, "echo rubbish >&$KEEL_CONTROL_FD");
  config.program.name = "bash";
  std::string log;
  LogToCallback([&](std::string_view line) { log += std::string(line) + "\n"; });
  EXPECT_EQ(Run(config), kExitFinished) << summary_;
  LogToStderr();
  EXPECT_THAT(log, ContainsRegex("control-link-garbage pid=[0-9]+ reason=.*rubbish"));
}

// One that says that it is done, and stays, was started again for ever.
TEST_F(SupervisorJob, AWorkerThatSaidGoodbyeAndStaysSpendsRestartsUntilNoneIsLeft) {
  std::string said;
  for (const WorkerMessage& message : {WorkerMessage(HelloMessage{kControlVersion, "none"}),
                                       WorkerMessage(ReadyMessage{0}),
                                       WorkerMessage(ByeMessage{0, "finished"})}) {
    ASSERT_OK_AND_ASSIGN(const std::string line, EncodeMessage(message));
    said += line;
  }
  WriteFile(folder_.File("said"), said);
  LaunchConfig config = Config(1, "echo >> $OUT; cat " + folder_.File("said") +
                                      " >&$KEEL_CONTROL_FD; exec sleep 1000");
  config.program.name = "bash";
  config.restarts_max = 2;
  config.shutdown_limit = 100ms;
  EXPECT_EQ(Run(config), kExitFailed) << summary_;
  EXPECT_EQ(ReadFile(folder_.File("out")).size(), 3u) << "one start, two restarts";
  EXPECT_THAT(summary_, HasSubstr("rank 0 on " + OwnHostName()));
  EXPECT_THAT(summary_, HasSubstr("said goodbye, but did not end within"));
}

TEST_F(SupervisorJob, AMessageOfANewerProgramIsToldOfOnce) {
  LaunchConfig config = Config(1, "for i in $(seq 300); do echo {'\"type\":\"sing\"'}; "
                                  "echo {'\"type\":\"zzz'$i'\"'}; done >&$KEEL_CONTROL_FD");
  config.program.name = "bash";
  std::string log;
  LogToCallback([&](std::string_view line) { log += std::string(line) + "\n"; });
  EXPECT_EQ(Run(config), kExitFinished) << summary_;
  LogToStderr();
  const auto count = [&](const std::string& word) {
    int found = 0;
    for (size_t at = 0; (at = log.find(word, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(count("unknown-message"), 8) << log;
  EXPECT_EQ(count("type=sing"), 1) << log;
  EXPECT_EQ(count("further unknown types are not logged"), 1) << log;
}

// With each number of free descriptors something else is the first to get none.
TEST_F(SupervisorJob, WithoutDescriptorsItSaysSo) {
  if (kUnderAddressSanitizer) {
    GTEST_SKIP() << "UBSan needs a descriptor for its own checks of types";
  }
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(0);
  close(next);
  int refused = 0;
  for (int free = 0; free < 24; ++free) {
    const rlimit few = {static_cast<rlim_t>(next + free), before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    const auto supervisor = Supervisor::Open(
        Config(1, "true"), {stores_, files_, RealClock(), Random(1), OwnEnvironment()});
    refused += supervisor.ok() ? 0 : 1;
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_GE(refused, 5);
}

TEST_F(SupervisorJob, AForeignWorkerMayCloseTheLink) {
  LaunchConfig config = Config(1, "exec {KEEL_CONTROL_FD}>&-; sleep 0.3");
  config.program.name = "bash";
  EXPECT_EQ(Run(config), kExitFinished) << summary_;
}

TEST_F(SupervisorJob, AWorkerInPlaceFinishes) {
  LaunchConfig config = Config(2, "");
  config.program = {WorkerProgram::Kind::kBinary, "", KEEL_BIN_DIR "/survivor",
                    {folder_.File("out")}};
  WriteFile(folder_.File("out"), "");
  EXPECT_EQ(Run(config), kExitFinished) << summary_;
}

// A board by hand, of the next version of the protocol, at which this supervisor arrives.
class SupervisorOfAnotherVersion : public SupervisorJob {
 protected:
  SupervisorOfAnotherVersion() {
    Set(GenerationKey("none"), "g");
    for (const std::string& key : {keys_.Kind(), keys_.Joining(), keys_.Stop(), keys_.End()}) {
      Set(key, kNothingYet);
    }
    Set(keys_.Presence(), "127.0.0.1:9");
    Set(keys_.NewestEpoch(), "0");
  }

  void Set(const std::string& key, const std::string& value) {
    EXPECT_OK(store_->Set(key, value));
  }
  // In any record.
  static std::string Newer(std::string text) {
    const std::string ours = "\"version\":" + std::to_string(kProtocolVersion);
    return text.replace(text.find(ours), ours.size(),
                        "\"version\":" + std::to_string(kProtocolVersion + 1));
  }
  void ExpectRefused() {
    LaunchConfig config = Config(1, "echo started >> $OUT");
    config.meeting = LaunchConfig::Meeting::kElastic;
    config.is_store_host = false;
    config.endpoint_port = 1;
    config.hosts = {1, 2};
    EXPECT_EQ(Run(config), kExitRefused) << summary_;
    EXPECT_THAT(summary_, HasSubstr("protocol version " + std::to_string(kProtocolVersion + 1) +
                                    ", where this keelrun speaks version " +
                                    std::to_string(kProtocolVersion)));
    EXPECT_THAT(summary_, HasSubstr("run the same release of Evenkeel on every host"));
    EXPECT_EQ(ReadFile(folder_.File("out")), "") << "no worker was started";
  }

  const std::unique_ptr<Store> store_ = stores_.board.Connect("test");
  const BoardKeys keys_{"none", "g"};
};

TEST_F(SupervisorOfAnotherVersion, IsRefusedByTheBoardsVersion) {
  WriteFile(folder_.File("out"), "");
  Set(ProtocolKey("none"), std::to_string(kProtocolVersion + 1));
  Set(keys_.End(), "in a form that is yet to be invented");
  ExpectRefused();
  EXPECT_FALSE(store_->Get(keys_.Slots())->has_value()) << "nobody notices";
}

TEST_F(SupervisorOfAnotherVersion, IsRefusedByTheCoordinatorsAnswer) {
  WriteFile(folder_.File("out"), "");
  Set(keys_.Member(0), Newer(TombstoneText({Tombstone::Why::kRefused, "me", "another version"})));
  ExpectRefused();
}

TEST_F(SupervisorOfAnotherVersion, IsRefusedByAnEpoch) {
  WriteFile(folder_.File("out"), "");
  EpochRecord epoch;
  epoch.number = 1;
  epoch.id = "cafe";
  Set(keys_.Epoch(1), Newer(EpochText(epoch)));
  Set(keys_.NewestEpoch(), "1");
  ExpectRefused();
}

// It is there until the workers have begun, and never again.
class HomeThatGoesAway : public JobHome {
 public:
  HomeThatGoesAway(MemoryBoard& board, std::string begun)
      : board_(board), begun_(std::move(begun)) {}

  Result<std::optional<RoleClaim>> Look() override {
    if (access(begun_.c_str(), F_OK) != 0) return claim_;
    if (looks_while_away++ == 0) board_.CutAll();
    return Error{Code::kTimeout, "the home does not answer"};
  }
  Result<bool> Claim(const RoleClaim& claim) override {
    claim_ = claim;
    claim_->is_alive = true;
    return true;
  }
  void Release() override {}
  void End(const RoleClaim&) override {}
  Result<std::unique_ptr<Store>> Connect(const RoleClaim&) override {
    return board_.Connect("member");
  }
  Result<std::unique_ptr<Store>> ConnectCoordinator(int64_t) override {
    return Error{Code::kInvalid, "nobody can end that"};
  }
  // Takes as long as it may while the home is away.
  Result<std::unique_ptr<Store>> ConnectCoordinatorUntil(int64_t,
                                                         const CancelToken& ending) override {
    if (looks_while_away == 0) return board_.Connect("coordinator");
    const TimePoint end = RealClock().Monotonic() + 60s;
    while (!ending.cancelled() && RealClock().Monotonic() < end) RealClock().SleepFor(1ms);
    was_ended = ending.cancelled();
    return Error{Code::kTimeout, "the home does not answer"};
  }
  Result<std::unique_ptr<Store>> ConnectReader(const RoleClaim&) override {
    return Error{Code::kTimeout, "there was no board before"};
  }
  std::string Text() const override { return "the home"; }

  std::atomic<int> looks_while_away = 0;
  std::atomic<bool> was_ended = false;

 private:
  MemoryBoard& board_;
  const std::string begun_;
  std::optional<RoleClaim> claim_;
};

// The member looks at the home five times a second, so it would have done so fifty times more while
// the coordinator waited for somebody to take its role.
TEST_F(SupervisorJob, ACoordinatorWhoseHomeStaysAwayWaitsForNobody) {
  HomeThatGoesAway home(stores_.board, folder_.File("out"));
  LaunchConfig config = Config(1, "echo begun > $OUT; exec sleep 1000");
  config.meeting = LaunchConfig::Meeting::kEtcd;
  config.endpoint_host = "127.0.0.1";
  config.endpoint_port = 1;
  config.hosts = {1, 1};
  config.store_limit = 3s;
  EXPECT_EQ(Run(config, &home), kExitQuorumLost) << summary_;
  EXPECT_LT(home.looks_while_away, 45);
  EXPECT_TRUE(home.was_ended);
}

}  // namespace
}  // namespace keel
