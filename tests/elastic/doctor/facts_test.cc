// What the system's texts say, and what doctors tell each other.
#include "elastic/doctor/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <future>

#include "base/faulty_files.h"
#include "base/json.h"
#include "base/memory_files.h"
#include "base/posix_files.h"
#include "elastic/doctor/buckets.h"
#include "elastic/doctor/records.h"
#include "elastic/doctor/text.h"
#include "tests/support/file_text.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Duration kLong = std::chrono::seconds(100);   // against hanging

TEST(DoctorFacts, ANameInAHostsFile) {
  const std::string text =
      "# 10.0.0.9 node0\n127.0.0.1\tlocalhost\n\n127.0.1.1 node0.example\tnode0 # node1\n"
      "10.0.0.2 node2\n10.0.0.3 node2\n";
  EXPECT_EQ(NumberInHostsFile(text, "node0"), "127.0.1.1");
  EXPECT_EQ(NumberInHostsFile(text, "node0.example"), "127.0.1.1");
  EXPECT_EQ(NumberInHostsFile(text, "node1"), "");
  EXPECT_EQ(NumberInHostsFile(text, "node2"), "10.0.0.2");
  EXPECT_EQ(NumberInHostsFile(text, "127.0.0.1"), "");
  EXPECT_EQ(NumberInHostsFile("", "node0"), "");
}

TEST(DoctorFacts, TheVersionOfADriver) {
  EXPECT_EQ(DriverVersion("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\n"
                          "GCC version:  gcc version 12.3.0\n"),
            "550.54.15");
  EXPECT_EQ(DriverVersion("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.1.2  R\n"),
            "570.1.2");
  EXPECT_EQ(DriverVersion(""), "");
  EXPECT_EQ(DriverVersion("no number\n1.2\n"), "");
}

TEST(DoctorFacts, KernelsOfAProcessor) {
  EXPECT_EQ(KernelsOf("model name: x\nflags\t\t: fma avx2 avx512f avx512vl avx512bw avx512dq\n"),
            "AVX512");
  EXPECT_EQ(KernelsOf("flags\t\t: fma avx2 avx512f\n"), "AVX2");
  EXPECT_EQ(KernelsOf("flags\t\t: sse2\n"), "DEFAULT");
  EXPECT_EQ(KernelsOf("Features : asimd\n"), "");
}

TEST(DoctorFacts, OnlyVariablesThatMatterAreTold) {
  const Environment environment = {{"NCCL_DEBUG", "INFO"},    {"TORCH_NCCL_X", "1"},
                                   {"GLOO_SOCKET_IFNAME", ""}, {"CUDA_LAUNCH_BLOCKING", "1"},
                                   {"SECRET", "x"},           {"MY_NCCL_", "x"},
                                   {"NCCL_EVIL", "a\nb"}};
  const std::string lines = RelevantVariables(environment);
  EXPECT_EQ(lines, "CUDA_LAUNCH_BLOCKING=1\nGLOO_SOCKET_IFNAME=\nNCCL_DEBUG=INFO\n"
                   "TORCH_NCCL_X=1\n");
  EXPECT_EQ(VariableIn(lines, "NCCL_DEBUG"), "INFO");
  EXPECT_EQ(VariableIn(lines, "NCCL_DEB"), "");
  EXPECT_EQ(VariableIn(lines, "NCCL_NONE"), "");
}

TEST(DoctorFacts, BucketsAreTriedAsTheProgramIsToldTo) {
  LaunchConfig config;
  config.lease_directory = "s3://b/leases";
  config.program.arguments = {"--checkpoint-dir", "s3://b/run", "--checkpoint-mirror=s3://b/leases",
                              "--data", "s3://elsewhere/data"};
  const std::vector<BucketToTry> guarded = {{.place = "s3://b/leases"}, {.place = "s3://b/run"}};
  EXPECT_EQ(BucketsOf(config), guarded);
  config.program.arguments.push_back("--checkpoint-unguarded");
  EXPECT_EQ(BucketsOf(config), (std::vector<BucketToTry>{
                                   {.place = "s3://b/leases"},   // a lease is never unguarded
                                   {.place = "s3://b/run", .is_unguarded = true}}));
  config.program.arguments.push_back("--no-checkpoint-unguarded");
  EXPECT_EQ(BucketsOf(config), guarded);
}

TEST(DoctorRecords, ReadBackTheSame) {
  DoctorFacts facts;
  facts.host = "node \"0\"\n";
  facts.address = "10.0.0.1";
  facts.port = 65535;
  facts.node_rank = -1;
  facts.interfaces = {{"lo", "127.0.0.1"}, {"eth0", "fd00::2"}};
  facts.shared_memory = {UINT64_MAX, 3};
  facts.log_space = {5, 4};
  facts.gpus = {"", "NVIDIA H200"};
  facts.environment = "A=b\nC=d\n";
  facts.address_silent = true;
  const std::string text = DoctorFactsText(facts);
  const Result<DoctorFacts> read = ParseDoctorFacts(text);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(DoctorFactsText(*read), text);
  EXPECT_EQ(read->interfaces, facts.interfaces);
  EXPECT_EQ(read->shared_memory, facts.shared_memory);
  EXPECT_EQ(read->gpus, facts.gpus);
  EXPECT_EQ(read->host, facts.host);

  const std::vector<DoctorSight> sights = {
      {}, {"10.0.0.2", "", "refused", 1, -2, 3, "no such file"}};
  EXPECT_EQ(*ParseDoctorSights(DoctorSightsText(sights)), sights);
  const DoctorSum sum{"no", 7, 8};
  EXPECT_EQ(*ParseDoctorSum(DoctorSumText(sum)), sum);
}

TEST(DoctorRecords, WhatIsNoneIsRefused) {
  for (const char* text : {"", "[]", "{}", "{\"host\":1}", "{\"sights\":[1]}"}) {
    EXPECT_FALSE(ParseDoctorFacts(text).ok()) << text;
    EXPECT_FALSE(ParseDoctorSights(text).ok()) << text;
    EXPECT_FALSE(ParseDoctorSum(text).ok()) << text;
  }
  DoctorFacts facts;
  facts.port = 65536;
  EXPECT_EQ(ParseDoctorFacts(DoctorFactsText(facts)).error().message, "there is no port 65536");
}

TEST(DoctorText, ALineForEachFindingAndItsCureBelow) {
  const std::vector<Finding> findings = {
      {"hosts", Severity::kOk, "", "all came"},
      {"ports", Severity::kSkipped, "", "one host"},
      {"shared-memory", Severity::kWarning, "node1", "small\x1b[31m\n", "more"},
      {"files", Severity::kFailure, "node1", "few", "raise it"}};
  EXPECT_EQ(DoctorText(findings),
            "OK   hosts          all came\n"
            "SKIP ports          one host\n"
            "WARN shared-memory  node1: small\\x1b[31m\\n\n"
            "                    cure: more\n"
            "FAIL files          node1: few\n"
            "                    cure: raise it\n"
            "The doctor found 1 failure and 1 warning: the job would not work.\n");
  EXPECT_EQ(DoctorText({findings[0]}),
            "OK   hosts          all came\nThe doctor found nothing wrong.\n");
  const Json json = DoctorJson(findings);
  EXPECT_EQ(json["failures"], 1);
  EXPECT_EQ(json["findings"][3]["severity"], "failure");
  EXPECT_EQ(json["findings"][3]["cure"], "raise it");
}

std::string SaidOfLogs(const Result<DiskSpace>& tried) {
  return tried.ok() ? "" : tried.error().message;
}

TEST(DoctorLogFolder, MayBeMissingWhereTheJobMakesIt) {
  const TempDir folder;
  PosixFiles files;
  LogOptions logs;
  logs.log_dir = folder.File("not/made/yet");
  const Result<DiskSpace> tried = TryLogFolder(files, logs, Random(1), kLong);
  ASSERT_TRUE(tried.ok()) << tried.error().message;
  EXPECT_GT(tried->total, 0u);
  EXPECT_THAT(*files.List(folder.path()), IsEmpty());
  logs.temporary_dir = logs.log_dir;
  logs.log_dir.clear();   // which nobody makes
  EXPECT_THAT(SaidOfLogs(TryLogFolder(files, logs, Random(1), kLong)),
              HasSubstr("No such file or directory"));
}

TEST(DoctorLogFolder, MustBeAFolderInWhichFoldersCanBeMade) {
  const TempDir folder;
  PosixFiles files;
  LogOptions logs;
  logs.log_dir = "/proc/nope/below";   // not even root makes a folder there
  EXPECT_THAT(SaidOfLogs(TryLogFolder(files, logs, Random(1), kLong)),
              HasSubstr("make directory /proc/"));
  logs.log_dir = folder.File("file");
  WriteFile(logs.log_dir, "");
  EXPECT_THAT(SaidOfLogs(TryLogFolder(files, logs, Random(1), kLong)),
              HasSubstr("is not a directory"));
  logs.log_dir = folder.File("link");
  ASSERT_EQ(symlink(folder.File("nowhere").c_str(), logs.log_dir.c_str()), 0);
  EXPECT_THAT(SaidOfLogs(TryLogFolder(files, logs, Random(1), kLong)),
              HasSubstr("No such file or directory"));
  MemoryFiles memory;
  FaultyFiles read_only(memory);
  read_only.Plan({.op = FileOp::kMakeDir, .error_number = EROFS});
  logs.log_dir = "/not-yet";
  EXPECT_THAT(SaidOfLogs(TryLogFolder(read_only, logs, Random(1), kLong)),
              HasSubstr("Read-only file system"));
}

TEST(DoctorLogFolder, IsNotWaitedForLongerThanItsLimit) {
  // Asked by a thread that outlives the test, as where a server is gone.
  static MemoryFiles& memory = *new MemoryFiles;
  static FaultyFiles& silent = *new FaultyFiles(memory);
  static std::promise<void>& never = *new std::promise<void>;
  silent.Plan({.kind = Fault::Kind::kAct,
               .op = FileOp::kStat,
               .act = [] { never.get_future().wait(); }});
  LogOptions logs;
  logs.log_dir = "/gone";
  EXPECT_THAT(SaidOfLogs(TryLogFolder(silent, logs, Random(1), std::chrono::milliseconds(1))),
              HasSubstr("its file system does not answer within 1 ms"));
}

TEST(DoctorFacts, LogsThatCannotBeKeptAreToldUnlessNoneAreWanted) {
  PosixFiles files;
  LaunchConfig config;
  config.logs.log_dir = "/proc/nope";
  DoctorFacts facts = BriefFacts(config, {}, "localhost", "127.0.0.1");
  AddSlowFacts(facts, config, {}, files, Random(1));
  EXPECT_THAT(facts.log_trouble, HasSubstr("make directory /proc/"));
  config.logs.log_dir = kNoLogs;
  facts = BriefFacts(config, {}, "localhost", "127.0.0.1");
  AddSlowFacts(facts, config, {}, files, Random(1));
  EXPECT_EQ(facts.log_trouble, "");
}

TEST(DoctorRecords, WhatDoctorsOfEarlierVersionsDoNotTellMayBeMissing) {
  DoctorFacts facts;
  const Result<DoctorFacts> without = ParseDoctorFacts(DoctorFactsText(facts));
  ASSERT_TRUE(without.ok()) << without.error().message;
  EXPECT_FALSE(without->is_lease_missing);
  EXPECT_FALSE(without->has_health_check);
  EXPECT_EQ(without->log_trouble + without->status + without->status_trouble +
                without->health_trouble,
            "");
  facts.is_lease_missing = facts.has_health_check = true;
  facts.log_trouble = "lt";
  facts.status = "127.0.0.1:8090";
  facts.status_trouble = "st";
  facts.health_trouble = "ht";
  const Result<DoctorFacts> with = ParseDoctorFacts(DoctorFactsText(facts));
  ASSERT_TRUE(with.ok()) << with.error().message;
  EXPECT_TRUE(with->is_lease_missing && with->has_health_check);
  EXPECT_EQ(with->log_trouble + " " + with->status + " " + with->status_trouble + " " +
                with->health_trouble,
            "lt 127.0.0.1:8090 st ht");
}

}  // namespace
}  // namespace keel
