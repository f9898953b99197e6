// The real `keelrun --doctor`: on one host, on two launchers that take each other for hosts, and
// where something is wrong. What each finding says: tests/elastic/doctor/findings_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/posix_files.h"
#include "elastic/launch/token.h"
#include "store/listen_socket.h"
#include "tests/harness/expect_ok.h"
#include "tests/tools/job_hosts.h"

namespace keel {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Long enough for a busy machine, so that nobody is taken for missing who is only late.
constexpr const char* kPatient = "--doctor-limit=100s";

class KeelrunDoctor : public ::testing::Test, protected JobHosts {
 protected:
  std::unique_ptr<Launched> Doctor(const std::string& name, std::vector<std::string> options,
                                   const Environment& environment = {}) {
    options.insert(options.begin(), "--doctor");
    return Start(name, std::move(options), {}, environment);
  }
  std::unique_ptr<Launched> DoctorAlone(std::vector<std::string> options,
                                        const Environment& environment = {}) {
    options.insert(options.begin(), {"--doctor", "--standalone"});
    return std::make_unique<Launched>(folder(), "alone", std::move(options), environment);
  }
  std::string Folder(const std::string& name) {
    const std::string path = folder().File(name);
    EXPECT_EQ(mkdir(path.c_str(), 0777), 0);
    return path;
  }
  static std::vector<std::string> FilesIn(const std::string& path) {
    PosixFiles files;
    const auto entries = files.List(path);
    EXPECT_OK(entries);
    std::vector<std::string> names;
    if (!entries.ok()) return names;
    for (const DirEntry& one : *entries) names.push_back(one.name);
    return names;
  }
};

TEST_F(KeelrunDoctor, OneHostNeedsNoProgramAndNoOtherHost) {
  const std::string directory = Folder("shared");
  const auto doctor = DoctorAlone({"--doctor-dir", directory});
  EXPECT_EQ(doctor->ExitCode(), 0) << doctor->Output();
  EXPECT_EQ(doctor->Count("^OK   store +the store answers within"), 1) << doctor->Output();
  EXPECT_EQ(doctor->Count("^OK   versions +Evenkeel .*LibTorch [0-9]"), 1) << doctor->Output();
  EXPECT_EQ(doctor->Count("^OK   directory +.* can be written"), 1) << doctor->Output();
  EXPECT_EQ(doctor->Count("^SKIP ports +the job has one host"), 1) << doctor->Output();
  EXPECT_THAT(FilesIn(directory), IsEmpty());
}

TEST_F(KeelrunDoctor, WhatIsWrongFailsWithItsCure) {
  const auto doctor = DoctorAlone({"--doctor-dir", folder().File("nowhere"), "--no-python",
                                   folder().File("no-program")},
                                  {{"GLOO_SOCKET_IFNAME", "nosuch7"}});
  EXPECT_EQ(doctor->ExitCode(), 1) << doctor->Output();
  EXPECT_EQ(doctor->Count("^FAIL directory +.*/nowhere cannot be used: "), 1);
  EXPECT_EQ(doctor->Count("^FAIL program +program not found"), 1);
  EXPECT_EQ(doctor->Count("^FAIL variables +GLOO_SOCKET_IFNAME=nosuch7 names no interface"), 1);
  EXPECT_EQ(doctor->Count("^ +cure: "), 3) << doctor->Output();
}

TEST_F(KeelrunDoctor, AJobThatMeetsByADirectoryIsExaminedOnOneHost) {
  const std::string directory = Folder("shared");
  const auto examine = [&](const std::string& name, const std::string& where) {
    return std::make_unique<Launched>(
        folder(), name,
        std::vector<std::string>{"--doctor", "--rdzv-backend=dir", "--rdzv-endpoint=" + where,
                                 "--rdzv-id=job", "--nnodes=1:2", "--local-addr=127.0.0.1"},
        Environment{});
  };
  // On a machine without a network, whose only address is a loopback one, the exit code is 1.
  const auto well = examine("well", directory);
  (void)well->ExitCode();
  EXPECT_EQ(well->Count("^SKIP hosts +only this host, .*, is examined"), 1) << well->Output();
  EXPECT_EQ(well->Count("^OK   lease +.*/shared can hold the lease"), 1) << well->Output();
  EXPECT_EQ(well->Count("^OK   store +the store answers within"), 1) << well->Output();
  EXPECT_THAT(FilesIn(directory), IsEmpty());
  const auto missing = examine("missing", folder().File("nowhere"));
  EXPECT_EQ(missing->ExitCode(), 1) << missing->Output();
  EXPECT_EQ(missing->Count("^FAIL lease +.*/nowhere cannot hold the job's lease"), 1)
      << missing->Output();
}

TEST_F(KeelrunDoctor, HostsTellEachOtherWhoseLeaseIsOfNoUse) {
  const std::string directory = Folder("shared");
  const auto first = Doctor("first", {kPatient, "--nnodes=2", "--lease=" + directory});
  const auto second =
      Doctor("second", {kPatient, "--nnodes=2", "--lease=" + folder().File("nowhere")});
  for (const auto& one : {first.get(), second.get()}) {
    EXPECT_EQ(one->ExitCode(), 1) << one->Output();
    EXPECT_EQ(one->Count("^FAIL lease +.*/nowhere cannot hold the job's lease"), 1)
        << one->Output();
  }
  EXPECT_THAT(FilesIn(directory), IsEmpty());
}

TEST_F(KeelrunDoctor, ProgramsReadJson) {
  const auto doctor = DoctorAlone({"--log-format=json", "--no-python", "true"});
  EXPECT_EQ(doctor->ExitCode(), 0) << doctor->Output();
  const auto json = ParseJson(doctor->Output());
  ASSERT_TRUE(json.ok()) << json.error().message << "\n" << doctor->Output();
  EXPECT_EQ((*json)["failures"], 0);
  EXPECT_GT((*json)["findings"].size(), 10u);
}

TEST_F(KeelrunDoctor, TwoHostsThatShareAllSeeEachOther) {
  const std::string directory = Folder("shared");
  const std::vector<std::string> options = {"--nnodes=2", "--doctor-dir", directory, kPatient};
  const auto first = Doctor("first", options);
  const auto second = Doctor("second", options);
  for (Launched* host : {first.get(), second.get()}) {
    EXPECT_EQ(host->ExitCode(), 0) << host->Output();
    EXPECT_EQ(host->Count("^OK   hosts +all 2 came: .*a rehearsal"), 1) << host->Output();
    EXPECT_EQ(host->Count("^OK   ports +all reach each other"), 1) << host->Output();
    EXPECT_EQ(host->Count("^OK   clocks +the clocks are less than"), 1) << host->Output();
    EXPECT_EQ(host->Count("^OK   directory +.*all see what the others write"), 1);
    EXPECT_EQ(host->Count("^OK   all-reduce +1 MiB among 2 hosts"), 1) << host->Output();
  }
  EXPECT_THAT(FilesIn(directory), IsEmpty());
}

TEST_F(KeelrunDoctor, DirectoriesThatAreNotSharedAreFoundByBoth) {
  const std::string here = Folder("here");
  const std::string there = Folder("there");
  const auto first = Doctor("first", {"--nnodes=2", "--doctor-dir", here, kPatient});
  const auto second = Doctor("second", {"--nnodes=2", "--doctor-dir", there, kPatient},
                             {{"NCCL_ALGO", "Tree"}});
  for (Launched* host : {first.get(), second.get()}) {
    EXPECT_EQ(host->ExitCode(), 1) << host->Output();
    EXPECT_EQ(host->Count("^FAIL directory .*/here is not seen in .*/there: "), 1)
        << host->Output();
    EXPECT_EQ(host->Count("^FAIL directory .*/there is not seen in .*/here: "), 1);
    EXPECT_EQ(host->Count("^WARN variables +NCCL_ALGO differs: unset on .*; Tree on "), 1);
  }
}

TEST_F(KeelrunDoctor, OneThatNeverComesIsMissed) {
  const auto first = Doctor("first", {"--nnodes=2", "--doctor-limit=100ms"});
  EXPECT_EQ(first->ExitCode(), 1) << first->Output();
  EXPECT_EQ(first->Count("^FAIL hosts +1 of 2 hosts came: "), 1) << first->Output();
  const auto fixed = std::make_unique<Launched>(
      folder(), "fixed",
      std::vector<std::string>{"--doctor", "--doctor-limit=100ms", "--nnodes=2", "--node-rank=0",
                               "--master-port=" + std::to_string(port())});
  EXPECT_EQ(fixed->ExitCode(), 1) << fixed->Output();
  EXPECT_EQ(fixed->Count("^FAIL hosts +no host came with --node-rank=1$"), 1) << fixed->Output();
  EXPECT_EQ(fixed->Count("^FAIL interface .*loopback"), 1) << fixed->Output();
}

TEST_F(KeelrunDoctor, WhereOnlyOneHasATokenBothSpeakOfIt) {
  const auto one = Doctor("one", {"--nnodes=2", "--doctor-limit=5s"});
  const auto other = Doctor("other", {"--nnodes=2", "--doctor-limit=5s"},
                            {{kTokenVariable, "0f1e2d3c4b5a69788796"}});
  for (const auto& doctor : {one.get(), other.get()}) {
    EXPECT_EQ(doctor->ExitCode(), 1) << doctor->Output();
    EXPECT_EQ(doctor->Count("^FAIL hosts +"), 1) << doctor->Output();
    EXPECT_THAT(doctor->Output(), HasSubstr("with the same token or none"));
    EXPECT_THAT(doctor->Output(), Not(HasSubstr("FAIL hosts          line 1"))) << "of what?";
  }
}

TEST_F(KeelrunDoctor, AStoreThatIsNotThereIsNamed) {
  const auto other = Doctor("other", {"--nnodes=2", "--doctor-limit=3s",
                                      "--rdzv-conf=is_host=0"});
  EXPECT_EQ(other->ExitCode(), 1) << other->Output();
  EXPECT_EQ(other->Count("^FAIL hosts +the store at 127.0.0.1:" + std::to_string(port()) +
                         " could not be reached: .*nobody listens there"), 1)
      << other->Output();
}

TEST_F(KeelrunDoctor, AJobThatRunsIsNotDisturbed) {
  const auto job = StartSurvivor("job", {"--nnodes=1:2", "--rdzv-conf=last_call_timeout=0.2"});
  job->Await("^epoch 1 rank 0 of 1");
  const auto doctor = Doctor("doctor", {"--nnodes=1:2", "--doctor-limit=3s"});
  EXPECT_EQ(doctor->ExitCode(), 1) << doctor->Output();
  EXPECT_THAT(doctor->Output(), HasSubstr("a job may be running there"));
  LetFinish();
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(job->Count("^epoch "), 1) << job->Output();
}

TEST_F(KeelrunDoctor, AJobOfSeveralHostsIsLookedAtBriefly) {
  const Environment bad = {{"CUDA_LAUNCH_BLOCKING", "1"}};
  const auto job = Start("job", {"--nnodes=1:2", "--rdzv-conf=last_call_timeout=0.2"},
                         {"--no-python", "true"}, bad);
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(job->Count("warn doctor check=interface found=.*loopback.* cure="), 1)
      << job->Output();
  EXPECT_EQ(job->Count("warn doctor check=variables found=.CUDA_LAUNCH_BLOCKING=1"), 1);
  const auto alone = std::make_unique<Launched>(
      folder(), "alone", std::vector<std::string>{"--standalone", "--no-python", "true"}, bad);
  EXPECT_EQ(alone->ExitCode(), 0) << alone->Output();
  EXPECT_THAT(alone->Output(), Not(HasSubstr("warn doctor")));
}

TEST_F(KeelrunDoctor, AStatusPageThatCannotBeFails) {
  const auto taken = ListenSocket::Listen("127.0.0.1", 0);
  ASSERT_OK(taken);
  const std::string where = "127.0.0.1:" + std::to_string(taken->port());
  const auto doctor = DoctorAlone({"--status=" + where});
  EXPECT_EQ(doctor->ExitCode(), 1) << doctor->Output();
  EXPECT_EQ(doctor->Count("^FAIL status +the status page cannot be at " + where +
                          ": Address already in use"), 1)
      << doctor->Output();
}

TEST_F(KeelrunDoctor, AHealthCheckThatFailsIsToldToAllHosts) {
  const auto first = Doctor("first", {kPatient, "--nnodes=2", "--health-check=true"});
  const auto second = Doctor("second", {kPatient, "--nnodes=2",
                                        "--health-check=echo bad GPU; exit 3"});
  for (const auto& one : {first.get(), second.get()}) {
    EXPECT_EQ(one->ExitCode(), 1) << one->Output();
    EXPECT_EQ(one->Count("^FAIL health +.*the health check .* exited with 3: bad GPU"), 1)
        << one->Output();
  }
}

TEST_F(KeelrunDoctor, ALogFolderIsTriedAndNotLeftBehind) {
  const auto well = DoctorAlone({"--log-dir=" + folder().File("logs/of/mine")});
  EXPECT_EQ(well->ExitCode(), 0) << well->Output();
  EXPECT_EQ(well->Count("^OK   disk +.* are free for logs in .*/logs/of/mine"), 1)
      << well->Output();
  EXPECT_NE(access(folder().File("logs").c_str(), F_OK), 0);
  const auto none = std::make_unique<Launched>(
      folder(), "none",
      std::vector<std::string>{"--doctor", "--standalone", "--log-dir=/proc/nope"});
  EXPECT_EQ(none->ExitCode(), 1) << none->Output();
  EXPECT_EQ(none->Count("^FAIL disk +no logs can be kept in /proc/nope: "), 1) << none->Output();
}

TEST_F(KeelrunDoctor, AFoundLeaseThatIsMissingOnOneHostIsNotMountedThere) {
  const auto examine = [&](const std::string& name, const std::string& directory) {
    return Start(name, {"--doctor", kPatient, "--nnodes=2", "--lease=auto"},
                 {KEEL_BIN_DIR "/survivor", "--checkpoint-dir=" + directory});
  };
  const std::string missing = folder().File("missing");
  const std::string there = Folder("there");
  for (const std::string& other : {there, missing}) {
    const auto first = examine("first-" + std::to_string(other == there), other);
    const auto second = examine("second-" + std::to_string(other == there), missing);
    const std::string line =
        other == there ? "^WARN lease +.*/missing is not there, but that of .* is: is it mounted"
                       : "^SKIP lease +.*/missing is not there yet: the job will make it";
    for (const auto& one : {first.get(), second.get()}) {
      EXPECT_EQ(one->ExitCode(), 0) << one->Output();
      EXPECT_EQ(one->Count(line), 1) << one->Output();
    }
  }
}

}  // namespace
}  // namespace keel
