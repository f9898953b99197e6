// Jobs of several launchers, which take each other for hosts: they come, are killed, and come back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>

#include "store/listen_socket.h"
#include "tests/tools/job_hosts.h"

namespace keel {
namespace {

using ::testing::HasSubstr;

class KeelrunHosts : public ::testing::Test, protected JobHosts {};

TEST_F(KeelrunHosts, TwoFinishTogether) {
  const auto first = StartForeign("first", {"--nnodes=2"});
  const auto second = StartForeign("second", {"--nnodes=2"});
  first->Await("^up group=[01] rank=[01] of=2$");
  second->Await("^up group=[01] rank=[01] of=2$");
  LetFinish();
  EXPECT_EQ(first->ExitCode(), 0) << first->Output();
  EXPECT_EQ(second->ExitCode(), 0) << second->Output();
}

TEST_F(KeelrunHosts, RanksFollowTheNodeRankWhereItIsGiven) {
  const auto start = [&](int node) {
    const std::string number = std::to_string(node);
    return std::make_unique<Launched>(
        folder(), "node" + number,
        std::vector<std::string>{"--nnodes=3", "--node-rank=" + number, "--master-addr=127.0.0.1",
                                 "--master-port=" + std::to_string(port()), "--no-python", "sh",
                                 "-c", "echo node " + number + " group=$GROUP_RANK rank=$RANK"});
  };
  const auto last = start(2);
  const auto first = start(0);
  last->Await("job-started");
  const auto middle = start(1);
  for (const auto* node : {&first, &middle, &last}) EXPECT_EQ((*node)->ExitCode(), 0);
  EXPECT_EQ(first->Count("^node 0 group=0 rank=0$"), 1) << first->Output();
  EXPECT_EQ(middle->Count("^node 1 group=1 rank=1$"), 1) << middle->Output();
  EXPECT_EQ(last->Count("^node 2 group=2 rank=2$"), 1) << last->Output();
}

TEST_F(KeelrunHosts, OneGoesOnAfterTheOtherWasKilled) {
  const auto first = StartForeign("first", {"--nnodes=1:2"});
  first->Await("job-started.*hosted_here=true");
  const auto second = StartForeign("second", {"--nnodes=1:2"});
  first->Await("^up .* of=2$");
  second->Await("^up .* of=2$");
  second->Kill();
  first->Await("^up group=0 rank=0 of=1$");
  LetFinish();
  EXPECT_EQ(first->ExitCode(), 0) << first->Output();
  EXPECT_THAT(first->Output(), HasSubstr("host-lost"));
}

TEST_F(KeelrunHosts, ANewcomerIsTakenIn) {
  const auto first =
      StartForeign("first", {"--nnodes=1:2", "--rdzv-conf=last_call_timeout=0.2"});
  first->Await("^up group=0 rank=0 of=1$");
  const auto second = StartForeign("second", {"--nnodes=1:2"});
  first->Await("^up group=0 rank=0 of=2$");
  second->Await("^up group=1 rank=1 of=2$");
  LetFinish();
  EXPECT_EQ(first->ExitCode(), 0) << first->Output();
  EXPECT_EQ(second->ExitCode(), 0) << second->Output();
}

TEST_F(KeelrunHosts, ANewcomerWhoseWorkersFailDoesNotDisturbTheJob) {
  const std::vector<std::string> options = {"--nnodes=1:2",
                                            "--rdzv-conf=last_call_timeout=0.2"};
  const auto first = StartSurvivor("first", options);
  first->Await("^epoch 1 rank 0 of 1");
  const auto fails = Start("fails", options, {"--no-python", "sh", "-c", "exit 3"});
  EXPECT_EQ(fails->ExitCode(), 1) << fails->Output();
  EXPECT_THAT(fails->Output(), HasSubstr("failed before they could join"));
  const auto missing = Start("missing", options, {"--no-python", folder().File("nothing")});
  EXPECT_EQ(missing->ExitCode(), 1) << missing->Output();
  const auto other = StartSurvivor("other", options, {{"SURVIVOR_VERSION", "999"}});
  EXPECT_EQ(other->ExitCode(), 78) << other->Output();
  EXPECT_THAT(other->Output(), HasSubstr("speaks version 999 of the link"));
  LetFinish();
  EXPECT_EQ(first->ExitCode(), 0) << first->Output();
  EXPECT_EQ(first->Count("^epoch "), 1) << first->Output();
}

TEST_F(KeelrunHosts, AStopOfTheStoresHostStopsAll) {
  const auto first = StartSurvivor("first", {"--nnodes=2"});
  first->Await("job-started.*hosted_here=true");
  const auto second = StartSurvivor("second", {"--nnodes=2"});
  first->Await("^epoch 1 rank 0 of 2");
  second->Await("^epoch 1 rank 1 of 2");
  first->Signal(SIGTERM);
  EXPECT_EQ(first->ExitCode(), 75) << first->Output();
  EXPECT_EQ(second->ExitCode(), 75) << second->Output();
}

TEST_F(KeelrunHosts, TheStoresHostIsKilledAndComesBack) {
  const auto first = StartSurvivor("first", {"--nnodes=1:2"});
  first->Await("job-started.*hosted_here=true");
  const auto second = StartSurvivor("second", {"--nnodes=1:2"});
  first->Await("^epoch 1 rank 0 of 2");
  const std::string before = second->Await("^epoch 1 rank 1 of 2");
  second->Await("^rank 1 has counted");
  first->Kill();
  second->Await("store-unreachable");
  const auto back = StartSurvivor("back", {"--nnodes=1:2"});
  back->Await("job-started.*hosted_here=true");
  back->Await("^epoch [0-9]+ rank [01] of 2");
  const std::string after = second->Await("^epoch [0-9]+ rank [01] of 2", 2);
  EXPECT_EQ(NumberAfter(after, "pid"), NumberAfter(before, "pid"));
  EXPECT_GT(NumberAfter(after, "count"), 0);
  LetFinish();
  EXPECT_EQ(back->ExitCode(), 0) << back->Output();
  EXPECT_EQ(second->ExitCode(), 0) << second->Output();
}

TEST_F(KeelrunHosts, OtherNumericsAreRefusedAtTheDoorWithBothShown) {
  const auto first = StartSurvivor("first", {"--nnodes=1:2", "--rdzv-conf=last_call_timeout=0.2"},
                                   {{"SURVIVOR_FINGERPRINT", "avx2"}});
  first->Await("^epoch 1 rank 0 of 1");
  const auto other = StartSurvivor("other", {"--nnodes=1:2"}, {{"SURVIVOR_FINGERPRINT", "avx512"}});
  EXPECT_EQ(other->ExitCode(), 78) << other->Output();
  EXPECT_THAT(other->Output(), HasSubstr("avx512"));
  EXPECT_THAT(other->Output(), HasSubstr("avx2"));
  LetFinish();
  EXPECT_EQ(first->ExitCode(), 0) << first->Output();
  EXPECT_EQ(first->Count("^epoch 2"), 0) << first->Output();
}

TEST_F(KeelrunHosts, ALauncherOfAnotherJobDisturbsNobodyAndIsToldSo) {
  const auto first =
      StartForeign("first", {"--nnodes=1:2", "--rdzv-conf=last_call_timeout=0.2"});
  first->Await("^up group=0 rank=0 of=1$");
  const auto other =
      StartForeign("other", {"--rdzv-id=another", "--nnodes=2", "--rdzv-conf=is_host=0"});
  other->Await("the launcher that is to keep the one of job 'another' has not come to it");
  other->Signal(SIGTERM);
  EXPECT_EQ(other->ExitCode(), 75) << other->Output();
  LetFinish();
  EXPECT_EQ(first->ExitCode(), 0) << first->Output();
  EXPECT_EQ(first->Count("^up"), 1) << first->Output();
}

// Also where the time is over before the first attempt to connect is.
TEST_F(KeelrunHosts, AnEndpointWhereNobodyIsIsNamedWhenTheTimeIsOver) {
  for (const char* seconds : {"1", "6"}) {
    const auto alone =
        StartForeign(std::string("alone") + seconds,
                     {"--nnodes=2", std::string("--rdzv-conf=is_host=0,join_timeout=") + seconds});
    EXPECT_EQ(alone->ExitCode(), 76);
    EXPECT_THAT(alone->Output(), HasSubstr("the store is at 127.0.0.1:" + std::to_string(port())));
    EXPECT_THAT(alone->Output(), HasSubstr("nobody listens there"));
    EXPECT_THAT(alone->Output(), HasSubstr("check that the first host has been started"));
    EXPECT_THAT(alone->Output(), HasSubstr("firewall"));
  }
}

TEST_F(KeelrunHosts, AnEndpointWhoseNameNobodyKnowsIsNamedWhenTheTimeIsOver) {
  Launched alone(folder(), "alone",
                 {"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=no-such-host.invalid:4711",
                  "--rdzv-conf=is_host=0,join_timeout=1", "--no-python", "true"});
  EXPECT_EQ(alone.ExitCode(), 76);
  EXPECT_THAT(alone.Output(), HasSubstr("the store is at no-such-host.invalid:4711"));
  EXPECT_THAT(alone.Output(), HasSubstr("'no-such-host.invalid'"));
  EXPECT_THAT(alone.Output(), HasSubstr("host name and port"));
}

// Something listens, but it is none of ours.
TEST_F(KeelrunHosts, AnEndpointWhereAnotherProgramListensIsNamedWhenTheTimeIsOver) {
  auto listener = ListenSocket::Listen("", 0);
  ASSERT_TRUE(listener.ok());
  Launched alone(folder(), "alone",
                 {"--nnodes=2", "--rdzv-backend=c10d",
                  "--rdzv-endpoint=127.0.0.1:" + std::to_string(listener->port()),
                  "--rdzv-conf=is_host=0,join_timeout=1", "--no-python", "true"});
  EXPECT_EQ(alone.ExitCode(), 76);
  EXPECT_THAT(alone.Output(), HasSubstr("something listens there, but has not answered"));
}

TEST_F(KeelrunHosts, AStoreOfItsOwnThatItDidNotGetToInTimeIsNobodyElsesFault) {
  // LibTorch takes longer to load.
  const auto alone = StartForeign("alone", {"--nnodes=2", "--rdzv-conf=join_timeout=0.001"});
  EXPECT_EQ(alone->ExitCode(), 76);
  EXPECT_THAT(alone->Output(), HasSubstr("this host keeps the store"));
  EXPECT_EQ(alone->Count("firewall"), 0) << alone->Output();
}

TEST_F(KeelrunHosts, TooFewHostsIsLostQuorumWithTheirNames) {
  // Within that time it has to load LibTorch, and to reach its own store, too.
  const auto alone = StartForeign("alone", {"--nnodes=2", "--rdzv-conf=join_timeout=20"});
  EXPECT_EQ(alone->ExitCode(), 76);
  EXPECT_THAT(alone->Output(), HasSubstr("1 of 2 here (min 2, max 2)"));
}

}  // namespace
}  // namespace keel
