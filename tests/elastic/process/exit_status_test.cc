// How endings read.
#include "elastic/process/exit_status.h"

#include <gtest/gtest.h>

#include <csignal>

namespace keel {
namespace {

TEST(ExitStatus, SaysHowAProcessEnded) {
  EXPECT_EQ(ExitStatus::Exited(3).Text(), "exited with 3");
  EXPECT_EQ(ExitStatus::Killed(SIGKILL).Text(), "killed by signal 9 (SIGKILL)");
  EXPECT_EQ((ExitStatus{ExitStatus::Kind::kSignalled, SIGABRT, true}).Text(),
            "killed by signal 6 (SIGABRT), core dumped");
}

TEST(ExitStatus, OnlyExitCodeZeroIsFine) {
  EXPECT_TRUE(ExitStatus::Exited(0).ok());
  EXPECT_FALSE(ExitStatus::Exited(1).ok());
  EXPECT_FALSE(ExitStatus::Killed(SIGTERM).ok());
  EXPECT_TRUE(ExitStatus::Killed(SIGTERM).KilledBy(SIGTERM));
  EXPECT_FALSE(ExitStatus::Exited(SIGTERM).KilledBy(SIGTERM));
}

TEST(SignalName, OfAnUnknownNumberIsTheNumber) { EXPECT_EQ(SignalName(64), "signal 64"); }

}  // namespace
}  // namespace keel
