// A host joins just when something else happens, at offsets drawn at random: whatever comes first,
// all end up in one epoch.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "elastic/process/process_table.h"
#include "tests/tools/job_hosts.h"

namespace keel {
namespace {

constexpr int kRounds = 8, kRoundsOfANight = 40;
constexpr uint64_t kOffsetMillis = 15;   // about what a host needs from its registration on

constexpr const char* kCounts = "^rank [0-9]+ has counted to";
// No step without all the others of the epoch.
const Environment kTogether = {{"SURVIVOR_TOGETHER", "1"}};

Random Seeded() {
  const uint64_t seed = EntropySeed();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return Random(seed);
}

// One job of two hosts with two workers each, of which the second one joins.
class Round {
 public:
  explicit Round(Random& random) : random_(random) {
    first_ = hosts_.StartSurvivor("first", Options(), kTogether);
    for (const Entry& entry : AwaitEntries(*first_, 2, 2)) old_.push_back(entry.pid);
    second_ = hosts_.StartSurvivor("second", Options(), kTogether);
  }

  // From the moment in which the second one is a member.
  void PassSomeTime() {
    second_->Await("registered");
    RealClock().SleepFor(std::chrono::microseconds(random_.Uniform(1000 * kOffsetMillis)));
  }

  void KillOld() { Kill(*first_, old_); }
  // None where no worker is up yet: such a round is one without a kill.
  void KillNew() { Kill(*second_, WorkersOf(*second_)); }
  // Whether it was killed before any epoch had it.
  bool VictimWasOutside() const {
    return victim_ > 1 && bereft_->Count("^epoch .* pid " + std::to_string(victim_) + " ") == 0;
  }

  // All four in one epoch, in which the victim is not, and in which they get on.
  void ExpectAllTogether() {
    const auto bereft = AwaitEntries(*bereft_, 4, 2, 0, victim_);
    ASSERT_FALSE(bereft.empty())
        << "first:\n" << first_->Output() << "second:\n" << second_->Output();
    Launched& other = bereft_ == first_.get() ? *second_ : *first_;
    const auto others = AwaitEntries(other, 4, 2, bereft.front().epoch - 1);
    ASSERT_FALSE(others.empty()) << other.Output();
    EXPECT_EQ(others.front().epoch, bereft.front().epoch);
    for (Launched* const host : {first_.get(), second_.get()}) {
      host->Await(kCounts, host->Count(kCounts) + 4);
    }
  }

  void ExpectAllEndsWell() {
    hosts_.LetFinish();
    EXPECT_EQ(first_->ExitCode(), 0) << first_->Output() << "second:\n" << second_->Output();
    EXPECT_EQ(second_->ExitCode(), 0) << second_->Output() << "first:\n" << first_->Output();
    EXPECT_TRUE(AwaitNoneMarked(hosts_.mark()));
  }

 private:
  void Kill(Launched& host, const std::vector<int64_t>& workers) {
    bereft_ = &host;
    if (workers.empty()) return;
    victim_ = workers[random_.Uniform(workers.size())];
    SignalPidIn("pid " + std::to_string(victim_), SIGKILL);
  }

  static std::vector<std::string> Options() {
    return {"--nnodes=1:2", "--max-restarts=3", "--rdzv-conf=last_call_timeout=0.01"};
  }

  static std::vector<int64_t> WorkersOf(const Launched& host) {
    std::vector<int64_t> workers;
    const auto all = AllProcesses();
    if (!all.ok()) return workers;
    for (const ProcessInfo& process : DescendantsOf(host.pid(), *all)) {
      if (process.ended) continue;
      if (CommandLine(process.pid).starts_with(KEEL_BIN_DIR "/survivor ")) {
        workers.push_back(process.pid);
      }
    }
    return workers;
  }

  Random& random_;
  JobHosts hosts_{2};
  std::unique_ptr<Launched> first_;
  std::unique_ptr<Launched> second_;
  std::vector<int64_t> old_;     // the first one's workers
  Launched* bereft_ = nullptr;   // the victim's host
  int64_t victim_ = -1;
};

void JoinInTheMomentOfABreak(int rounds) {
  Random random = Seeded();
  for (int i = 0; i < rounds && !::testing::Test::HasFailure(); ++i) {
    Round round(random);
    round.PassSomeTime();
    round.KillOld();
    round.ExpectAllTogether();
    round.ExpectAllEndsWell();
  }
}

void KillAWorkerWhileItJoins(int rounds) {
  Random random = Seeded();
  int outside = 0;
  for (int i = 0; i < rounds && !::testing::Test::HasFailure(); ++i) {
    Round round(random);
    round.PassSomeTime();
    round.KillNew();
    round.ExpectAllTogether();
    round.ExpectAllEndsWell();
    outside += round.VictimWasOutside() ? 1 : 0;
  }
  std::printf("%d of %d were killed before an epoch had them\n", outside, rounds);
}

TEST(KeelrunJoins, AHostJoinsInTheMomentOfABreak) { JoinInTheMomentOfABreak(kRounds); }
TEST(KeelrunJoins, AWorkerIsKilledWhileItJoins) { KillAWorkerWhileItJoins(kRounds); }

TEST(NightlyKeelrunJoins, AHostJoinsInTheMomentOfABreak) {
  JoinInTheMomentOfABreak(kRoundsOfANight);
}
TEST(NightlyKeelrunJoins, AWorkerIsKilledWhileItJoins) { KillAWorkerWhileItJoins(kRoundsOfANight); }

}  // namespace
}  // namespace keel
