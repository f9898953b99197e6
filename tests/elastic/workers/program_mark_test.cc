// A program of this library is known by its file.
#include "elastic/workers/program_mark.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "elastic/launch/host_facts.h"
#include "tests/support/file_text.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

TEST(ProgramMark, AProgramOfThisLibraryIsKnownBeforeItRuns) {
  Random random(1);
  const auto is_in_place = [&](const std::string& program) {
    return ReadHostFacts({{"PATH", "/usr/bin:/bin:" KEEL_BIN_DIR}}, program, random).is_in_place;
  };
  EXPECT_TRUE(is_in_place(KEEL_BIN_DIR "/survivor"));
  EXPECT_TRUE(is_in_place("survivor"));
  for (const char* other : {"ls", "/bin", "/dev/null", "/nosuch", "nosuch", ""}) {
    EXPECT_FALSE(is_in_place(other)) << other;
  }
}

TEST(ProgramMark, AScriptThatTrainsWithThePackageIsKnownByItsText) {
  const TempDir folder;
  const auto look = [&](const std::string& text) {
    WriteFile(folder.File("script.py"), text);
    return IsScriptOfPackage(folder.File("script.py"));
  };
  EXPECT_TRUE(look("import os\nimport evenkeel as ek\n\njob = ek.Job(steps=3)\n"));
  EXPECT_TRUE(look("try:\n  from evenkeel import Job\nexcept ImportError:\n  pass\n"));
  EXPECT_TRUE(look("import evenkeel as ek\nek.rerun(main)"));
  EXPECT_TRUE(look("from evenkeel.hf import Trainer\n"));
  EXPECT_FALSE(look("import evenkeel as ek\nek.load('model')  # no Job here\n"));
  EXPECT_FALSE(look("# import evenkeel\nclass Job: pass\n"));
  EXPECT_FALSE(look("import evenkeeler\nJob()\n"));
  EXPECT_FALSE(look(""));
  EXPECT_FALSE(IsScriptOfPackage("/nosuch"));
  EXPECT_FALSE(IsScriptOfPackage("/"));
  EXPECT_FALSE(IsScriptOfPackage(KEEL_BIN_DIR "/survivor"));
}

// A file may say anything of itself.
TEST(ProgramMark, ADamagedFileHasNone) {
  const TempDir folder;
  const std::string whole = ReadFile(KEEL_BIN_DIR "/survivor");
  const auto look = [&](const std::string& bytes) {
    WriteFile(folder.File("program"), bytes);
    return HasProgramMark(folder.File("program"));
  };
  EXPECT_TRUE(look(whole));
  for (const size_t size : {0u, 4u, 63u, 64u, 4096u}) {
    EXPECT_FALSE(look(whole.substr(0, size))) << size;
  }
  // Of the head of the file; what it says then may be true by chance, so only the return counts.
  for (size_t at = 0; at < 64; ++at) {
    std::string bytes = whole;
    for (const int byte : {0x00, 0x7f, 0xff}) {
      bytes[at] = static_cast<char>(byte);
      (void)look(bytes);
    }
  }
}

}  // namespace
}  // namespace keel
