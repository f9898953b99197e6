// A state of KEEL_STATE_MIB, saved and verified by a process that may have 300 MiB of data. It is
// made while it is saved, so that all memory counted is the engine's own.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "elastic/process/spawn.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/file_text.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

TEST(CkptMemory, AStateLargerThanTheMemoryIsSavedAndVerified) {
  TempDir folder;
  ChildSpec spec;
  spec.argv = {KEEL_BIN_DIR "/ckpt_victim", "big", folder.File("ckpts"),
               std::to_string(KEEL_STATE_MIB), "300"};
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
