// Politeness of real processes: a child that starts polite, what it starts, and how both end it.
#include "elastic/process/politeness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <thread>

#include "elastic/process/proc_file.h"
#include "elastic/process/spawn.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/file_text.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

int NiceOf(pid_t thread) { return getpriority(PRIO_PROCESS, static_cast<id_t>(thread)); }

// Of this thread only.
bool LoseAdminCapability() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  if (syscall(SYS_capget, &header, data.data()) != 0) return false;
  data[0].effective &= ~(1u << CAP_SYS_ADMIN);
  return syscall(SYS_capset, &header, data.data()) == 0;
}

class Politeness : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!CanEndPoliteness()) GTEST_SKIP() << "this user may not raise a priority";
  }

  // Starts a shell that starts a `sleep` and writes its process id; returns once that sleeps.
  Child Start(bool polite, const std::string& before = "") {
    ChildSpec spec;
    spec.environment = OwnEnvironment();
    spec.argv = {"/bin/sh", "-c", before + " sleep 600 & echo $! >$0.new; mv $0.new $0; wait",
                 folder_.File("pid")};
    spec.polite = polite;
    auto child = Spawn(spec);
    EXPECT_OK(child);
    const TimePoint by = RealClock().Monotonic() + 60s;
    while (!Sleeps() && RealClock().Monotonic() < by) RealClock().SleepFor(1ms);
    EXPECT_GT(started_, 0);
    return *std::move(child);
  }

  // Before that it is a shell, or the program that lowers itself.
  bool Sleeps() {
    if (access(folder_.File("pid").c_str(), R_OK) != 0) return false;
    started_ = std::stoi(ReadFile(folder_.File("pid")));
    return ReadProcFile("/proc/" + std::to_string(started_) + "/comm").value_or("") == "sleep\n";
  }

  const int own_ = NiceOf(0);
  TempDir folder_;
  pid_t started_ = 0;
};

TEST_F(Politeness, IsOfTheChildAndWhatItStartsUntilItEnds) {
  const Child child = Start(true);
  EXPECT_EQ(NiceOf(child.pid()), own_ + 10);
  EXPECT_EQ(NiceOf(started_), own_ + 10);
  EXPECT_EQ(NiceOf(0), own_) << "ours stays";
  EndPoliteness(child.pid());
  EXPECT_EQ(NiceOf(child.pid()), own_);
  EXPECT_EQ(NiceOf(started_), own_);
}

// Linux compares sessions first, where it does at all.
TEST_F(Politeness, IsOfTheSessionToo) {
  const auto session_of = [](pid_t pid) {
    return ReadProcFile("/proc/" + std::to_string(pid) + "/autogroup").value_or("");
  };
  if (session_of(getpid()).empty()) GTEST_SKIP() << "this kernel does not schedule by sessions";
  const Child child = Start(true);
  EXPECT_THAT(session_of(child.pid()), HasSubstr(" nice 10\n"));
  EXPECT_EQ(session_of(started_), session_of(child.pid()));
  EndPoliteness(child.pid());
  EXPECT_THAT(session_of(child.pid()), HasSubstr(" nice 0\n"));
}

// A thread without the capability is to the kernel as one of an ordinary user.
TEST_F(Politeness, OfManyEndsInTurnWhereTheUserIsAnOrdinaryOne) {
  const Child first = Start(true), second = Start(true);
  std::thread([&] {
    ASSERT_TRUE(LoseAdminCapability());
    for (const pid_t leader : {first.pid(), second.pid()}) {
      while (!EndPoliteness(leader)) {
        EXPECT_EQ(NiceOf(leader), own_ + 10) << "nothing has changed";
        RealClock().SleepFor(kPoliteAgain);
      }
      EXPECT_EQ(NiceOf(leader), own_);
    }
  }).join();
}

TEST_F(Politeness, LeavesLowerWhatWasLoweredFurther) {
  const Child child = Start(true, "nice -n 4");
  EXPECT_EQ(NiceOf(child.pid()), own_ + 10);
  EndPoliteness(child.pid());
  EXPECT_EQ(NiceOf(child.pid()), own_);
  EXPECT_EQ(NiceOf(started_), own_ + 4);
}

TEST_F(Politeness, IsNotOfOtherChildren) {
  const Child child = Start(false);
  EXPECT_EQ(NiceOf(child.pid()), own_);
  EndPoliteness(child.pid());
  EXPECT_EQ(NiceOf(child.pid()), own_);
}

TEST_F(Politeness, OfWhoHasEndedIsOver) {
  const Child child = Start(true);
  ASSERT_OK(child.SignalGroup(SIGKILL));
  ASSERT_OK(child.Wait(RealClock().Monotonic() + 60s));
  EndPoliteness(child.pid());
}

}  // namespace
}  // namespace keel
