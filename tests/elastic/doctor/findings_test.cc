// Each thing that can be wrong is found, on the host where it is, and nothing is found where all is
// well.
#include "elastic/doctor/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "elastic/doctor/text.h"

namespace keel {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

DoctorFacts HealthyHost(int number) {
  DoctorFacts facts;
  facts.host = "node" + std::to_string(number);
  facts.address = "10.0.0." + std::to_string(number + 1);
  facts.port = 40000;
  facts.machine = facts.host;
  facts.hosts_least = 2;
  facts.hosts_most = 2;
  facts.workers = 8;
  facts.interfaces = {{"lo", "127.0.0.1"}, {"eth0", facts.address}, {"docker0", "172.17.0.1"}};
  facts.name_number = facts.address;
  facts.address_name = facts.host;
  facts.files_limit = 65536;
  facts.files_wanted = 500;
  facts.shared_memory = {uint64_t{16} << 30, uint64_t{15} << 30};
  facts.directory = "/shared/run7";
  facts.directory_space = {uint64_t{1} << 40, uint64_t{1} << 39};
  facts.lease = "/shared/leases";
  facts.buckets = {{.place = "s3://b/run", .ends_unfinished = true, .keeps_versions = false}};
  facts.log_directory = "/tmp";
  facts.log_space = {uint64_t{1} << 40, uint64_t{1} << 39};
  facts.gpus = {8, "NVIDIA H200"};
  facts.driver = "550.54.15";
  facts.kernels = "AVX512";
  facts.version = "0.1.0";
  facts.protocol = 1;
  facts.torch = "2.11.0";
  facts.store_nanos = 200'000;
  facts.program = "train";
  facts.program_digest = "0123456789abcdef";
  facts.status = "127.0.0.1:8090";
  facts.has_health_check = true;
  return facts;
}

DoctorView HealthyView() {
  DoctorView view;
  view.is_alone = false;
  view.hosts = {HealthyHost(0), HealthyHost(1)};
  view.sights.resize(2, std::vector<DoctorSight>(2));
  for (size_t from = 0; from < 2; ++from) {
    view.sights[from][1 - from] = {.name_number = view.hosts[1 - from].address,
                                   .round_trip_ns = 100'000,
                                   .clock_ahead_ns = 10'000,
                                   .clock_doubt_ns = 50'000};
  }
  view.sums.resize(2, DoctorSum{"", 2'000'000, 1 << 20});
  return view;
}

std::vector<Finding> Problems(const DoctorView& view) {
  std::vector<Finding> problems;
  for (const Finding& one : AllFindings(view)) {
    const bool is_bad = one.severity == Severity::kWarning || one.severity == Severity::kFailure;
    if (is_bad) problems.push_back(one);
    EXPECT_NE(one.what, "") << one.check;
    EXPECT_EQ(one.cure.empty(), !is_bad) << one.check << ": " << one.what;
  }
  return problems;
}

std::string TextOf(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& one : findings) {
    text += one.check + " @" + one.host + ": " + one.what + "; " + one.cure + "\n";
  }
  return text;
}

struct Case {
  std::function<void(DoctorView&)> spoil;
  std::string check;
  Severity severity;
  std::string host;
  std::string what;   // a part of it
};

void ExpectEachFound(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    DoctorView view = HealthyView();
    one.spoil(view);
    const std::vector<Finding> problems = Problems(view);
    ASSERT_EQ(problems.size(), 1u) << one.what << "\n" << TextOf(problems);
    EXPECT_EQ(problems[0].check, one.check);
    EXPECT_EQ(problems[0].severity, one.severity) << one.what;
    EXPECT_EQ(problems[0].host, one.host) << one.what;
    EXPECT_THAT(problems[0].what, HasSubstr(one.what));
  }
}

constexpr Severity kWarn = Severity::kWarning;
constexpr Severity kFail = Severity::kFailure;

TEST(DoctorFindings, NothingIsWrongWhereAllIsWell) {
  EXPECT_THAT(TextOf(Problems(HealthyView())), IsEmpty());
}

TEST(DoctorFindings, EveryCheckIsNamedOnceWhereAllIsWell) {
  std::string names;
  for (const Finding& one : AllFindings(HealthyView())) names += one.check + " ";
  EXPECT_EQ(names, "hosts store names interface ports clocks versions program health gpus "
                   "processors directory lease bucket disk shared-memory files status variables "
                   "all-reduce ");
}

TEST(DoctorFindings, OneHostIsNotAskedAboutOthers) {
  DoctorView view;
  view.hosts = {HealthyHost(0)};
  view.hosts[0].address = "127.0.0.1";
  view.hosts[0].name_number = "127.0.1.1";
  EXPECT_THAT(TextOf(Problems(view)), IsEmpty());
  for (const Finding& one : AllFindings(view)) {
    const bool needs_two =
        one.check == "ports" || one.check == "clocks" || one.check == "all-reduce";
    EXPECT_EQ(one.severity, needs_two ? Severity::kSkipped : Severity::kOk) << one.check;
  }
}

TEST(DoctorFindings, HostsThatAreMissing) {
  const auto leave = [](DoctorView& view) {
    view.hosts.pop_back();
    view.sights = {{{}}};
    view.sums.clear();
  };
  ExpectEachFound({
      {leave, "hosts", kFail, "", "1 of 2 hosts came: node0; the job needs 2"},
      {[&](DoctorView& view) {
         leave(view);
         view.hosts[0].hosts_least = 1;
       }, "hosts", kWarn, "", "1 of 2 hosts came: node0; the job could begin"},
      {[](DoctorView& view) {
         view.hosts[0].node_rank = 0;
         view.hosts[1].node_rank = 0;
         view.hosts[0].hosts_most = view.hosts[0].hosts_least = 1;
         view.hosts[1].hosts_most = view.hosts[1].hosts_least = 1;
       }, "hosts", kFail, "node1", "--node-rank=0 was given to node0 and node1"},
      {[](DoctorView& view) { view.hosts[1].hosts_most = 4; }, "hosts", kFail, "",
       "--nnodes differs: 2:2 on node0; 2:4 on node1"},
  });
  DoctorView numbered = HealthyView();
  leave(numbered);
  numbered.hosts[0].node_rank = 0;
  EXPECT_THAT(TextOf(Problems(numbered)), HasSubstr("no host came with --node-rank=1"));
}

TEST(DoctorFindings, HostsThatDoNotMeet) {
  DoctorView view = HealthyView();
  view.hosts.pop_back();
  view.sights.clear();
  view.sums.clear();
  view.meeting_trouble = "the store is not reached";
  const std::vector<Finding> problems = Problems(view);
  ASSERT_EQ(problems.size(), 1u) << TextOf(problems);
  EXPECT_EQ(problems[0].check, "hosts");
  EXPECT_EQ(problems[0].what, "the store is not reached");
}

TEST(DoctorFindings, StoreAndNames) {
  ExpectEachFound({
      {[](DoctorView& view) { view.hosts[1].store_trouble = "no module"; }, "store", kFail,
       "node1", "no store to meet at: no module"},
      {[](DoctorView& view) {
         view.hosts[1].name_number = "";
         view.hosts[1].name_trouble = "host 'node1' cannot be resolved";
       }, "names", kWarn, "node1", "cannot be resolved"},
      {[](DoctorView& view) { view.hosts[1].name_number = "127.0.1.1"; }, "names", kWarn, "node1",
       "its own name node1 leads to 127.0.1.1"},
      {[](DoctorView& view) {
         view.hosts[0].address_silent = true;
         view.hosts[0].address_trouble = "the name service did not say";
       }, "names", kWarn, "node0", "stalls programs"},
      {[](DoctorView& view) { view.sights[0][1].name_trouble = "node1 is unknown"; }, "names",
       kWarn, "node0", "node1 is unknown"},
      {[](DoctorView& view) { view.sights[0][1].name_number = "10.0.0.99"; }, "names", kWarn,
       "node0", "the name node1 leads to 10.0.0.99"},
      {[](DoctorView& view) { view.sights[0][1].name_number = "127.0.0.1"; }, "names", kWarn,
       "node0", "the name node1 leads to 127.0.0.1"},
      {[](DoctorView& view) {
         view.hosts[1].host = "node0";
         view.sights[0][1].name_number = view.sights[1][0].name_number = "127.0.0.1";
       }, "names", kWarn, "", "2 hosts are called node0 (10.0.0.1, 10.0.0.2)"},
  });
  DoctorView view = HealthyView();
  view.sights[0][1].name_number = "172.17.0.1";   // another address of that host
  view.hosts[1].address_trouble = "no name";      // nobody needs it
  EXPECT_THAT(TextOf(Problems(view)), IsEmpty());
}

TEST(DoctorFindings, InterfacesAndPorts) {
  ExpectEachFound({
      {[](DoctorView& view) {
         view.hosts[1].address = "127.0.0.1";
         view.sights[0][1].name_number = "10.0.0.2";
       }, "interface", kFail, "node1", "loopback"},
      {[](DoctorView& view) { view.hosts[1].address = "172.17.0.1"; }, "interface", kWarn,
       "node1", "docker0, a bridge"},
      {[](DoctorView& view) {
         view.hosts[1].address = "34.1.2.3";
       }, "interface", kWarn, "node1", "34.1.2.3 belongs to none of this host's interfaces"},
      {[](DoctorView& view) {
         view.sights[1][0].reach_trouble = "nothing answers";
         view.sums.clear();
       }, "ports", kFail, "node1", "cannot reach node0: nothing answers"},
      {[](DoctorView& view) { view.sights[0][1].round_trip_ns = 20'000'000; }, "ports", kWarn,
       "node0", "a round trip to node1 takes 20 ms"},
      {[](DoctorView& view) {
         view.sights[1].clear();
         view.sums.clear();
       }, "ports", kFail, "node1", "did not report what it sees"},
  });
}

// The address of such hosts is loopback on purpose.
TEST(DoctorFindings, ARehearsalOnOneMachineMayUseLoopback) {
  DoctorView view = HealthyView();
  for (DoctorFacts& host : view.hosts) {
    host.host = host.machine = "node0";
    host.address = host.name_number = "127.0.0.1";
    host.environment = "GLOO_SOCKET_IFNAME=lo\n";
  }
  for (auto& sights : view.sights) {
    for (DoctorSight& sight : sights) sight.name_number = "127.0.0.1";
  }
  EXPECT_THAT(TextOf(Problems(view)), IsEmpty());
  EXPECT_THAT(TextOf(AllFindings(view)), HasSubstr("node0 (1), node0 (2) (a rehearsal"));
}

TEST(DoctorFindings, Clocks) {
  constexpr int64_t kSecond = 1'000'000'000;
  ExpectEachFound({
      {[](DoctorView& view) { view.sights[0][1].clock_ahead_ns = 3 * kSecond; }, "clocks", kWarn,
       "node1", "3 s ahead of node0"},
      {[](DoctorView& view) { view.sights[0][1].clock_ahead_ns = -90 * kSecond; }, "clocks",
       kWarn, "node1", "1 min 30 s behind node0"},
  });
  DoctorView view = HealthyView();
  view.sights[0][1].clock_ahead_ns = 3 * kSecond;
  view.sights[0][1].clock_doubt_ns = 3 * kSecond;   // a slow line, not a wrong clock
  EXPECT_THAT(TextOf(Problems(view)), IsEmpty());
}

TEST(DoctorFindings, WhatRunsThere) {
  ExpectEachFound({
      {[](DoctorView& view) { view.hosts[1].version = "0.2.0"; }, "versions", kFail, "",
       "0.1.0 on node0; 0.2.0 on node1"},
      {[](DoctorView& view) { view.hosts[1].protocol = 2; }, "versions", kFail, "",
       "protocol's version differs"},
      {[](DoctorView& view) { view.hosts[1].torch = "2.10.0"; }, "versions", kFail, "",
       "LibTorch differs: 2.10.0 on node1; 2.11.0 on node0"},
      {[](DoctorView& view) {
         view.hosts[1].torch = "2.10.0";
         view.allow_inexact = true;
       }, "versions", kWarn, "", "LibTorch differs"},
      {[](DoctorView& view) { view.hosts[1].program = "other"; }, "program", kFail, "",
       "the program differs: other on node1; train on node0"},
      {[](DoctorView& view) { view.hosts[1].program_digest = "ffff"; }, "program", kWarn, "",
       "the program's file differs"},
      {[](DoctorView& view) { view.hosts[1].program_trouble = "not found"; }, "program", kFail,
       "node1", "not found"},
      {[](DoctorView& view) { view.hosts[1].kernels = "DEFAULT"; }, "processors", kWarn, "node1",
       "lacks AVX2"},
  });
  DoctorView view = HealthyView();
  view.hosts[1].kernels = "AVX2";
  EXPECT_THAT(TextOf(Problems(view)), IsEmpty());
}

TEST(DoctorFindings, Gpus) {
  ExpectEachFound({
      {[](DoctorView& view) { view.hosts[1].gpus[0] = "NVIDIA A100"; }, "gpus", kWarn, "",
       "1 NVIDIA A100 and 7 NVIDIA H200 on node1; 8 NVIDIA H200 on node0"},
      {[](DoctorView& view) { view.hosts[1].driver = "535.1"; }, "gpus", kWarn, "",
       "the GPU driver differs"},
      {[](DoctorView& view) { view.hosts[1].workers = 9; }, "gpus", kWarn, "node1",
       "9 workers share 8 GPUs"},
  });
}

TEST(DoctorFindings, DirectoryAndDisks) {
  ExpectEachFound({
      {[](DoctorView& view) { view.hosts[1].directory = ""; }, "directory", kFail, "node1",
       "no --doctor-dir"},
      {[](DoctorView& view) { view.hosts[1].directory_trouble = "read-only"; }, "directory",
       kFail, "node1", "/shared/run7 cannot be used: read-only"},
      {[](DoctorView& view) { view.sights[1][0].probe_trouble = "no such file"; }, "directory",
       kFail, "node1", "what node0 wrote in /shared/run7 is not seen"},
      {[](DoctorView& view) { view.hosts[1].directory_space.free = 5 << 20; }, "directory", kWarn,
       "node1", "only 5 MiB are free"},
      {[](DoctorView& view) { view.hosts[1].log_space.free = 5 << 20; }, "disk", kWarn, "node1",
       "only 5 MiB are free for logs"},
      {[](DoctorView& view) { view.hosts[1].log_space = {}; }, "disk", kWarn, "node1",
       "the free space of the log folder, /tmp"},
  });
}

TEST(DoctorFindings, Lease) {
  ExpectEachFound({
      {[](DoctorView& view) { view.hosts[1].lease = ""; }, "lease", kFail, "node1",
       "no directory for the lease is named here"},
      {[](DoctorView& view) { view.hosts[1].lease_trouble = "read-only"; }, "lease", kFail,
       "node1", "/shared/leases cannot hold the job's lease: read-only"},
      {[](DoctorView& view) {
         view.hosts[1].lease_trouble = "read-only";
         view.hosts[1].is_lease_found = true;
       },
       "lease", kWarn, "node1", "read-only; the job has none"},
  });
  DoctorView view = HealthyView();
  for (DoctorFacts& facts : view.hosts) facts.lease = "";
  EXPECT_THAT(DoctorText(AllFindings(view)), HasSubstr("SKIP lease          the job has none"));
}

TEST(DoctorFindings, Buckets) {
  ExpectEachFound({
      {[](DoctorView& view) { view.hosts[1].buckets[0].trouble = "403 AccessDenied"; }, "bucket",
       kFail, "node1", "s3://b/run cannot be used: 403 AccessDenied"},
      {[](DoctorView& view) { view.hosts[1].buckets[0].clock_ahead_ns = 90'000'000'000; },
       "bucket", kWarn, "node1", "this host's clock is 1 min 30 s behind that of s3://b/run"},
      {[](DoctorView& view) { view.hosts[1].buckets[0].clock_ahead_ns = -90'000'000'000; },
       "bucket", kWarn, "node1", "this host's clock is 1 min 30 s ahead of that of s3://b/run"},
      {[](DoctorView& view) { view.hosts[1].buckets[0].other_region = "eu-west-3"; }, "bucket",
       kWarn, "node1", "s3://b/run is in the region eu-west-3"},
      {[](DoctorView& view) { view.hosts[1].buckets[0].ends_unfinished = false; }, "bucket", kWarn,
       "node1", "no rule of s3://b/run ends uploads that nobody finishes"},
      {[](DoctorView& view) { view.hosts[1].buckets[0].keeps_versions = true; }, "bucket", kWarn,
       "node1", "s3://b/run keeps versions of what is removed"},
  });
  DoctorView view = HealthyView();
  for (DoctorFacts& facts : view.hosts) facts.buckets[0].ends_unfinished.reset();
  EXPECT_THAT(DoctorText(AllFindings(view)),
              HasSubstr("one is refused; which rules are set there"));
  for (DoctorFacts& facts : view.hosts) facts.buckets.clear();
  EXPECT_THAT(DoctorText(AllFindings(view)),
              HasSubstr("SKIP bucket         the command names none"));
}

TEST(DoctorFindings, AJobThatMeetsByADirectoryIsExaminedHostByHost) {
  DoctorView view;
  view.is_alone = false;
  view.is_by_directory = true;
  view.hosts = {HealthyHost(0)};
  EXPECT_THAT(TextOf(Problems(view)), IsEmpty());
  const std::string text = DoctorText(AllFindings(view));
  EXPECT_THAT(text, HasSubstr("SKIP hosts          only this host, node0, is examined"));
  EXPECT_THAT(text, HasSubstr("SKIP ports          only this host is examined"));
}

TEST(DoctorFindings, MemoryAndFiles) {
  ExpectEachFound({
      {[](DoctorView& view) { view.hosts[1].shared_memory = {64 << 20, 64 << 20}; },
       "shared-memory", kWarn, "node1", "/dev/shm has only 64 MiB"},
      {[](DoctorView& view) { view.hosts[1].shared_memory.free = 1 << 20; }, "shared-memory",
       kWarn, "node1", "nearly full"},
      {[](DoctorView& view) { view.hosts[1].shared_memory = {}; }, "shared-memory", kWarn,
       "node1", "there is no /dev/shm"},
      {[](DoctorView& view) { view.hosts[1].files_limit = 256; }, "files", kFail, "node1",
       "at most 256 files may be open at once, and keelrun needs 500"},
      {[](DoctorView& view) { view.hosts[1].files_limit = 1024; }, "files", kWarn, "node1",
       "at most 1024"},
      {[](DoctorView& view) { view.hosts[1].files_limit = 0; }, "files", kWarn, "node1",
       "cannot be read"},
  });
}

Case Variable(const std::string& line, Severity severity, const std::string& what) {
  return {[line](DoctorView& view) {
            for (DoctorFacts& host : view.hosts) host.environment = "NCCL_ALGO=Ring\n";
            view.hosts[1].environment += line + "\n";
            // Set everywhere, so that only what it does is found.
            if (line.find("IFNAME") == std::string::npos) {
              view.hosts[0].environment += line + "\n";
              view.hosts.pop_back();
              view.hosts[0].hosts_least = view.hosts[0].hosts_most = 1;
              view.sights.clear();
              view.sums.clear();
            }
          },
          "variables", severity, line.find("IFNAME") == std::string::npos ? "node0" : "node1",
          what};
}

TEST(DoctorFindings, VariablesThatHurt) {
  ExpectEachFound({
      Variable("NCCL_SOCKET_IFNAME=ib0", kFail, "NCCL_SOCKET_IFNAME=ib0 names no interface"),
      Variable("NCCL_SOCKET_IFNAME==eth", kFail, "names no interface"),
      Variable("NCCL_SOCKET_IFNAME=lo", kFail, "leaves only loopback"),
      Variable("NCCL_SOCKET_IFNAME=docker", kWarn, "docker0, a bridge"),
      Variable("GLOO_SOCKET_IFNAME=eth", kFail, "names no interface"),
      Variable("GLOO_SOCKET_IFNAME=lo", kFail, "leaves only loopback"),
      Variable("NCCL_IB_DISABLE=1", kWarn, "NCCL_IB_DISABLE=1 keeps NCCL off InfiniBand"),
      Variable("NCCL_P2P_DISABLE=1", kWarn, "slow"),
      Variable("NCCL_SHM_DISABLE=1", kWarn, "slow"),
      Variable("TORCH_NCCL_BLOCKING_WAIT=1", kWarn, "block the program"),
      Variable("TORCH_NCCL_ASYNC_ERROR_HANDLING=0", kWarn, "hang for ever"),
      Variable("CUDA_LAUNCH_BLOCKING=1", kWarn, "everything is slow"),
      Variable("NCCL_ASYNC_ERROR_HANDLING=1", kWarn, "an old name"),
      Variable("NCCL_BLOCKING_WAIT=1", kWarn, "an old name"),
      {[](DoctorView& view) { view.hosts[1].environment = "NCCL_ALGO=Tree\n"; }, "variables",
       kWarn, "", "NCCL_ALGO differs: unset on node0; Tree on node1"},
  });
}

TEST(DoctorFindings, VariablesThatDoNotHurt) {
  DoctorView view = HealthyView();
  view.hosts[0].environment =
      "CUDA_LAUNCH_BLOCKING=0\nGLOO_SOCKET_IFNAME=eth0\nNCCL_IB_DISABLE=0\n"
      "NCCL_SOCKET_IFNAME=eth,ib\nTORCH_NCCL_ASYNC_ERROR_HANDLING=1\n";
  view.hosts[1].environment =
      "CUDA_LAUNCH_BLOCKING=0\nGLOO_SOCKET_IFNAME=eth0\nNCCL_DEBUG=INFO\nNCCL_IB_DISABLE=0\n"
      "NCCL_SOCKET_IFNAME=^lo,docker\nTORCH_NCCL_ASYNC_ERROR_HANDLING=1\n";
  EXPECT_THAT(TextOf(Problems(view)), IsEmpty());
}

TEST(DoctorFindings, AWrongInterfaceIsNoFailureWhereNcclRunsNowhere) {
  DoctorView view = HealthyView();
  for (DoctorFacts& host : view.hosts) host.gpus.clear();
  view.hosts[1].environment = "NCCL_SOCKET_IFNAME=ib0\n";
  const std::vector<Finding> problems = Problems(view);
  ASSERT_EQ(problems.size(), 1u) << TextOf(problems);
  EXPECT_EQ(problems[0].severity, kWarn);
}

TEST(DoctorFindings, TheAllReduce) {
  ExpectEachFound({
      {[](DoctorView& view) { view.sums[1].trouble = "nothing answers"; }, "all-reduce", kFail,
       "node1", "a small all-reduce failed: nothing answers"},
      {[](DoctorView& view) { view.sums[1].nanos = 1'000'000'000; }, "all-reduce", kWarn, "",
       "slow: 1 MiB among 2 hosts in 1 s"},
  });
  EXPECT_THAT(TextOf(AllFindings(HealthyView())), HasSubstr("(500 MiB per second and host)"));
}

TEST(BriefFindings, AreThoseThatAHostKnowsByItself) {
  DoctorFacts facts = HealthyHost(0);
  EXPECT_THAT(BriefFindings(facts), IsEmpty());
  facts.name_number = "";   // nobody was asked
  facts.hosts_file_number = "127.0.1.1";
  facts.shared_memory = {64 << 20, 64 << 20};
  facts.files_limit = 1024;
  facts.environment = "NCCL_SHM_DISABLE=1\n";
  std::string checks;
  for (const Finding& one : BriefFindings(facts)) checks += one.check + " ";
  EXPECT_EQ(checks, "names files shared-memory variables ");
  facts.address = "127.0.0.1";
  checks.clear();
  for (const Finding& one : BriefFindings(facts)) checks += one.check + " ";
  EXPECT_EQ(checks, "interface files shared-memory variables ");
}

TEST(DoctorFindings, WhatKeepsAJobFromStarting) {
  ExpectEachFound({
      {[](DoctorView& view) {
         view.hosts[1].log_trouble = "its file system does not answer";
         view.hosts[1].log_space = {};
       }, "disk", kFail, "node1", "no logs can be kept in /tmp: its file system does not answer"},
      {[](DoctorView& view) { view.hosts[1].status_trouble = "the status page cannot be at"; },
       "status", kFail, "node1", "the status page cannot be at"},
      {[](DoctorView& view) { view.hosts[1].health_trouble = "'false' exited with 1"; }, "health",
       kFail, "node1", "'false' exited with 1"},
  });
}

TEST(DoctorFindings, WhatAJobDoesNotHaveIsSkipped) {
  DoctorView view = HealthyView();
  for (DoctorFacts& facts : view.hosts) {
    facts.log_directory = "/dev/null";
    facts.log_space = {64 << 20, 64 << 20};   // not of a folder
    facts.status = "";
    facts.has_health_check = false;
  }
  const std::string text = DoctorText(AllFindings(view));
  EXPECT_THAT(text, HasSubstr("SKIP disk           no logs are kept: --log-dir=/dev/null"));
  EXPECT_THAT(text, HasSubstr("SKIP status         no --status was given"));
  EXPECT_THAT(text, HasSubstr("SKIP health         no --health-check was given"));
  EXPECT_THAT(TextOf(Problems(view)), IsEmpty());
}

TEST(DoctorFindings, AFoundLeaseThatIsNotThere) {
  const auto miss = [](DoctorFacts& facts) {
    facts.is_lease_found = facts.is_lease_missing = true;
  };
  ExpectEachFound({
      {[&](DoctorView& view) { miss(view.hosts[1]); }, "lease", kWarn, "node1",
       "/shared/leases is not there, but that of node0 is: is it mounted here?"},
      {[&](DoctorView& view) { miss(view.hosts[0]); }, "lease", kWarn, "node0",
       "/shared/leases is not there, but that of node1 is: is it mounted here?"},
  });
  DoctorView view = HealthyView();
  for (DoctorFacts& facts : view.hosts) miss(facts);
  EXPECT_THAT(TextOf(Problems(view)), IsEmpty());
  EXPECT_THAT(DoctorText(AllFindings(view)),
              HasSubstr("SKIP lease          /shared/leases is not there yet: the job will make"));
}

}  // namespace
}  // namespace keel
