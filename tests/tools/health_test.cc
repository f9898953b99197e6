// Parts of `keel health`: what is concluded from counters and from nvidia-smi's words, and how they
// are read, here from files of a folder and from programs that stand for nvidia-smi.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/file_helpers.h"
#include "base/posix_files.h"
#include "base/text.h"
#include "elastic/process/proc_file.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/temp_dir.h"
#include "tools/keel/health_findings.h"
#include "tools/keel/health_gpu.h"
#include "tools/keel/health_look.h"

namespace keel {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

using Findings = std::vector<HealthFinding>;

std::string Text(const Findings& findings) {
  std::string text;
  for (const HealthFinding& one : findings) {
    text += one.check + ": " + std::string(FitnessName(one.fitness)) + ": " + one.what + "\n";
  }
  return text;
}

// --- what the kernel tells ---

class HealthLook : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& content) {
    ASSERT_OK(MakeDirs(files_, ParentDir(dir_.File(path))));
    ASSERT_OK(WriteDurably(files_, dir_.File(path), content));
  }
  void WriteCounts(const std::string& controller, const std::string& uncorrected,
                   const std::string& corrected) {
    const std::string folder = "sys/devices/system/edac/mc/" + controller + "/";
    Write(folder + "ue_count", uncorrected);
    Write(folder + "ce_count", corrected);
  }
  // A program that stands for nvidia-smi; what asks it.
  ProgramQuestion Fake(const std::string& script, Duration limit = std::chrono::minutes(5)) {
    const std::string path = dir_.File("nvidia-smi");
    EXPECT_OK(WriteDurably(files_, path, "#!/bin/bash\n" + script + "\n"));
    EXPECT_EQ(::chmod(path.c_str(), 0755), 0);
    return {path, true, limit};
  }
  Findings Ask(const ProgramQuestion& question) {
    const auto look = AskGpus(question, files_, dir_.path());
    EXPECT_OK(look);
    return look.ok() ? look->findings : Findings();
  }

  const TempDir dir_;
  PosixFiles files_;
};

TEST_F(HealthLook, UncorrectedErrorsOfMemoryAreAFault) {
  WriteCounts("mc0", "0\n", "17\n");
  WriteCounts("mc1", "2\n", "0\n");
  Write("sys/devices/system/edac/mc/power/control", "auto\n");
  const Findings findings = LookAtMemory(files_, dir_.path());
  EXPECT_EQ(Text(findings),
            "memory: fit: the memory controller mc0 has counted 0 uncorrected errors and 17 "
            "corrected errors\n"
            "memory: unfit: the memory controller mc1 has counted 2 uncorrected errors and 0 "
            "corrected errors\n");
  EXPECT_THAT(findings[1].cure, HasSubstr("/sys/devices/system/edac/mc/mc1"));
}

TEST_F(HealthLook, MemoryThatNobodyCountsIsNotKnown) {
  EXPECT_THAT(Text(LookAtMemory(files_, dir_.path())), StartsWith("memory: not known: "));
  ASSERT_OK(MakeDirs(files_, dir_.File("sys/devices/system/edac/mc")));
  EXPECT_THAT(Text(LookAtMemory(files_, dir_.path())), StartsWith("memory: not known: "));
  for (const std::string text : {"", "-1\n", "many\n", "99999999999999999999\n"}) {
    WriteCounts("mc0", text, text);
    EXPECT_THAT(Text(LookAtMemory(files_, dir_.path())),
                StartsWith("memory: not known: the memory controller mc0 does not tell"));
  }
}

TEST_F(HealthLook, MachineChecksThatTheKernelMetAreAFault) {
  const std::string before = "           CPU0       CPU1\n  0:         38          0  timer\n";
  const std::string polls = "MCP:        112        112   Machine check polls\n";
  Write("proc/interrupts", before + "MCE:          0          0   Machine check exceptions\n" +
                               polls);
  EXPECT_EQ(LookAtMachineChecks(files_, dir_.path()).fitness, Fitness::kFit);
  Write("proc/interrupts", before + "MCE:          0          3   Machine check exceptions\n" +
                               polls);
  EXPECT_THAT(Text({LookAtMachineChecks(files_, dir_.path())}),
              HasSubstr("unfit: since the machine started, the kernel has met 3 machine check "
                        "exceptions, on 1 processor: "));
}

TEST_F(HealthLook, MachineChecksThatNobodyCountsAreNotKnown) {
  EXPECT_EQ(LookAtMachineChecks(files_, dir_.path()).fitness, Fitness::kUnknown);
  for (const std::string text : {"", "MCE:\n", "MCE: none\n", "MCP:  1  Machine check polls\n"}) {
    Write("proc/interrupts", text);
    EXPECT_EQ(LookAtMachineChecks(files_, dir_.path()).fitness, Fitness::kUnknown) << text;
  }
}

// --- nvidia-smi's words ---

constexpr const char* kSound = "0, GPU-aa, 00000000:3B:00.0, 0, No, No, Not Active, Not Active, No";

Findings Of(const std::string& lines) {
  return GpuFindings(ParseGpuAnswer(GpuFields(), lines).gpus);
}

TEST(HealthGpu, AsksForFaults) {
  EXPECT_EQ(JoinList(GpuFields()),
            "index,uuid,pci.bus_id,ecc.errors.uncorrected.volatile.total,remapped_rows.pending,"
            "remapped_rows.failure,clocks_throttle_reasons.hw_slowdown,"
            "clocks_throttle_reasons.hw_thermal_slowdown,retired_pages.pending");
}

TEST(HealthGpu, ASoundOneIsFit) {
  EXPECT_EQ(Text(Of(std::string(kSound) + "\n")),
            "gpu: fit: GPU 0 (GPU-aa, 00000000:3B:00.0) tells of no fault\n");
  EXPECT_EQ(Of("1, GPU-bb, 00000000:3C:00.0, 0, 0, 0, 0, 0, 0")[0].fitness, Fitness::kFit);
}

TEST(HealthGpu, EachFaultIsNamedWithItsGpuAndACure) {
  const std::pair<const char*, const char*> rows[] = {
      {"4, No, No, Not Active, Not Active, No", " has 4 uncorrected errors of its memory"},
      {"0, Yes, No, Not Active, Not Active, No", "memory that are still to be remapped"},
      {"0, No, Yes, Not Active, Not Active, No", "memory that could not be remapped"},
      {"0, No, 1, Not Active, Not Active, No", "memory that could not be remapped"},
      {"0, No, No, Active, Not Active, No", "clocks that its hardware holds down"},
      {"0, No, No, Active, Active, No", "clocks that its hardware holds down for heat"},
      {"[N/A], [N/A], [N/A], Not Active, Not Active, Yes", "still to be retired"}};
  for (const auto& [values, words] : rows) {
    const Findings findings = Of("3, GPU-cc, 00000000:5E:00.0, " + std::string(values));
    ASSERT_EQ(findings.size(), 1u) << values << "\n" << Text(findings);
    EXPECT_EQ(findings[0].fitness, Fitness::kUnfit) << values;
    EXPECT_THAT(findings[0].what, AllOf(StartsWith("GPU 3 (GPU-cc, 00000000:5E:00.0) has "),
                                        EndsWith(words)));
    EXPECT_THAT(findings[0].cure, Not(IsEmpty()));
  }
  EXPECT_EQ(Of("0, GPU-a, b, 1, Yes, Yes, Active, Active, Yes").size(), 5u);
}

TEST(HealthGpu, WhatItDoesNotTellIsNoFault) {
  const Findings some = Of("0, GPU-aa, b, [N/A], [Not Supported], N/A, Not Active, [N/A], ?");
  ASSERT_EQ(some.size(), 1u);
  EXPECT_EQ(some[0].fitness, Fitness::kFit);
  EXPECT_THAT(some[0].what, HasSubstr("and does not tell ecc.errors.uncorrected.volatile.total, "
                                      "remapped_rows.pending"));
  EXPECT_THAT(some[0].what, Not(HasSubstr("hw_slowdown")));
  EXPECT_EQ(Of("0, GPU-aa, b, [N/A], [N/A], [N/A], [N/A], [N/A], [N/A]")[0].fitness,
            Fitness::kUnknown);
}

TEST(HealthGpu, OneThatIsLostIsAFault) {
  for (const std::string words : {"[GPU is lost]", "[GPU requires reset]", "[Unknown Error]",
                                  "ERR!"}) {
    const Findings findings = Of("2, GPU-aa, b, " + words + ", " + words + ", [N/A], [N/A], " +
                                 words + ", [N/A]");
    ASSERT_EQ(findings.size(), 1u) << Text(findings);
    EXPECT_EQ(findings[0].fitness, Fitness::kUnfit);
    EXPECT_THAT(findings[0].what, HasSubstr(words));
  }
}

TEST(HealthGpu, OtherLinesAreSetAside) {
  const GpuAnswer answer = ParseGpuAnswer(
      GpuFields(), "\n" + std::string(kSound) + "\r\nWARNING: infoROM is corrupted\n,\n"
                                           "x,,,,,,,,\n");
  EXPECT_EQ(answer.gpus.size(), 1u);
  EXPECT_EQ(answer.gpus[0].at("retired_pages.pending"), "No") << "without the line's end";
  EXPECT_THAT(answer.odd_lines, ElementsAre("WARNING: infoROM is corrupted", ",", "x,,,,,,,,"));
}

TEST(HealthGpu, TakesAnyBytes) {
  const std::string binary("\0\xff\xfe,,,\x1b[31m,\n,,,,,,,,\n\x80", 21);
  const GpuAnswer answer = ParseGpuAnswer(GpuFields(), binary);
  for (const HealthFinding& one : GpuFindings(answer.gpus)) {
    EXPECT_EQ(one.what.find('\x1b'), std::string::npos);
    EXPECT_NE(one.fitness, Fitness::kUnfit);
  }
  (void)UnknownField(binary);
  (void)NamesGpu(binary);
}

TEST(HealthGpu, KnowsTheFieldThatIsNotKnown) {
  EXPECT_EQ(UnknownField("Field \"a.b\" is not a valid field to query.\n"), "a.b");
  EXPECT_EQ(UnknownField("x \" Field \"c\" is not a valid field to query"), "c");
  EXPECT_EQ(UnknownField("No devices were found"), std::nullopt);
  EXPECT_EQ(UnknownField("\" is not a valid field to query"), std::nullopt);
}

TEST(HealthGpu, KnowsWordsAboutACertainGpu) {
  EXPECT_TRUE(NamesGpu("Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error"));
  EXPECT_TRUE(NamesGpu("... for gpu 0000:02:00.0"));
  EXPECT_TRUE(NamesGpu("00000000:3B:00.0"));
  EXPECT_TRUE(NamesGpu("GPU-5d2c lost"));
  for (const char* words : {"No devices were found", "12:30:01", "a:b", "0000:3B:0", "::::::::::",
                            "NVIDIA-SMI has failed because it couldn't communicate: the driver"}) {
    EXPECT_FALSE(NamesGpu(words)) << words;
  }
}

TEST(HealthGpu, SilenceIsAFaultWhereThereIsAGpu) {
  const HealthFinding fault =
      SilentGpus("nvidia-smi exited with 9", "it has failed\n", "/dev/nvidia0");
  EXPECT_EQ(fault.fitness, Fitness::kUnfit);
  EXPECT_EQ(fault.what,
            "nvidia-smi exited with 9, and says \"it has failed\"; there is /dev/nvidia0");
  EXPECT_EQ(SilentGpus("it", "No devices were found", "").fitness, Fitness::kUnknown);
  EXPECT_EQ(SilentGpus("it", "GPU 0000:3B:00.0 is lost", "").fitness, Fitness::kUnfit);
}

// --- programs that stand for nvidia-smi ---

TEST_F(HealthLook, AsksNvidiaSmi) {
  const ProgramQuestion fake =
      Fake("echo \"$*\" >" + dir_.File("asked") + "; echo '" + kSound + "'");
  EXPECT_THAT(Text(Ask(fake)), StartsWith("gpu: fit: GPU 0 (GPU-aa, "));
  const auto asked = ReadWhole(files_, dir_.File("asked"), 4096);
  ASSERT_OK(asked);
  EXPECT_EQ(*asked, "--query-gpu=" + JoinList(GpuFields()) + " --format=csv,noheader,nounits\n");
}

// Those of remapped rows are known under another option then.
TEST_F(HealthLook, LeavesOutFieldsThatNvidiaSmiDoesNotKnow) {
  const ProgramQuestion fake = Fake(
      "for field in remapped_rows.pending remapped_rows.failure retired_pages.pending; do\n"
      "  [[ $1 == --query-gpu=*$field* ]] || continue\n"
      "  echo \"Field \\\"$field\\\" is not a valid field to query.\"; exit 2\n"
      "done\n"
      "case $1 in\n"
      "  --query-gpu=*) echo '0, GPU-aa, bus0, 0, Not Active, Not Active'\n"
      "                 echo '1, GPU-bb, bus1, 0, Not Active, Not Active';;\n"
      "  --query-remapped-rows=gpu_uuid,*) echo 'GPU-bb, Yes, No'; echo 'GPU-aa, No, No';;\n"
      "esac");
  EXPECT_EQ(Text(Ask(fake)),
            "gpu: fit: GPU 0 (GPU-aa, bus0) tells of no fault, and does not tell "
            "retired_pages.pending\n"
            "gpu: unfit: GPU 1 (GPU-bb, bus1) has rows of its memory that are still to be "
            "remapped\n");
}

TEST_F(HealthLook, FailuresOfNvidiaSmiAreFaultsWhereThereIsAGpu) {
  const std::pair<const char*, const char*> rows[] = {
      {"echo 'No devices were found'; exit 6", "exited with 6, and says \"No devices were found\""},
      {"exit 255", "exited with 255"},
      {"kill -SEGV $$", "killed by signal 11 (SIGSEGV)"},
      {"echo an answer of its own", "said nothing of any GPU, and says \"an answer of its own\""},
      {"head -c 4096 /dev/zero; printf '\\377\\376\\033[2J'", "said nothing of any GPU"},
      {"for i in {0..999}; do printf '\\377,,,,,,,,\\n\\n,\\n'; done", "said nothing of any GPU"},
      {"while :; do echo 0123456789012345678901234567890123456789; done", "said more than 1 MiB"}};
  for (const auto& [script, words] : rows) {
    const ProgramQuestion fake = Fake(script);
    const Findings without = Ask(fake);
    ASSERT_EQ(without.size(), 1u) << script;
    EXPECT_EQ(without[0].fitness, Fitness::kUnknown) << script << Text(without);
    Write("dev/nvidia0", "");
    const Findings with = Ask(fake);
    ASSERT_EQ(with.size(), 1u) << script;
    EXPECT_EQ(with[0].fitness, Fitness::kUnfit) << script << Text(with);
    EXPECT_THAT(with[0].what, HasSubstr(words));
    for (const char one : with[0].what) ASSERT_GE(static_cast<unsigned char>(one), ' ') << script;
    ASSERT_OK(files_.Remove(dir_.File("dev/nvidia0")));
  }
}

TEST_F(HealthLook, OnlyFilesOfGpusShowThatThereIsOne) {
  for (const char* name : {"nvidiactl", "nvidia-uvm", "nvidia", "nvidia0x"}) {
    Write(std::string("dev/") + name, "");
  }
  const ProgramQuestion fake = Fake("exit 9");
  EXPECT_EQ(Ask(fake)[0].fitness, Fitness::kUnknown);
  Write("dev/nvidia12", "");
  EXPECT_THAT(Text(Ask(fake)), HasSubstr("; there is /dev/nvidia12"));
}

// What it has started itself is gone, too.
TEST_F(HealthLook, NvidiaSmiThatHangsIsEnded) {
  Write("dev/nvidia0", "");
  const std::string pids = dir_.File("pids");
  const Findings findings =
      Ask(Fake("trap '' TERM; sleep 3600 & echo $$ $! >" + pids + "; echo waiting; wait",
               std::chrono::seconds(3)));
  EXPECT_THAT(Text(findings),
              HasSubstr("did not end within 3 s, and says \"waiting\"; there is /dev/nvidia0"));
  const auto text = ReadWhole(files_, pids, 100);
  ASSERT_OK(text);
  const auto words = SplitList(Trim(*text), ' ');
  ASSERT_EQ(words.size(), 2u);
  for (const std::string& pid : words) {
    // One that was killed may be a zombie until the system's first process looks after it.
    const auto stat = ReadProcFile("/proc/" + pid + "/stat");
    EXPECT_TRUE(!stat.has_value() || stat->find(") Z ") != std::string::npos) << *stat;
  }
}

// Nobody waits for a process in the background that keeps its output open.
TEST_F(HealthLook, AnAnswerCountsWhenNvidiaSmiHasEnded) {
  const Findings findings = Ask(Fake("sleep 3600 & echo '" + std::string(kSound) + "'"));
  EXPECT_TRUE(IsFit(findings)) << Text(findings);
  EXPECT_EQ(findings.size(), 1u);
}

TEST_F(HealthLook, ALostGpuIsAFaultBesideSoundOnes) {
  const Findings findings = Ask(Fake("echo '" + std::string(kSound) + "'\n"
                                     "echo 'Unable to determine the device handle for GPU "
                                     "0000:5E:00.0: GPU is lost.' >&2; exit 15"));
  EXPECT_EQ(Text(findings),
            "gpu: fit: GPU 0 (GPU-aa, 00000000:3B:00.0) tells of no fault\n"
            "gpu: unfit: " + dir_.File("nvidia-smi") +
                " exited with 15, and says \"Unable to determine the device handle for GPU "
                "0000:5E:00.0: GPU is lost.\"\n");
}

TEST_F(HealthLook, AWarningBesideAnAnswerIsToldAndNoFault) {
  const Findings findings = Ask(Fake("echo '" + std::string(kSound) + "'; echo 'WARNING: hm'"));
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_TRUE(IsFit(findings));
  EXPECT_THAT(findings[1].what, EndsWith(" also says \"WARNING: hm\""));
  EXPECT_EQ(Ask(Fake("echo '" + std::string(kSound) + "'; seq 1000")).size(), 4u) << "no more";
}

TEST_F(HealthLook, WithoutNvidiaSmiNobodyTells) {
  const ProgramQuestion question{"no-such-nvidia-smi", false, std::chrono::minutes(5)};
  EXPECT_EQ(Text(Ask(question)), "gpu: not known: there is no GPU of NVIDIA's to ask\n");
  Write("dev/nvidia3", "");
  EXPECT_THAT(Text(Ask(question)), HasSubstr("not known: there is /dev/nvidia3, and no "));
  const auto named = AskGpus({"no-such-nvidia-smi", true, {}}, files_, dir_.path());
  ASSERT_FALSE(named.ok()) << "the user is mistaken";
  EXPECT_EQ(named.error().code, Code::kNotFound);
}

TEST_F(HealthLook, SaysWhetherThereIsAGpuToComputeOn) {
  const auto look = [&](const ProgramQuestion& question) {
    const auto found = AskGpus(question, files_, dir_.path());
    EXPECT_OK(found);
    return found.ok() ? std::pair(found->has_gpu, found->is_silent) : std::pair(false, false);
  };
  const ProgramQuestion none{"no-such-nvidia-smi", false, std::chrono::minutes(5)};
  const ProgramQuestion sound = Fake(std::string("echo '") + kSound + "'");
  EXPECT_EQ(look(sound), std::pair(true, false));
  EXPECT_EQ(look(none), std::pair(false, false));
  EXPECT_EQ(look(Fake("echo No devices were found; exit 6")), std::pair(false, true));
  Write("dev/nvidia0", "");
  EXPECT_EQ(look(none), std::pair(true, false));
  EXPECT_EQ(look(Fake("exit 9")), std::pair(true, true));
}

// --- the sentence ---

TEST(HealthSentence, SaysWhatIsUnfit) {
  const HealthFinding fit{"cpu", Fitness::kFit, "all is well"};
  const HealthFinding unknown{"memory", Fitness::kUnknown, "nobody counts"};
  const HealthFinding unfit{"gpu", Fitness::kUnfit, "GPU 3 is lost", "restart"};
  EXPECT_EQ(HealthSentence({fit}), "This machine is fit to train.");
  EXPECT_EQ(HealthSentence({fit, unknown, {"gpu", Fitness::kUnknown, "none"}, unknown}),
            "This machine is fit to train, as far as is known (not known: memory, gpu).");
  EXPECT_EQ(HealthSentence({fit, unfit, unknown}),
            "This machine is unfit to train: GPU 3 is lost.");
  EXPECT_EQ(HealthSentence({unfit, unfit, unfit, unfit, unfit}),
            "This machine is unfit to train: GPU 3 is lost; GPU 3 is lost; GPU 3 is lost; and 2 "
            "more findings.");
}

}  // namespace
}  // namespace keel
