// Jobs in place whose hosts are killed, stopped and missed: those who are left keep their memory
// for as long as there is hope, and save it when there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "elastic/process/process_table.h"
#include "tests/support/file_text.h"
#include "tests/tools/job_hosts.h"

namespace keel {
namespace {

using ::testing::HasSubstr;

constexpr const char* kCounts = "^rank [0-9]+ has counted to";

class KeelrunLosses : public ::testing::Test, protected JobHosts {
 protected:
  KeelrunLosses() : JobHosts(2) {}
};

std::vector<int64_t> PidsOf(const std::vector<Entry>& entries) {
  std::vector<int64_t> pids;
  for (const Entry& entry : entries) pids.push_back(entry.pid);
  return pids;
}

// What each worker says to have counted in the lines that match.
std::map<int64_t, int64_t> CountsIn(Launched& host, const std::string& expression, int workers,
                                    const std::string& word) {
  std::map<int64_t, int64_t> counts;
  for (int i = 1; i <= workers; ++i) {
    const std::string line = host.Await(expression, i);
    counts[NumberAfter(line, "pid")] = NumberAfter(line, word);
  }
  return counts;
}

void AwaitSteps(Launched& host) { host.Await(kCounts, host.Count(kCounts) + 6); }

// Handles of processes that run, to tell their end from that of others with the same number.
std::vector<Fd> HandlesOf(const std::vector<int64_t>& pids) {
  std::vector<Fd> handles;
  const auto all = AllProcesses();
  if (!all.ok()) return handles;
  for (const ProcessInfo& process : *all) {
    if (std::count(pids.begin(), pids.end(), process.pid) == 0) continue;
    handles.push_back(OpenProcess(process));
    EXPECT_TRUE(handles.back().valid());
  }
  EXPECT_EQ(handles.size(), pids.size());
  return handles;
}

TEST_F(KeelrunLosses, TooFewForTooLongSaveWhatTheyHoldAndTellWhoIsMissing) {
  // It waits for the store already when that opens, so that the first wait is a short one.
  const auto second = StartSurvivor("second", {"--nnodes=2", "--rdzv-conf=is_host=0"});
  second->Await("job-started");
  const auto first = StartSurvivor("first", {"--nnodes=2", "--rdzv-conf=join_timeout=15"});
  const auto before = AwaitEntries(*first, 4, 2);
  first->Await("^rank [0-9] has counted to 40$", 2);
  second->Kill();
  const auto parked = CountsIn(*first, "^broken 1 ", 2, "count");
  EXPECT_EQ(first->ExitCode(), 76) << first->Output();
  // The same processes, and not a step was made or lost in the meantime.
  const auto stopped = CountsIn(*first, "^stopped at ", 2, "at");
  EXPECT_EQ(stopped, parked);
  for (const Entry& entry : before) {
    ASSERT_EQ(stopped.count(entry.pid), 1U) << first->Output();
    EXPECT_GE(stopped.at(entry.pid), 40);
  }
  EXPECT_EQ(first->Count("^epoch 2"), 0);
  EXPECT_EQ(first->Count("worker-died"), 0) << first->Output();
  EXPECT_EQ(first->Count("^job job: timed out: too few hosts .*: 1 of 2 here .*; "
                         "here: [^,]*[(]slot [01][)]; lost: [^,]*[(]slot [01][)];"), 1)
      << first->Output();
  EXPECT_TRUE(AwaitNoneMarked(mark()));
}

TEST_F(KeelrunLosses, WhoComesBackInTimeFindsTheOthersAsTheyWere) {
  const auto first = StartSurvivor("first", {"--nnodes=2"});
  first->Await("job-started.*hosted_here=true");
  const auto second = StartSurvivor("second", {"--nnodes=2"});
  const auto before = AwaitEntries(*first, 4, 2);
  first->Await("^rank [0-9] has counted to 40$", 2);
  second->Kill();
  const auto parked = CountsIn(*first, "^broken 1 ", 2, "count");
  first->Await("waiting.*1 of 2 here");
  const auto back = StartSurvivor("back", {"--nnodes=2"});
  EXPECT_EQ(CountsIn(*first, "^epoch 2 ", 2, "count"), parked);
  EXPECT_EQ(PidsOf(AwaitEntries(*first, 4, 2, 1)), PidsOf(before));
  AwaitEntries(*back, 4, 2, 1);
  LetFinish();
  EXPECT_EQ(first->ExitCode(), 0) << first->Output();
  EXPECT_EQ(back->ExitCode(), 0) << back->Output();
  EXPECT_TRUE(AwaitNoneMarked(mark()));
}

// It cannot tell whether the other one, of two, lives on.
TEST_F(KeelrunLosses, ASilentCoordinatorEndsTheOtherHostsJobWithAllSaved) {
  const auto first = StartSurvivor("first", {"--nnodes=1:2"});
  first->Await("job-started.*hosted_here=true");
  const auto second = StartSurvivor("second", {"--nnodes=1:2", "--store-limit=8s"});
  const auto before = AwaitEntries(*second, 4, 2);
  second->Await("^rank [0-9] has counted to 40$", 2);
  first->Signal(SIGSTOP);
  EXPECT_EQ(second->ExitCode(), 76) << second->Output();
  const auto stopped = CountsIn(*second, "^stopped at ", 2, "at");
  for (const Entry& entry : before) {
    ASSERT_EQ(stopped.count(entry.pid), 1U) << second->Output();
    EXPECT_GE(stopped.at(entry.pid), 40);
  }
  EXPECT_THAT(second->Output(), HasSubstr("others may go on without these hosts: 1 of 2 hosts"));
  first->Kill();
  EXPECT_TRUE(AwaitNoneMarked(mark()));
}

TEST_F(KeelrunLosses, AStoppedLauncherIsTakenForDeadAndComesBackAsANewcomer) {
  const auto first = StartSurvivor("first", {"--nnodes=1:2"});
  first->Await("job-started.*hosted_here=true");
  const auto second = StartSurvivor("second", {"--nnodes=1:2"});
  const auto stay = AwaitEntries(*first, 4, 2);
  const std::vector<int64_t> old = PidsOf(AwaitEntries(*second, 4, 2));
  const std::vector<Fd> old_workers = HandlesOf(old);
  second->Signal(SIGSTOP);
  first->Await("host-lost.*was last heard from");
  EXPECT_EQ(PidsOf(AwaitEntries(*first, 2, 2)), PidsOf(stay));
  // Nobody has told its workers: they run on, in an epoch of the past.
  AwaitSteps(*second);
  second->Signal(SIGCONT);
  second->Await("registering-anew");
  const auto all = AwaitEntries(*first, 4, 2, 2);
  EXPECT_EQ(PidsOf(all), PidsOf(stay));
  for (const Entry& entry : all) EXPECT_GT(entry.count, 0);
  const auto anew = AwaitEntries(*second, 4, 2, 2);
  EXPECT_TRUE(WaitUntilEnded(old_workers, RealClock().Monotonic())) << second->Output();
  for (const Entry& entry : anew) EXPECT_EQ(std::count(old.begin(), old.end(), entry.pid), 0);
  LetFinish();
  EXPECT_EQ(first->ExitCode(), 0) << first->Output();
  EXPECT_EQ(second->ExitCode(), 0) << second->Output();
  EXPECT_TRUE(AwaitNoneMarked(mark()));
}

TEST_F(KeelrunLosses, AStoppedHostOfTheStoreDisturbsNoStep) {
  const auto first = StartSurvivor("first", {"--nnodes=2"});
  first->Await("job-started.*hosted_here=true");
  const auto second = StartSurvivor("second", {"--nnodes=2"});
  AwaitEntries(*first, 4, 2);
  AwaitEntries(*second, 4, 2);
  first->Signal(SIGSTOP);
  second->Await("store-unreachable");
  AwaitSteps(*first);
  AwaitSteps(*second);
  first->Signal(SIGCONT);
  second->Await("store-reached");
  AwaitSteps(*first);
  AwaitSteps(*second);
  LetFinish();
  EXPECT_EQ(first->ExitCode(), 0) << first->Output();
  EXPECT_EQ(second->ExitCode(), 0) << second->Output();
  for (const auto* host : {&first, &second}) {
    EXPECT_EQ((*host)->Count("^epoch "), 2) << (*host)->Output();
    EXPECT_EQ((*host)->Count("^broken "), 0) << (*host)->Output();
  }
  EXPECT_TRUE(AwaitNoneMarked(mark()));
}

// The host of the store is in no epoch when it is killed: its workers have died and are not ready
// yet. So the store is away, and nobody of the epoch is lost.
TEST_F(KeelrunLosses, StepsGoOnWhileTheStoreIsAwayAndNoMemberIsLost) {
  const std::string keepers_file = folder().File("keepers-done");
  const std::string gate = keepers_file + ".gate";
  // Whoever comes back to a new store has ample time for it.
  const std::vector<std::string> options = {"--nnodes=1:3", "--max-restarts=5",
                                            "--rdzv-conf=keep_alive_max_attempt=30"};
  const auto start_keeper = [&](const std::string& name) {
    return Start(name, options, {KEEL_BIN_DIR "/survivor", keepers_file});
  };
  const auto keeper = start_keeper("keeper");
  keeper->Await("job-started.*hosted_here=true");
  const auto second = StartSurvivor("second", options);
  const auto third = StartSurvivor("third", options);
  const auto keepers = AwaitEntries(*keeper, 6, 2);
  AwaitEntries(*second, 6, 2);
  AwaitEntries(*third, 6, 2);
  WriteFile(gate, "");
  for (const Entry& entry : keepers) {
    SignalPidIn("pid " + std::to_string(entry.pid), SIGKILL);
  }
  const auto stay = AwaitEntries(*second, 4, 2, 1);
  AwaitEntries(*third, 4, 2, 1);
  ASSERT_FALSE(stay.empty());
  const int64_t epoch = stay.front().epoch;
  keeper->Kill();
  second->Await("store-unreachable");
  third->Await("store-unreachable");
  AwaitSteps(*second);
  AwaitSteps(*third);
  ASSERT_EQ(unlink(gate.c_str()), 0);
  const auto back = start_keeper("back");
  const std::string taken_up = "epoch-taken-up .*epoch " + std::to_string(epoch) + " ";
  const auto all = AwaitEntries(*second, 6, 2, epoch);
  AwaitEntries(*third, 6, 2, epoch);
  AwaitEntries(*back, 6, 2, epoch);
  EXPECT_EQ(PidsOf(all), PidsOf(stay));
  for (const auto* host : {&second, &third}) {
    EXPECT_EQ((*host)->Count("^broken " + std::to_string(epoch) + " "), 0) << (*host)->Output();
  }
  EXPECT_EQ(second->Count(taken_up) + third->Count(taken_up), 1);
  LetFinish();
  WriteFile(keepers_file, "");
  for (const auto* host : {&back, &second, &third}) {
    EXPECT_EQ((*host)->ExitCode(), 0) << (*host)->Output();
  }
  EXPECT_TRUE(AwaitNoneMarked(mark()));
}

}  // namespace
}  // namespace keel
