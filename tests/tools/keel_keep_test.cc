// keel gc, pin and unpin: what stays and what goes.
#include "ckpt/catalog.h"
#include "tests/harness/sanitizers.h"
#include "tests/tools/keel_program.h"

namespace keel {
namespace {

class KeelKeep : public KeelProgram {
 protected:
  std::vector<uint64_t> Steps() {
    std::vector<uint64_t> steps;
    const auto entries = ListSteps(files_, root());
    for (const StepEntry& entry : *entries) steps.push_back(entry.step);
    return steps;
  }
};

TEST_F(KeelKeep, GcRemovesOldOnesButNotPinnedOnes) {
  for (const uint64_t step : {10, 20, 30, 40, 50}) SaveStep(state_, step);
  EXPECT_EQ(RunKeel("pin " + root() + "@10").exit_code, 0);
  const Json dry = KeelJson("gc " + root() + " --keep 2 --dry-run");
  EXPECT_GT(dry["bytes_freed"], 0);
  EXPECT_EQ(Steps().size(), 5u) << "a dry run removes nothing";
  const Json done = KeelJson("gc " + root() + " --keep 2");
  EXPECT_EQ(done["bytes_freed"], dry["bytes_freed"]);
  EXPECT_EQ(Steps(), (std::vector<uint64_t>{10, 40, 50}));
  EXPECT_EQ(RunKeel("unpin " + root() + "@10").exit_code, 0);
  EXPECT_EQ(RunKeel("gc " + root() + " --keep 1 --keep-every 20").exit_code, 0);
  EXPECT_EQ(Steps(), (std::vector<uint64_t>{40, 50}));
  EXPECT_EQ(RunKeel("gc " + root() + " --keep 0").exit_code, 2) << "the newest always stays";
}

TEST_F(KeelKeep, GcBesideHundredsOfImportsTakesNoneAway) {
  SaveStep(state_, 1);
  ASSERT_EQ(RunKeel("export " + root() + " " + dir_.File("in")).exit_code, 0);
  const std::string go = dir_.File("go");
  const std::string last = std::to_string(Rounds(300, 80));
  const Ran ran = RunShell(
      "touch " + go + "; (while [ -e " + go + " ]; do " KEEL_BIN_DIR "/keel gc " + root() +
      " --keep 1 --partial all >/dev/null || { echo gc failed; break; }; done) & "
      "for step in $(seq 2 " + last + "); do " KEEL_BIN_DIR "/keel import " + dir_.File("in") +
      " " + root() + " --step $step >/dev/null || { echo import of $step failed; break; }; "
      "done; rm -f " + go + "; wait");
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(RunKeel("verify " + root() + "@" + last).exit_code, 0);
}

TEST_F(KeelKeep, GcNamesTheDirectoryWhereOneCheckpointIsGiven) {
  const std::string step = SaveStep(state_, 10);
  SaveStep(state_, 20);
  for (const std::string& text : {step, step + "/", root() + "@10", root() + "@latest"}) {
    const Ran ran = RunKeel("gc --keep 1 " + text);
    EXPECT_EQ(ran.exit_code, 3) << ran.out;
    EXPECT_NE(ran.out.find("names one checkpoint"), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find("`keel gc " + root() + "`"), std::string::npos) << ran.out;
  }
  EXPECT_EQ(Steps(), (std::vector<uint64_t>{10, 20}));
}

// As after `ln -s ../old/step-000000010 new/`, to begin a run with a checkpoint of another one.
TEST_F(KeelKeep, GcRemovesNothingBehindALink) {
  const std::string elsewhere = SaveStep(state_, 10, dir_.File("other"));
  for (const uint64_t step : {20, 30}) SaveStep(state_, step);
  ASSERT_EQ(RunShell("ln -s " + elsewhere + " " + root() + "/step-000000010").exit_code, 0);
  for (const std::string more : {" --dry-run", ""}) {
    const Ran ran = RunKeel("gc --keep 1 " + root() + more);
    EXPECT_EQ(ran.exit_code, 0) << ran.out;
    EXPECT_NE(ran.out.find("symbolic link"), std::string::npos) << ran.out;
  }
  EXPECT_EQ(Steps(), (std::vector<uint64_t>{10, 30}));
  EXPECT_EQ(RunKeel("verify " + elsewhere).exit_code, 0);
}

// What is left may still be repaired, as long as nobody removes it.
TEST_F(KeelKeep, APinThatWasThereStaysWhereThereIsNothingToPinAnyMore) {
  const std::string step = SaveStep(state_, 10);
  EXPECT_EQ(RunKeel("pin " + step).exit_code, 0);
  ASSERT_OK(files_.Remove(step + "/manifest.json"));
  EXPECT_EQ(RunKeel("pin " + step).exit_code, 3);
  EXPECT_OK(files_.Stat(step + "/pinned"));
}

TEST_F(KeelKeep, PinningWhatIsNotThereFails) {
  SaveStep(state_, 10);
  EXPECT_EQ(RunKeel("pin " + root() + "@11").exit_code, 3);
  EXPECT_EQ(RunKeel("pin " + root() + "/step-000000011").exit_code, 3);
  EXPECT_EQ(Steps(), std::vector<uint64_t>{10});
}

}  // namespace
}  // namespace keel
