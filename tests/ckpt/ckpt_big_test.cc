// Four gigabytes of state, saved and verified by a process that may have 300 MB of data. Slow.
#include <gtest/gtest.h>

#include <cstdio>

#include "elastic/spawn.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/file_text.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

TEST(CkptBig, FourGigabytesAreSavedAndVerifiedUnder300Megabytes) {
  TempDir folder;
  ChildSpec spec;
  spec.argv = {KEEL_BIN_DIR "/ckpt_victim", "big", folder.File("ckpts"), "4096", "300"};
  spec.environment = OwnEnvironment();
  spec.out = Stream::File(folder.File("out"));
  spec.err = spec.out;
  ASSERT_OK_AND_ASSIGN(const Child child, Spawn(spec));
  ASSERT_OK_AND_ASSIGN(const ExitStatus status, child.Wait(RealClock().Monotonic() + 1200s));
  const std::string output = ReadFile(folder.File("out"));
  EXPECT_TRUE(status.ok()) << status.Text() << "\n" << output;
  std::printf("%s", output.c_str());
}

}  // namespace
}  // namespace keel
