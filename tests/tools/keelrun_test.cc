// The real `keelrun`: its exit codes and what it prints where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/tools/run_keel.h"

namespace keel {
namespace {

using ::testing::HasSubstr;

// The streams that `redirect` leaves, as a shell says it: "2>&1", "2>/dev/null".
Ran RunKeelrun(const std::string& arguments, const std::string& redirect = "2>&1") {
  return RunShell(KEEL_BIN_DIR "/keelrun " + arguments + " " + redirect);
}

TEST(Keelrun, HelpSucceedsOnStdout) {  // #23
  const Ran ran = RunKeelrun("--help", "2>/dev/null");
  EXPECT_EQ(ran.exit_code, 0);
  for (const char* part : {"usage: keelrun", "--nnodes", "PET_NNODES", "--hang-limit", "75"}) {
    EXPECT_THAT(ran.out, HasSubstr(part));
  }
}

TEST(Keelrun, MistakesOnTheLineAreTwoWithTheUsageOnStderr) {  // #21
  for (const char* line : {"", "--nosuch train.py", "--max-restarts=x train.py"}) {
    const Ran ran = RunKeelrun(line);
    EXPECT_EQ(ran.exit_code, 2) << line;
    EXPECT_THAT(ran.out, HasSubstr("usage: keelrun")) << line;
    EXPECT_EQ(RunKeelrun(line, "2>/dev/null").out, "") << line;
  }
}

TEST(Keelrun, ValuesThatMakeNoSenseAreOne) {
  for (const char* line : {"--nnodes=4:2 a.py", "--no-python --module a", "--rdzv-backend=x a.py",
                           "--local-ranks-filter=a,b a.py"}) {
    EXPECT_EQ(RunKeelrun(line).exit_code, 1) << line;
  }
}

TEST(Keelrun, ItShowsWhatItUnderstoodAndWhereItCameFrom) {
  const Ran ran = RunKeelrun("--redirect 3 --print-config train.py --nnodes=9", "2>/dev/null");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.out, HasSubstr("redirects = 3  # command line"));
  EXPECT_THAT(ran.out, HasSubstr("nnodes = 1:1  # default"));
}

TEST(Keelrun, OptionsWithoutEffectAreSaid) {
  EXPECT_THAT(RunKeelrun("--standalone --monitor-interval=5 --no-python true").out,
              HasSubstr("--monitor-interval"));
}

}  // namespace
}  // namespace keel
