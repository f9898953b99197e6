// keel health: what the program says of this machine, with programs that stand for nvidia-smi and
// for Python, and a file that stands for the kernel's log. Whether this machine is fit is not for a
// test to say: its memory may have faults.
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
  Ran HealthOfAll(const std::string& arguments) {
    return RunShell("PATH=" + dir_.path() + ":$PATH " KEEL_BIN_DIR "/keel health --seconds 0 " +
                    arguments);
  }
  // Without what this machine's kernel has logged, and without Python.
  Ran Health(const std::string& arguments) {
    return HealthOfAll("--kernel-log '' --python '' " + arguments);
  }
  // An option that names a program of that name, which is the script.
  std::string Python(const std::string& script) {
    const std::string path = dir_.File("python");
    EXPECT_OK(WriteDurably(files_, path, "#!/bin/bash\n" + script + "\n"));
    EXPECT_EQ(::chmod(path.c_str(), 0755), 0);
    return "--kernel-log '' --python " + path;
  }
  std::string Log(const std::string& content) {
    EXPECT_OK(WriteDurably(files_, dir_.File("kern.log"), content));
    return "--python '' --kernel-log " + dir_.File("kern.log");
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
  for (const char* check : {"cpu ", "memory ", "machine checks ", "xid ", "gpu ", "gpu product "}) {
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

TEST_F(KeelHealth, AnErrorInTheKernelsLogMakesTheMachineUnfit) {
  MakeNvidiaSmi(std::string("echo '") + kSound + "'");
  const std::string lost =
      "[ 60.1] NVRM: Xid (PCI:0000:3b:00): 79, pid=7, GPU has fallen off the bus.\n";
  const Ran ran = HealthOfAll(Log(lost) + " --json");
  EXPECT_EQ(ran.exit_code, 1);
  const auto json = ParseJson(ran.out);
  ASSERT_OK(json);
  const Json xids = FindingsOf(*json, "xid");
  ASSERT_EQ(xids.size(), 1u) << ran.out;
  EXPECT_EQ(xids[0]["verdict"], "unfit");
  EXPECT_EQ(xids[0]["found"], dir_.File("kern.log") +
                                  " says that GPU 0000:3b:00 has fallen off the bus (Xid 79, 1 "
                                  "time)");
  EXPECT_THAT(xids[0]["cure"].get<std::string>(), StartsWith("restart the machine"));
  EXPECT_THAT(HealthOfAll(Log(lost + "[ 0.0] Linux version 6.1.0\n")).out,
              HasSubstr("kern.log has no error of a GPU (Xid)\n"));
}

TEST_F(KeelHealth, WhatProgramsDidWrongIsToldAndNoFault) {
  MakeNvidiaSmi(std::string("echo '") + kSound + "'");
  const Ran ran = HealthOfAll(Log("NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=python3\n"));
  EXPECT_THAT(ran.out, HasSubstr("xid             fit        "));
  EXPECT_THAT(ran.out, HasSubstr("1 that programs made (31), which say nothing of the machine"));
}

TEST_F(KeelHealth, AKernelLogThatNeverEndsIsNotReadForEver) {
  MakeNvidiaSmi(std::string("echo '") + kSound + "'");
  EXPECT_THAT(HealthOfAll("--python '' --kernel-log /dev/zero --limit 2s").out,
              HasSubstr("/dev/zero could not be read to its end within 2 s"));
}

TEST_F(KeelHealth, AGpuThatComputesWronglyMakesTheMachineUnfit) {
  MakeNvidiaSmi(std::string("echo '") + kSound + "'");
  const Ran ran = HealthOfAll(Python(
      R"(echo '{"gpus": [{"index": 0, "uuid": "GPU-aa", "bus": "00000000:3B:00.0"}]}'
         echo '{"gpu": 0, "products": 8, "wrong": [{"kind": "TF32", "times": 1, "elements": 9,
                "differing": 1, "row": 2, "column": 1, "found": "5", "right": "4",
                "shape": "3 x 3 by 3 x 3"}]}' | tr -d '
')"));
  EXPECT_EQ(ran.exit_code, 1) << ran.out;
  EXPECT_THAT(SplitList(ran.out, '\n').back(),
              EndsWith("GPU 0 (GPU-aa, 00000000:3B:00.0) computed another product than it should, "
                       "with TF32: 1 of 9 elements differ, the first at row 2, column 1: 5, not 4 "
                       "(3 x 3 by 3 x 3; 1 of 8 products were wrong)."));
}

TEST_F(KeelHealth, PythonIsStartedOnlyWhereThereIsAGpuThatAnswers) {
  const std::string python = Python("touch " + dir_.File("asked"));
  const auto is_asked = [&] { return *Exists(files_, dir_.File("asked")); };
  MakeNvidiaSmi("echo No devices were found; exit 6");
  EXPECT_THAT(HealthOfAll(python).out, HasSubstr("gpu product     not known  "));
  EXPECT_FALSE(is_asked());
  MakeNvidiaSmi("echo Unable to determine the device handle for GPU 0000:3B:00.0; exit 15");
  EXPECT_THAT(HealthOfAll(python).out, HasSubstr("nvidia-smi could not ask all of them"));
  EXPECT_FALSE(is_asked());
  MakeNvidiaSmi(std::string("echo '") + kSound + "'");
  EXPECT_THAT(HealthOfAll(python + " --nvidia-smi ''").out, HasSubstr("nor to be computed with"));
  EXPECT_FALSE(is_asked());
  EXPECT_THAT(Health("").out, HasSubstr("not to be computed with (--python is empty)"));
  EXPECT_FALSE(is_asked());
  EXPECT_THAT(HealthOfAll(python).out, HasSubstr("python ended, and told of no product"));
  EXPECT_TRUE(is_asked());
}

TEST_F(KeelHealth, WhereNoPythonIsNamedItTakesThatOfKeelrun) {
  MakeNvidiaSmi(std::string("echo '") + kSound + "'");
  Python("touch " + dir_.File("asked"));
  RunShell("PATH=" + dir_.path() + ":$PATH PYTHON_EXEC=" + dir_.File("python") +
           " " KEEL_BIN_DIR "/keel health --seconds 0 --kernel-log ''");
  EXPECT_TRUE(*Exists(files_, dir_.File("asked")));
}

TEST_F(KeelHealth, PythonThatHangsIsNotWaitedForAndNoFault) {
  MakeNvidiaSmi(std::string("echo '") + kSound + "'");
  const Ran ran = HealthOfAll(Python("trap '' TERM; sleep 3600") + " --python-limit 2s --json");
  const auto json = ParseJson(ran.out);
  ASSERT_OK(json);
  const Json found = FindingsOf(*json, "gpu product");
  ASSERT_EQ(found.size(), 1u) << ran.out;
  EXPECT_EQ(found[0]["verdict"], "not known");
  EXPECT_THAT(found[0]["found"].get<std::string>(), HasSubstr("did not end within 2 s"));
}

TEST_F(KeelHealth, MistakesAreTold) {
  EXPECT_EQ(Health("--nvidia-smi /no/such/nvidia-smi").exit_code, 3);
  MakeNvidiaSmi("exit 6");
  EXPECT_EQ(HealthOfAll("--kernel-log '' --python /no/such/python").exit_code, 3);
  EXPECT_EQ(HealthOfAll("--kernel-log '' --nvidia-smi '' --python /no/such/python").exit_code, 3);
  EXPECT_EQ(HealthOfAll("--python '' --kernel-log /no/such/log").exit_code, 3);
  EXPECT_EQ(HealthOfAll("--python '' --kernel-log " + dir_.path()).exit_code, 3);
  EXPECT_EQ(Health("--python-limit 0").exit_code, 2);
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
