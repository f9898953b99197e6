// keel health: what the program says of this machine, with a program that stands for nvidia-smi.
// Whether this machine is fit is not for a test to say: its memory may have faults.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "base/text.h"
#include "tests/tools/keel_program.h"

namespace keel {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const char kSound[] = "0, GPU-aa, 00000000:3B:00.0, 0, No, No, Not Active, Not Active, No";
const char kFaulty[] = "1, GPU-bb, 00000000:5E:00.0, 4, No, No, Not Active, Not Active, No";

class KeelHealth : public KeelProgram {
 protected:
  // The first of PATH, where `keel` looks for it.
  void MakeNvidiaSmi(const std::string& script) {
    const std::string path = dir_.File("nvidia-smi");
    ASSERT_OK(WriteDurably(files_, path, "#!/bin/sh\n" + script + "\n"));
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  }
  Ran Health(const std::string& arguments) {
    return RunShell("PATH=" + dir_.path() + ":$PATH " KEEL_BIN_DIR "/keel health --seconds 0 " +
                    arguments);
  }
  // What was found by one check.
  Json FindingsOf(const Json& json, const std::string& check) {
    Json found = Json::array();
    for (const Json& one : json["findings"]) {
      if (one["check"] == check) found.push_back(one);
    }
    return found;
  }
};

TEST_F(KeelHealth, TellsOfEachCheckAndEndsWithASentence) {
  MakeNvidiaSmi(std::string("echo '") + kSound + "'");
  const Ran ran = Health("");
  for (const char* check : {"cpu ", "memory ", "machine checks ", "gpu "}) {
    EXPECT_THAT(ran.out, HasSubstr(std::string("\n") + check));
  }
  const std::string last = SplitList(ran.out, '\n').back();
  EXPECT_THAT(last, StartsWith(ran.exit_code == 0 ? "This machine is fit to train"
                                                  : "This machine is unfit to train: "));
  EXPECT_THAT(last, EndsWith("."));
}

TEST_F(KeelHealth, AFaultyGpuMakesTheMachineUnfit) {
  MakeNvidiaSmi(std::string("echo '") + kSound + "'; echo '" + kFaulty + "'");
  const Ran ran = Health("");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(SplitList(ran.out, '\n').back(),
              EndsWith("GPU 1 (GPU-bb, 00000000:5E:00.0) has 4 uncorrected errors of its memory."));
  EXPECT_THAT(ran.out, HasSubstr("; cure: reset the GPU"));
}

TEST_F(KeelHealth, TellsProgramsTheSame) {
  MakeNvidiaSmi(std::string("echo '") + kSound + "'; echo '" + kFaulty + "'");
  const Ran ran = Health("--json");
  EXPECT_EQ(ran.exit_code, 1);
  const auto json = ParseJson(ran.out);
  ASSERT_OK(json);
  EXPECT_EQ((*json)["fit"], false);
  EXPECT_THAT((*json)["sentence"].get<std::string>(), StartsWith("This machine is unfit"));
  const Json gpus = FindingsOf(*json, "gpu");
  ASSERT_EQ(gpus.size(), 2u) << ran.out;
  EXPECT_EQ(gpus[0]["verdict"], "fit");
  EXPECT_FALSE(gpus[0].contains("cure"));
  EXPECT_EQ(gpus[1]["verdict"], "unfit");
  EXPECT_THAT(gpus[1]["cure"].get<std::string>(), StartsWith("reset the GPU"));
  EXPECT_EQ(FindingsOf(*json, "cpu")[0]["verdict"], "fit") << ran.out;
  EXPECT_FALSE(FindingsOf(*json, "memory").empty());
  EXPECT_FALSE(FindingsOf(*json, "machine checks").empty());
}

TEST_F(KeelHealth, BytesThatAreNoTextStayOneLineAndValidJson) {
  MakeNvidiaSmi("printf '\\377\\033[2J\\001 0000:3B:00.0\\n'; exit 255");
  const Ran ran = Health("--json");
  EXPECT_EQ(ran.exit_code, 1);
  ASSERT_OK(ParseJson(ran.out));
  EXPECT_THAT(SplitList(Health("").out, '\n').back(), StartsWith("This machine is unfit to train"));
}

TEST_F(KeelHealth, NvidiaSmiThatHangsIsNotWaitedFor) {
  MakeNvidiaSmi("echo 0000:3B:00.0; exec sleep 3600");
  const Ran ran = Health("--limit 5s");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.out, HasSubstr("nvidia-smi did not end within 5 s, and says \"0000:3B"));
}

TEST_F(KeelHealth, AsksForNoGpusWhereItIsToldSo) {
  MakeNvidiaSmi("touch " + dir_.File("asked"));
  EXPECT_THAT(Health("--nvidia-smi ''").out, HasSubstr("GPUs were not to be asked"));
  EXPECT_FALSE(*Exists(files_, dir_.File("asked")));
}

TEST_F(KeelHealth, MistakesAreTold) {
  EXPECT_EQ(Health("--nvidia-smi /no/such/nvidia-smi").exit_code, 3);
  EXPECT_EQ(Health("--seconds -1").exit_code, 2);
  EXPECT_EQ(Health("--seconds 1e300").exit_code, 2);
  EXPECT_EQ(Health("--limit 0").exit_code, 2);
  const Ran ran = Health("runs/bert");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.out, HasSubstr("runs/bert"));
}

// As a scheduler may start it: bound to some processors.
TEST_F(KeelHealth, ComputesOnItsOwnProcessorsAlone) {
  MakeNvidiaSmi("exit 9");
  if (RunShell("command -v taskset").exit_code != 0) GTEST_SKIP() << "there is no taskset here";
  const Ran ran = RunShell("PATH=" + dir_.path() +
                           ":$PATH; first=$(taskset -pc $$ | sed 's/.*: *//; s/[-,].*//'); "
                           "taskset -c $first " KEEL_BIN_DIR "/keel health --seconds 0");
  EXPECT_THAT(ran.out, HasSubstr("fit        1 processor computed what"));
}

}  // namespace
}  // namespace keel
