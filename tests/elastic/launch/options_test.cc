// The launcher's command line, by torchrun's contract; "#n" is the row of that contract's list.
#include "elastic/launch/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cctype>
#include <csignal>

#include "store/host_port.h"
#include "store/own_address.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Words = std::vector<std::string>;

HostFacts Facts() {
  HostFacts facts;
  facts.name = "node-a";
  facts.cpus = 6;
  facts.unique_id = "0123456789abcdef";
  facts.python = "/usr/bin/python3";
  facts.numeric_names = "/lib/n.so";
  return facts;
}

Result<LaunchConfig> Config(Words words, const Environment& environment = {},
                            const HostFacts& facts = Facts()) {
  words.push_back("train.py");
  const Result<Options> options = ParseOptions(
      LaunchTable(), {words, environment, [](const std::string& path) -> Result<std::string> {
                        return Error{Code::kIo, "no such file: " + path};
                      }});
  if (!options.ok()) return options.error().Doing("usage");
  return ConfigFrom(*options, environment, facts);
}

// "" where it is taken; "usage: ..." where torchrun's argparse would refuse (exit code 2).
std::string ProblemOf(const Words& words, const Environment& environment = {}) {
  const auto config = Config(words, environment);
  return config.ok() ? "" : config.error().message;
}

// Name, default and whether a variable gives it, of every option that torchrun 2.15 has.
struct TorchrunOption {
  const char* name;
  const char* preset;   // null: none
  bool has_variable = true;
  const char* value = preset;   // that it takes
};
constexpr TorchrunOption kTorchrun[] = {
    {"nnodes", "1:1"},
    {"nproc-per-node", "1"},
    {"rdzv-backend", "static"},
    {"rdzv-endpoint", ""},
    {"rdzv-id", "none"},
    {"rdzv-conf", ""},
    {"standalone", "false"},
    {"max-restarts", "0"},
    {"monitor-interval", "0.1"},
    {"start-method", "spawn"},
    {"event-log-handler", "null"},
    {"role", "default"},
    {"module", "false"},
    {"no-python", "false"},
    {"run-path", "false"},
    {"log-dir", ""},
    {"redirects", "0"},
    {"tee", "0"},
    {"log-line-prefix-template", ""},
    {"local-ranks-filter", ""},
    {"duplicate-stdout-filters", ""},
    {"duplicate-stderr-filters", ""},
    {"node-rank", "0"},
    {"master-addr", "127.0.0.1"},
    {"master-port", nullptr, true, "29500"},
    {"local-addr", ""},
    {"logs-specs", "", false},
    {"numa-binding", nullptr, false, "node"},
    {"signals-to-handle", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"},
    {"shutdown-timeout", "30s"},
    {"virtual-local-rank", "false"},
    {"print-completion", nullptr, false, "bash"},
};

TEST(LaunchOptions, EveryOptionOfTorchrunIsThereWithItsDefaultAndVariable) {
  const OptionTable table = LaunchTable();
  for (const TorchrunOption& theirs : kTorchrun) {
    const Option* const option = table.Find(theirs.name);
    ASSERT_NE(option, nullptr) << theirs.name;
    if (theirs.preset == nullptr) {
      EXPECT_EQ(option->default_text, std::nullopt) << theirs.name;
    } else {
      EXPECT_EQ(option->default_text, theirs.preset) << theirs.name;
    }
    std::string variable = std::string("PET_") + theirs.name;
    for (char& c : variable) c = c == '-' ? '_' : static_cast<char>(std::toupper(c));
    const auto& variables = option->environment;
    EXPECT_EQ(std::count(variables.begin(), variables.end(), variable), theirs.has_variable)
        << variable;
    std::string underscored = theirs.name;
    std::replace(underscored.begin(), underscored.end(), '-', '_');
    EXPECT_EQ(table.Find(CanonicalName(underscored)), option);
  }
  EXPECT_EQ(table.FindShort('m'), table.Find("module"));
  EXPECT_EQ(table.FindShort('r'), table.Find("redirects"));
  EXPECT_EQ(table.FindShort('t'), table.Find("tee"));
}

TEST(LaunchOptions, WhatAbbreviatesAnOptionInTorchrunDoesSoHere) {
  for (const TorchrunOption& theirs : kTorchrun) {
    const std::string name = theirs.name;
    for (size_t size = 1; size < name.size(); ++size) {
      const std::string beginning = name.substr(0, size);
      const auto meant = std::count_if(
          std::begin(kTorchrun), std::end(kTorchrun),
          [&](const TorchrunOption& option) {
            return std::string_view(option.name).starts_with(beginning);
          });
      if (meant != 1 || std::string("help").starts_with(beginning)) continue;
      const bool is_flag = LaunchTable().Find(name)->type == OptionType::kFlag;
      Words words = {"--" + beginning + (is_flag ? "" : std::string("=") + theirs.value), "x.py"};
      const auto options = ParseOptions(LaunchTable(), {words, {}});
      ASSERT_TRUE(options.ok()) << beginning << ": " << options.error().message;
      EXPECT_EQ(options->Source(name).kind, OptionSource::Kind::kCommandLine) << beginning;
    }
  }
}

TEST(LaunchOptions, MistakesOnTheLineAreUsageErrors) {  // #21
  for (const Words& words : std::vector<Words>{{"--nosuch"},
                                               {"--max-restarts=abc"},
                                               {"--max-restarts"},
                                               {"--start-method=thread"},
                                               {"--master-port=x"},
                                               {"--monitor-interval=soon"},
                                               {"--park-limit=0"},
                                               {"--start-limit=0"},
                                               {"--store-limit=100000h"},
                                               {"--shutdown-timeout=-1"}}) {
    EXPECT_THAT(ProblemOf(words), HasSubstr("usage: ")) << words.front();
  }
  EXPECT_THAT(ProblemOf({}, {{"PET_MAX_RESTARTS", "abc"}}), HasSubstr("usage: "));
}

TEST(LaunchOptions, ValuesThatMakeNoSenseAreErrorsThatNameThem) {
  const std::pair<Words, const char*> cases[] = {
      {{"--nnodes=4:2"}, "'4:2'"},                        // #19
      {{"--nnodes=0"}, "'0'"},                            // #19
      {{"--nproc-per-node=gpu"}, "no GPU"},               // #15
      {{"--nproc-per-node=xpu"}, "'xpu'"},
      {{"--nproc-per-node=0"}, "'0'"},
      {{"--rdzv-backend=nosuch"}, "'nosuch'"},            // #27
      {{"--rdzv-backend=etcd-v2"}, "needs the members of the etcd cluster"},
      {{"--rdzv-conf=a=1,"}, "'a=1,'"},                   // #29
      {{"--rdzv-conf=join_timeout=1,,is_host=0"}, "KEY="},
      {{"--rdzv-conf= , "}, "KEY=VALUE"},
      {{"--rdzv-conf=join_timeout=0"}, "more than 0"},
      {{"--rdzv-conf=join_timeout=-5"}, "join_timeout"},
      {{"--local-ranks-filter=a,b"}, "'a,b'"},            // #33
      {{"--redirects=4"}, "redirects"},
      {{"--tee=0:9"}, "tee"},
      {{"--logs-specs=mine"}, "'mine' is unknown: Python's entry points cannot be loaded"},
      {{"--signals-to-handle=SIGKILL"},
       "'SIGKILL' is not a signal that can be handled: no process can handle it"},
      {{"--signals-to-handle=SIGSTOP"},
       "'SIGSTOP' is not a signal that can be handled: no process can handle it"},
      {{"--signals-to-handle=SIGTERM,SIGCHLD"},
       "'SIGCHLD' is not a signal that can be handled: the launcher gets it whenever a worker "
       "ends"},
      {{"--signals-to-handle=SIGPIPE"},
       "'SIGPIPE' is not a signal that can be handled: the launcher gets it when a reader"},
      {{"--signals-to-handle=SIGSEGV"},
       "'SIGSEGV' is not a signal that can be handled: it reports a fault"},
      {{"--signals-to-handle=SIGBUS"}, "it reports a fault"},
      {{"--signals-to-handle=SIGFPE"}, "it reports a fault"},
      {{"--signals-to-handle=SIGILL"}, "it reports a fault"},
      {{"--signals-to-handle=SIGABRT"}, "it reports a fault"},
      {{"--role=a\nb"}, "'a\\nb' has a line feed or another control character"},
      {{"--role=a\x7f"}, "control character"},
      {{"--rdzv-id=\x1b[31m"}, "rdzv-id"},
      {{"--redirects=0:1,0:2"}, "each of them once"},
      {{"--max-restarts=-1"}, "max-restarts"},
      {{"--hang-limit=sometimes"}, "hang-limit"},
      {{"--no-python", "--module"}, "--module"},          // #5
      {{"--rdzv-endpoint=host"}, "HOST:PORT"},
      {{"--node-rank=1"}, "node-rank"},
      {{"--master-addr=a b"}, "master-addr"},
      {{"--standalone", "--nnodes=2"}, "--standalone"},
      {{"--nnodes=1:1000000000"},
       "'1:1000000000' is more hosts than a job can have: at most 1048576"},
      {{"--nnodes=99999999999999999999"}, "at most 1048576"},
      {{"--nproc-per-node=70000"}, "'70000' is more workers than a host can have: at most 65536"},
      {{"--nproc-per-node=99999999999999999999"}, "at most 65536"},
      {{"--nnodes=100000", "--nproc-per-node=11"},
       "11 workers on each of at least 100000 hosts are 1100000, more than the 1048576"},
      {{"--max-restarts=-1"}, "-1 must be at least 0"},
      {{"--rdzv-conf=keep_alive_max_attempt=1000001"},
       "'1000001' must be a whole number from 1 to"},
      {{"--rdzv-conf=join_timeout=100000h"}, "'100000h' must be more than 0, and at most 87600 h"},
      {{"--rdzv-conf=keep_alive_interval=1000h,keep_alive_max_attempt=1000"}, "at most 87600 h"},
      {{"--hang-limit=100000h"}, "at most 87600 h"},
      {{"--role=" + std::string(5000, 'r')}, "it has 5000 bytes; at most 4096"},
  };
  for (const auto& [words, part] : cases) {
    const std::string problem = ProblemOf(words);
    EXPECT_THAT(problem, HasSubstr(part)) << words.front();
    EXPECT_THAT(problem, Not(HasSubstr("usage: "))) << words.front();
  }
  EXPECT_THAT(ProblemOf({"--signals-to-handle=SIGKILL"}), Not(HasSubstr("did you mean")));
  EXPECT_THAT(ProblemOf({}, {{"PET_MODULE", "1"}, {"PET_NO_PYTHON", "1"}}),   // #11
              HasSubstr("--module"));
}

TEST(LaunchOptions, DefaultsAreTorchruns) {
  ASSERT_OK_AND_ASSIGN(const LaunchConfig config, Config({}));
  EXPECT_EQ(config.hosts, (HostRange{1, 1}));
  EXPECT_EQ(config.workers_per_host, 1);
  EXPECT_EQ(config.meeting, LaunchConfig::Meeting::kStandalone);
  EXPECT_EQ(config.endpoint_port, 0);
  EXPECT_EQ(config.run_id, "0123456789abcdef");
  EXPECT_EQ(config.restarts_max, 0);
  EXPECT_EQ(config.join_limit, Duration(600s));           // #107
  EXPECT_EQ(config.last_call_limit, Duration(30s));
  EXPECT_EQ(config.shutdown_limit, Duration(30s));
  EXPECT_THAT(config.signals, ElementsAre(SIGTERM, SIGINT, SIGHUP, SIGQUIT));
  EXPECT_EQ(config.hangs, LaunchConfig::Hangs::kAuto);
  EXPECT_EQ(config.numeric_names_library, "/lib/n.so");
  EXPECT_THAT(config.notes, IsEmpty());
  EXPECT_THAT(config.program.CommandLine(0),
              ElementsAre("/usr/bin/python3", "-u", "train.py"));
}

TEST(LaunchOptions, TheEnvironmentGivesDefaultsAndTheLineWins) {  // #9
  ASSERT_OK_AND_ASSIGN(const LaunchConfig config,
                       Config({"--nnodes=3:3"}, {{"PET_NNODES", "1:2"},
                                                 {"PET_NPROC_PER_NODE", "3"},
                                                 {"PET_NO_PYTHON", "1"},
                                                 {"PET_STANDALONE", "0"},
                                                 {"PET_MODULE", "0"},
                                                 {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "5"},
                                                 {"KEELRUN_PARK_LIMIT", "2s"}}));
  EXPECT_EQ(config.hosts, (HostRange{3, 3}));
  EXPECT_EQ(config.workers_per_host, 3);
  EXPECT_EQ(config.program.kind, WorkerProgram::Kind::kBinary);
  EXPECT_EQ(config.meeting, LaunchConfig::Meeting::kStatic);
  EXPECT_EQ(config.shutdown_limit, Duration(5s));         // #79
  EXPECT_EQ(config.park_limit, Duration(2s));
  EXPECT_EQ(Config({"--shutdown-timeout=0"}, {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "5"}})
                ->shutdown_limit, Duration(0));
  EXPECT_THAT(ProblemOf({}, {{"KEELRUN_PARK_LIMT", "2s"}}), HasSubstr("KEELRUN_PARK_LIMIT"));
}

TEST(LaunchOptions, WorkersAreCountedByWhatTheHostHas) {  // #13
  EXPECT_EQ(Config({"--nproc-per-node=auto"})->workers_per_host, 6);
  HostFacts facts = Facts();
  facts.gpus = 2;
  for (const char* word : {"auto", "gpu"}) {
    EXPECT_EQ(Config({std::string("--nproc_per_node=") + word}, {}, facts)->workers_per_host, 2);
  }
  EXPECT_EQ(Config({"--nproc-per-node=cpu"}, {}, facts)->workers_per_host, 6);
}

TEST(LaunchOptions, HostRangesAreRead) {  // #17
  EXPECT_EQ(*ParseHostRange("2:20"), (HostRange{2, 20}));
  EXPECT_EQ(*ParseHostRange("1"), (HostRange{1, 1}));
  for (const char* bad : {"", ":", "1:", ":2", "1:2:3", "a", "-1", "1:2a"}) {
    EXPECT_FALSE(ParseHostRange(bad).ok()) << bad;
  }
}

TEST(LaunchOptions, EndpointsAreReadIpv6Too) {  // #31
  const std::pair<const char*, HostPort> cases[] = {
      {"", {"localhost", std::nullopt}},
      {"  ", {"localhost", std::nullopt}},
      {"host", {"host", std::nullopt}},
      {"host:123", {"host", uint16_t{123}}},
      {"10.0.0.1:0", {"10.0.0.1", uint16_t{0}}},
      {"[2001:db8::1]:123", {"2001:db8::1", uint16_t{123}}},
      {"[2001:db8::1]", {"2001:db8::1", std::nullopt}}};
  for (const auto& [text, expected] : cases) EXPECT_EQ(*ParseEndpoint(text), expected) << text;
  for (const char* bad : {"host:", "host:x", "host:65536", "ho st:1", "a/b", "[]:1", "host:-1"}) {
    EXPECT_FALSE(ParseEndpoint(bad).ok()) << bad;
  }
  EXPECT_EQ(Config({"--rdzv-backend=c10d", "--rdzv-endpoint=n0"})->endpoint_port, 29400);
  EXPECT_EQ(Config({"--master-addr=[::1]", "--master-port=5"})->endpoint_host, "::1");
}

TEST(LaunchOptions, RendezvousValuesAreTakenOrNoted) {
  ASSERT_OK_AND_ASSIGN(
      const LaunchConfig config,
      Config({"--rdzv-backend=c10d", "--rdzv-conf",
              " join_timeout = 7 ,last_call_timeout=1,keep_alive_interval=2,"
              "keep_alive_max_attempt=5,is_host=1,read_timeout=60"}));
  EXPECT_EQ(config.join_limit, Duration(7s));
  EXPECT_EQ(config.last_call_limit, Duration(1s));
  EXPECT_EQ(config.beat_interval, Duration(2s));
  EXPECT_EQ(config.beats_missed_max, 5);
  EXPECT_EQ(config.is_store_host, true);
  EXPECT_EQ(config.read_limit, Duration(60s));
  EXPECT_THAT(config.notes, IsEmpty());
  // Fixed hosts have another word for it, and their numbers say who keeps the store.
  ASSERT_OK_AND_ASSIGN(
      const LaunchConfig fixed,
      Config({"--master-port=1", "--rdzv-conf=timeout=8,read_timeout=9,is_host=0"}));
  EXPECT_EQ(fixed.read_limit, Duration(8s));
  EXPECT_EQ(fixed.is_store_host, true);
  EXPECT_THAT(fixed.notes, ElementsAre(HasSubstr("read_timeout"), HasSubstr("is_host")));
}

TEST(LaunchOptions, RendezvousValuesThatMakeNoSenseAreErrors) {
  const std::pair<const char*, const char*> cases[] = {
      {"read_timeout=0", "more than 0"},
      {"read_timeout=-3", "read_timeout"},
      {"is_host=maybe", "'maybe' is neither true nor false"},
      {"store_type=file", "use --rdzv-backend=dir"},
  };
  for (const auto& [value, why] : cases) {
    EXPECT_THAT(ProblemOf({"--rdzv-backend=c10d", std::string("--rdzv-conf=") + value}),
                HasSubstr(why)) << value;
  }
}

TEST(LaunchOptions, AStoreOfTcpIsTakenHoweverItIsWritten) {
  for (const char* word : {"tcp", "TCP", " Tcp "}) {
    EXPECT_OK(Config({"--rdzv-backend=c10d", std::string("--rdzv-conf=store_type=") + word}))
        << word;
  }
  for (const char* other : {"--nnodes=1", "--standalone", "--master-port=1", "--nnodes=2"}) {
    ASSERT_OK_AND_ASSIGN(const LaunchConfig config, Config({other, "--rdzv-conf=store_type=file"}));
    EXPECT_THAT(config.notes, ElementsAre(HasSubstr("store_type has no effect"))) << other;
  }
  EXPECT_THAT(ProblemOf({"--rdzv-conf=store_type=redis"}), HasSubstr("'redis' is not possible"));
}

TEST(LaunchOptions, ABackendsChoiceIsTakenInTorchrunsWords) {
  for (const char* word : {"1", "true", "T", "yes", "y"}) {
    EXPECT_EQ(Config({"--rdzv-backend=c10d", std::string("--rdzv-conf=is_host=") + word})
                  ->is_store_host, true) << word;
  }
  for (const char* word : {"0", "False", "f", "NO", "n"}) {
    EXPECT_EQ(Config({"--rdzv-backend=c10d", std::string("--rdzv-conf=is_host=") + word})
                  ->is_store_host, false) << word;
  }
}

TEST(LaunchOptions, AnEtcdClusterIsNamedByItsMembers) {
  ASSERT_OK_AND_ASSIGN(
      const LaunchConfig config,
      Config({"--rdzv-backend=etcd-v2", "--rdzv-endpoint=e0,e1:2390", "--rdzv-conf",
              "protocol=https,cacert=ca.pem,cert=own.pem,key=own.key,is_host=1", "--node-rank=0"},
             {{"KEEL_ETCD_USER", "job"}, {"KEEL_ETCD_PASSWORD", "secret"}}));
  EXPECT_EQ(config.meeting, LaunchConfig::Meeting::kEtcd);
  EXPECT_EQ(config.endpoint_host, "e0");
  EXPECT_EQ(config.endpoint_port, 2379);
  EXPECT_THAT(config.more_endpoints, ElementsAre(HostPort{"e1", uint16_t{2390}}));
  EXPECT_TRUE(config.etcd.is_tls);
  EXPECT_EQ(config.etcd.ca_file, "ca.pem");
  EXPECT_EQ(config.etcd.cert_file, "own.pem");
  EXPECT_EQ(config.etcd.key_file, "own.key");
  EXPECT_EQ(config.etcd.user, "job");
  EXPECT_EQ(config.etcd.password, "secret");
  EXPECT_THAT(config.notes, ElementsAre(HasSubstr("--node-rank"), HasSubstr("is_host")));
  EXPECT_EQ(Config({"--rdzv-backend=etcd", "--rdzv-endpoint=e0:1,e1"})->more_endpoints.front().port,
            2379);
}

TEST(LaunchOptions, WhatDoesNotFitAnEtcdClusterIsNamed) {
  const std::pair<Words, const char*> cases[] = {
      {{"--rdzv-backend=etcd-v3"}, "did you mean 'etcd-v2'"},
      {{"--rdzv-backend=etcd", "--rdzv-endpoint=http://e0"}, "http://e0"},
      {{"--rdzv-backend=etcd", "--rdzv-endpoint=e0", "--rdzv-conf=protocol=ftp"},
       "protocol='ftp' must be http or https"},
      {{"--rdzv-backend=etcd", "--rdzv-endpoint=e0", "--rdzv-conf=cacert=a"}, "protocol=https"},
      {{"--rdzv-backend=etcd", "--rdzv-endpoint=e0", "--rdzv-conf=protocol=https,cert=a"},
       "cert and key belong together"},
      {{"--rdzv-backend=etcd", "--rdzv-endpoint=e0", "--doctor"}, "--rdzv-backend=c10d"},
  };
  for (const auto& [words, part] : cases) {
    EXPECT_THAT(ProblemOf(words), HasSubstr(part)) << words.front();
  }
}

TEST(LaunchOptions, APasswordOfEtcdWithoutAUserIsRefused) {
  EXPECT_THAT(ProblemOf({"--rdzv-backend=etcd", "--rdzv-endpoint=e0"},
                        {{"KEEL_ETCD_PASSWORD", "secret"}}),
              AllOf(HasSubstr("KEEL_ETCD_USER is not"), Not(HasSubstr("secret"))));
}

// A backend of torchrun may know it.
TEST(LaunchOptions, UnknownRendezvousKeysAreNotedWithTheKnownOnes) {
  ASSERT_OK_AND_ASSIGN(const LaunchConfig config,
                       Config({"--rdzv-conf=bogus=1,join_timeot=5,join_timeout=7"}));
  EXPECT_EQ(config.join_limit, Duration(7s));
  EXPECT_THAT(config.notes,
              ElementsAre(AllOf(HasSubstr("'bogus'"), HasSubstr("keep_alive_max_attempt"),
                                Not(HasSubstr("did you mean"))),
                          AllOf(HasSubstr("'join_timeot'"),
                                HasSubstr("did you mean 'join_timeout'"))));
}

TEST(LaunchOptions, StandaloneChoosesAFreePortAndANewName) {  // #47
  ASSERT_OK_AND_ASSIGN(const LaunchConfig config, Config({"--standalone", "--rdzv-id=mine"}));
  EXPECT_EQ(config.meeting, LaunchConfig::Meeting::kStandalone);
  EXPECT_EQ(config.endpoint_port, 0);
  EXPECT_EQ(config.run_id, "0123456789abcdef");
  EXPECT_EQ(config.logs.run_id, config.run_id);
  EXPECT_THAT(config.notes, ElementsAre(HasSubstr("--rdzv-id")));
}

TEST(LaunchOptions, OneHostWithoutAPortHasAFreeOne) {
  for (const Words& words : std::vector<Words>{{}, {"--nnodes=1"}, {"--rdzv-endpoint="}}) {
    ASSERT_OK_AND_ASSIGN(const LaunchConfig config, Config(words));
    EXPECT_EQ(config.meeting, LaunchConfig::Meeting::kStandalone);
    EXPECT_EQ(config.endpoint_port, 0);
    EXPECT_EQ(config.run_id, "0123456789abcdef");
    EXPECT_EQ(config.logs.run_id, config.run_id);
    EXPECT_THAT(config.notes, IsEmpty());
  }
  ASSERT_OK_AND_ASSIGN(const LaunchConfig named,
                       Config({"--rdzv-id=mine", "--master-addr=10.0.0.1"}));
  EXPECT_EQ(named.run_id, "mine");
  EXPECT_EQ(named.endpoint_host, "localhost");
  EXPECT_THAT(named.notes, ElementsAre(HasSubstr("--master-addr has no effect: one host")));
}

TEST(LaunchOptions, AJobWithAnEmptyNameHasOneOfItsOwnUnlessHostsMeetByIt) {
  for (const Words& words : std::vector<Words>{{"--rdzv-id="},
                                               {"--rdzv-id=", "--master-port=29500"},
                                               {"--rdzv-id=", "--rdzv-backend=c10d"}}) {
    ASSERT_OK_AND_ASSIGN(const LaunchConfig config, Config(words));
    EXPECT_EQ(config.run_id, "0123456789abcdef");
  }
  ASSERT_OK_AND_ASSIGN(const LaunchConfig fixed,
                       Config({"--rdzv-id=", "--nnodes=2", "--lease=/tmp"}));
  EXPECT_EQ(fixed.run_id, "none");
  for (const Words& words :
       std::vector<Words>{{"--rdzv-id=", "--nnodes=2", "--rdzv-backend=c10d"},
                          {"--rdzv-id=", "--nnodes=2", "--rdzv-backend=dir", "--rdzv-endpoint=/d"},
                          {"--rdzv-id=", "--rdzv-backend=etcd", "--rdzv-endpoint=e1"}}) {
    EXPECT_THAT(ProblemOf(words), HasSubstr("it is empty; give all hosts of the job the same"));
  }
}

TEST(LaunchOptions, APortOrSeveralHostsKeepTheDefaultsOfFixedHosts) {
  using Meeting = LaunchConfig::Meeting;
  const std::pair<Words, int> cases[] = {{{"--nnodes=2"}, 29500},
                                         {{"--nnodes=1:2"}, 29500},
                                         {{"--master-port=29500"}, 29500},
                                         {{"--master-port=0"}, 0},
                                         {{"--rdzv-endpoint=127.0.0.1:7"}, 7}};
  for (const auto& [words, port] : cases) {
    ASSERT_OK_AND_ASSIGN(const LaunchConfig config, Config(words));
    EXPECT_EQ(config.meeting, Meeting::kStatic) << words.front();
    EXPECT_EQ(config.endpoint_host, "127.0.0.1") << words.front();
    EXPECT_EQ(config.endpoint_port, port) << words.front();
    EXPECT_EQ(config.run_id, "none") << words.front();
  }
  EXPECT_EQ(Config({}, {{"PET_MASTER_PORT", "7"}})->endpoint_port, 7);
}

TEST(LaunchOptions, StaticHostsAreAllWaitedFor) {  // #109
  ASSERT_OK_AND_ASSIGN(const LaunchConfig config, Config({"--nnodes=1:3", "--node-rank=2"}));
  EXPECT_EQ(config.hosts, (HostRange{3, 3}));
  EXPECT_EQ(config.node_rank, 2);
  EXPECT_EQ(config.is_store_host, false);
  EXPECT_THAT(config.notes, ElementsAre(HasSubstr("c10d")));
}

TEST(LaunchOptions, TheGreatestCountsAreTaken) {
  ASSERT_OK_AND_ASSIGN(const LaunchConfig most,
                       Config({"--nnodes=16:1048576", "--nproc-per-node=65536",
                               "--rdzv-backend=c10d"}));
  EXPECT_EQ(most.hosts, (HostRange{16, 1 << 20}));
  EXPECT_EQ(most.workers_per_host, 1 << 16);
  ASSERT_OK_AND_ASSIGN(const LaunchConfig forever, Config({"--max-restarts=99999999999"}));
  EXPECT_EQ(forever.restarts_max, 1000000);
  EXPECT_THAT(forever.notes, ElementsAre(HasSubstr("is taken as 1000000")));
}

TEST(LaunchOptions, ANameThatIsNoSignalIsNotedAndIgnored) {
  ASSERT_OK_AND_ASSIGN(const LaunchConfig config, Config({"--signals-to-handle=SIGTREM,SIGINT"}));
  EXPECT_THAT(config.signals, ElementsAre(SIGINT));
  EXPECT_THAT(config.notes, ElementsAre(AllOf(HasSubstr("'SIGTREM' is no signal, and is ignored"),
                                              HasSubstr("SIGTERM"))));
  EXPECT_TRUE(Config({"--logs-specs=default"}).ok());
}

TEST(LaunchOptions, AFilterThatShowsNobodyIsNoted) {
  const Environment threads = {{"OMP_NUM_THREADS", "2"}};
  EXPECT_THAT(Config({"--local-ranks-filter=5,4", "--nproc-per-node=4"}, threads)->notes,
              ElementsAre(HasSubstr("the local ranks here are 0 to 3")));
  EXPECT_THAT(Config({"--local-ranks-filter=5,3", "--nproc-per-node=4"}, threads)->notes,
              IsEmpty());
}

TEST(LaunchOptions, AHealthEndpointHasThePortThatTheEnvironmentNames) {
  const auto with = [](const char* port) {
    return *Config({}, {{"TORCHELASTIC_HEALTH_CHECK_PORT", port}});
  };
  EXPECT_EQ(Config({})->alive_port, std::nullopt);
  EXPECT_EQ(with("8080").alive_port, 8080);
  EXPECT_EQ(with("0").alive_port, 0);
  for (const char* odd : {"", "abc", "-1", "65536", "80 80"}) {
    EXPECT_EQ(with(odd).alive_port, std::nullopt) << odd;
    EXPECT_THAT(with(odd).notes,
                ElementsAre(HasSubstr("TORCHELASTIC_HEALTH_CHECK_PORT"))) << odd;
  }
}

TEST(LaunchOptions, ARangeOfPortsThatWorkersMayLeaveIsNoted) {
  HostFacts facts = Facts();
  facts.kernel_ports = {32768, 60999};
  const auto with = [&](const std::string& range) {
    return Config({"--nnodes=2", "--port-range=" + range}, {}, facts);
  };
  const Result<LaunchConfig> narrow = with("29400-29499");
  ASSERT_OK(narrow);
  EXPECT_EQ(narrow->ports, (PortRange{29400, 29499}));
  EXPECT_THAT(narrow->notes, ElementsAre(HasSubstr("32768-60999")));
  EXPECT_THAT(with("30000-60999")->notes, IsEmpty());
  EXPECT_TRUE(Config({"--nnodes=2"}, {}, facts)->ports.is_any());
  EXPECT_THAT(Config({"--port-range=29400-29499"}, {}, facts)->notes, IsEmpty()) << "one host";
  EXPECT_THAT(with("29400").error().message, HasSubstr("--port-range"));
  EXPECT_EQ(Config({}, {{"KEELRUN_PORT_RANGE", "300-400"}}, facts)->ports,
            (PortRange{300, 400}));
}

TEST(HostFacts, TheKernelsPortsAreRead) {
  EXPECT_EQ(KernelPorts("32768\t60999\n"), (PortRange{32768, 60999}));
  for (const char* odd : {"", "x", "32768", "70000 80000"}) {
    EXPECT_TRUE(KernelPorts(odd).is_any()) << odd;
  }
}

TEST(LaunchOptions, OneThreadEachIsNotedWhereTheUserHasNotChosen) {
  const auto notes = [](const Environment& environment, const HostFacts& facts) {
    return Config({"--nproc-per-node=2"}, environment, facts)->notes;
  };
  EXPECT_THAT(notes({}, Facts()),
              ElementsAre(HasSubstr("Setting OMP_NUM_THREADS environment variable for each "
                                    "process to be 1 in default")));
  EXPECT_THAT(notes({{"OMP_NUM_THREADS", "3"}}, Facts()), IsEmpty());
  HostFacts trainer = Facts();
  trainer.is_in_place = true;
  EXPECT_THAT(notes({}, trainer), IsEmpty()) << "it chooses its own threads";
}

TEST(LaunchOptions, WhatHasNoEffectIsNoted) {
  const char* const idle[] = {"--monitor-interval=5", "--start-method=fork",
                              "--event-log-handler=console", "--numa-binding=node"};
  for (const char* word : idle) {
    ASSERT_OK_AND_ASSIGN(const LaunchConfig config, Config({word}));
    EXPECT_THAT(config.notes, ElementsAre(HasSubstr("no effect"))) << word;
  }
  EXPECT_THAT(Config({"--rdzv-backend=c10d", "--master-port=1"})->notes,
              ElementsAre(HasSubstr("--master-port")));
  EXPECT_THAT(Config({"--standalone", "--node-rank=-1"})->notes,
              ElementsAre(HasSubstr("--node-rank")));
  for (const char* name : {"TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT",
                           "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT"}) {
    EXPECT_THAT(Config({}, {{name, "9"}})->notes,
                ElementsAre(HasSubstr(std::string(name) + " has no effect")));
  }
  EXPECT_THAT(Config({"--rdzv-conf=cas_backoff_max_seconds=1"})->notes,
              ElementsAre(HasSubstr("cas_backoff_max_seconds has no effect here")));
}

TEST(LaunchOptions, LogsAreAsTheyWereAskedFor) {
  ASSERT_OK_AND_ASSIGN(
      const LaunchConfig config,
      Config({"-r", "3", "-t=0:1", "--log-dir=/l", "--local_ranks_filter=0,2", "--role=trainer",
              "--duplicate-stdout-filters=apple,a,,b", "--log-format=json"},
             {{"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "$rank "}}));
  EXPECT_EQ(config.logs.redirects.Of(3), (StreamChoice{true, true}));
  EXPECT_EQ(config.logs.tee.Of(0), (StreamChoice{true, false}));
  EXPECT_EQ(config.logs.log_dir, "/l");
  EXPECT_THAT(*config.logs.shown_ranks, ElementsAre(0, 2));
  EXPECT_THAT(config.logs.out_filters, ElementsAre("apple", "a,b"));
  EXPECT_THAT(config.logs.err_filters, IsEmpty());
  EXPECT_EQ(LinePrefix(config.logs, 1, 5), "5 ");
  EXPECT_EQ(config.log_format, LogFormat::kJson);
}

TEST(LaunchOptions, ThePrefixOfLinesIsThatOfTheFirstSourceThatHasOne) {
  const Environment both = {{"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "old "},
                            {"PET_LOG_LINE_PREFIX_TEMPLATE", "${hostname}:${rank}: "}};
  EXPECT_EQ(LinePrefix(Config({}, both)->logs, 1, 5), "node-a:5: ");
  EXPECT_EQ(LinePrefix(Config({"--log_line_prefix_template=new "}, both)->logs, 1, 5), "new ");
  EXPECT_EQ(LinePrefix(Config({})->logs, 1, 5), "[default1]:");
}

TEST(LaunchOptions, TorchrunsWordForCompletionKnowsOurShells) {
  const auto problem = [](const char* shell) {
    return ProblemOf({std::string("--print-completion=") + shell});
  };
  EXPECT_EQ(problem("zsh"), "");
  for (const char* shell : {"tcsh", "fish"}) {
    EXPECT_THAT(problem(shell), AllOf(HasSubstr("usage: "), HasSubstr("one of: bash, zsh")));
  }
}

TEST(LaunchOptions, OurOwnAreRead) {
  ASSERT_OK_AND_ASSIGN(const LaunchConfig config,
                       Config({"--restart-window=1h", "--hang-limit=90s", "--no-numeric-names",
                               "--allow-inexact", "--signals-to-handle=SIGUSR1, SIGTERM"}));
  EXPECT_EQ(config.restart_window, Duration(1h));
  EXPECT_EQ(config.hangs, LaunchConfig::Hangs::kGiven);
  EXPECT_EQ(config.hang_limit, Duration(90s));
  EXPECT_EQ(config.numeric_names_library, "");
  EXPECT_TRUE(config.allow_inexact);
  EXPECT_THAT(config.signals, ElementsAre(SIGUSR1, SIGTERM));
  EXPECT_EQ(Config({"--hang-limit=off"})->hangs, LaunchConfig::Hangs::kOff);
}

TEST(LaunchOptions, AMissingLibraryOfNumericNamesIsNoted) {
  HostFacts facts = Facts();
  facts.numeric_names = "";
  EXPECT_THAT(Config({}, {}, facts)->notes, ElementsAre(HasSubstr("--no-numeric-names")));
  EXPECT_THAT(Config({"--no-numeric-names"}, {}, facts)->notes, IsEmpty());
}

TEST(HostFacts, VisibleDevicesNarrowWhatIsThere) {
  const std::pair<const char*, int> cases[] = {{"", 0},      {"0", 1},   {"3,1", 2}, {"1,-1,2", 1},
                                               {"0,9", 1},   {"-1", 0},  {"GPU-a,GPU-b", 2},
                                               {"0, 1", 2},  {"0,1,2,3,0", 4}};
  for (const auto& [visible, expected] : cases) EXPECT_EQ(VisibleGpus(visible, 4), expected);
}

TEST(HostFacts, TheProgramIsLookedAtAndPythonFound) {
  Random random(1);
  const Environment environment = {{"PATH", "/usr/bin:/bin"}, {"TMPDIR", "/var/tmp"}};
  EXPECT_TRUE(ReadHostFacts(environment, "/proc/self/exe", random).is_compiled);
  EXPECT_TRUE(ReadHostFacts(environment, "ls", random).is_compiled);
  const HostFacts facts = ReadHostFacts(environment, KEEL_SOURCE_DIR "/tools/house.py", random);
  EXPECT_FALSE(facts.is_compiled);
  EXPECT_GE(facts.cpus, 1);
  EXPECT_EQ(facts.name, OwnHostName());
  EXPECT_EQ(facts.temporary_dir, "/var/tmp");
  EXPECT_THAT(facts.python, HasSubstr("/python3"));
  EXPECT_EQ(ReadHostFacts({{"PYTHON_EXEC", "./fake"}}, "", random).python, "./fake");   // #25
}

// As taskset and containers limit them.
TEST(HostFacts, OnlyProcessorsThatWeMayUseCount) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  size_t first = 0;
  while (!CPU_ISSET(first, &all)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  Random random(1);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(ReadHostFacts({}, "", random).cpus, 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
  EXPECT_EQ(ReadHostFacts({}, "", random).cpus, CPU_COUNT(&all));
}

TEST(NoticeOptions, NobodyIsAskedUnaskedForButTheMachinesOwnCloud) {
  EXPECT_THAT(Config({})->notices.clouds, IsEmpty());
  HostFacts facts = Facts();
  facts.cloud = Cloud::kGcp;
  EXPECT_THAT(Config({}, {}, facts)->notices.clouds, ElementsAre(Cloud::kGcp));
  EXPECT_FALSE(Config({}, {}, facts)->notices.insists);
  EXPECT_THAT(Config({"--notice=none"}, {}, facts)->notices.clouds, IsEmpty());
  EXPECT_THAT(Config({"--notice=slurm"}, {}, facts)->notices.clouds, IsEmpty());
  const auto named = Config({"--notice=aws"}, {}, facts);
  EXPECT_THAT(named->notices.clouds, ElementsAre(Cloud::kAws));
  EXPECT_TRUE(named->notices.insists);
  EXPECT_EQ(named->notice_base, (HttpBase{"169.254.169.254", 80, ""}));
  const auto asked = Config({"--notice-url=http://127.0.0.1:8080/p/"});
  EXPECT_THAT(asked->notices.clouds, ElementsAre(Cloud::kAws, Cloud::kGcp, Cloud::kAzure));
  EXPECT_EQ(asked->notice_base, (HttpBase{"127.0.0.1", 8080, "/p"}));
}

TEST(NoticeOptions, SlurmsEndComesFromTheEnvironment) {
  const Environment slurm = {{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_END_TIME", "1772366400"}};
  EXPECT_EQ(Config({}, slurm)->notices.known_end, 1772366400'000'000'000);
  EXPECT_EQ(Config({"--notice=slurm"}, slurm)->notices.known_end, 1772366400'000'000'000);
  EXPECT_EQ(Config({"--notice=none"}, slurm)->notices.known_end, std::nullopt);
  EXPECT_EQ(Config({}, {{"SLURM_JOB_END_TIME", "1772366400"}})->notices.known_end, std::nullopt);
  for (const char* odd : {"", "soon", "-5", "0", "99999999999999"}) {
    const Environment environment = {{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_END_TIME", odd}};
    EXPECT_EQ(Config({}, environment)->notices.known_end, std::nullopt) << odd;
    EXPECT_THAT(Config({}, environment)->notes, IsEmpty()) << odd;
    EXPECT_THAT(Config({"--notice=slurm"}, environment)->notes,
                ElementsAre(HasSubstr("SLURM_JOB_END_TIME does not say"))) << odd;
  }
}

TEST(NoticeOptions, AUrlHasAnAddressInNumbers) {
  EXPECT_EQ(*ParseBaseUrl("http://localhost"), (HttpBase{"127.0.0.1", 80, ""}));
  EXPECT_EQ(*ParseBaseUrl("http://[fd00:ec2::254]:81/x"), (HttpBase{"fd00:ec2::254", 81, "/x"}));
  for (const char* text : {"", "127.0.0.1", "http://", "https://127.0.0.1", "http://metadata",
                           "http://1.2.3.4:0", "http://1.2.3.4:99999", "http://1.2.3.4/a?b",
                           "http://1.2.3.4/a b", "http:///x"}) {
    EXPECT_FALSE(ParseBaseUrl(text).ok()) << text;
    if (*text != 0) {
      EXPECT_THAT(ProblemOf({std::string("--notice-url=") + text}), HasSubstr("notice-url"));
    }
  }
}

TEST(StatusOptions, ThePageIsOfThisMachineUnlessToldOtherwise) {
  EXPECT_EQ(Config({})->status, std::nullopt);
  for (const char* text : {"8090", ":8090", "127.0.0.1:8090", "localhost:8090", " 8090 "}) {
    EXPECT_EQ(Config({std::string("--status=") + text})->status,
              (StatusAddress{"127.0.0.1", 8090, ""})) << text;
  }
  EXPECT_EQ(Config({"--status=[::1]:0"})->status, (StatusAddress{"::1", 0, ""}));
  for (const char* text : {"node0:8090", "0.0.0.0", "127.0.0.1", "70000", "-1", "1.2.3:80", "a b",
                           "127.0.0.1:", "::", "[::1]"}) {
    EXPECT_THAT(ProblemOf({std::string("--status=") + text}), HasSubstr("'--status'")) << text;
  }
  EXPECT_THAT(ProblemOf({"--status=8090", "--status-token=short"}), HasSubstr("'--status-token'"));
  EXPECT_THAT(Config({"--status-token=0123456789abcdef"})->notes,
              ElementsAre(HasSubstr("--status-token has no effect")));
}

TEST(StatusOptions, WhereOthersReachItATokenIsNeeded) {
  const std::string token = "0123456789abcdef";
  for (const char* text : {"0.0.0.0:8090", "10.1.2.3:8090", "[::]:8090", "[fd00::1]:8090"}) {
    EXPECT_THAT(ProblemOf({std::string("--status=") + text}), HasSubstr("--status-token")) << text;
    const auto config = Config({std::string("--status=") + text, "--status-token=" + token});
    ASSERT_OK(config);
    EXPECT_EQ(config->status->token, token);
  }
  const auto by_variable =
      Config({"--status=0.0.0.0:1"}, {{"KEELRUN_STATUS_TOKEN", token}});
  ASSERT_OK(by_variable);
  EXPECT_EQ(by_variable->status, (StatusAddress{"0.0.0.0", 1, token}));
}

TEST(NoticeOptions, TheMachineSaysWhoseItIs) {
  EXPECT_EQ(CloudOf({}), std::nullopt);
  EXPECT_EQ(CloudOf({.sys_vendor = "Amazon EC2"}), Cloud::kAws);
  EXPECT_EQ(CloudOf({.sys_vendor = "Xen", .bios_version = "4.11.amazon"}), Cloud::kAws);
  EXPECT_EQ(CloudOf({.sys_vendor = "Google", .product_name = "Google Compute Engine"}),
            Cloud::kGcp);
  EXPECT_EQ(CloudOf({.sys_vendor = "Microsoft Corporation"}), std::nullopt) << "any Hyper-V";
  EXPECT_EQ(CloudOf({.sys_vendor = "Microsoft Corporation",
                     .chassis_asset_tag = "7783-7084-3265-9085-8269-3286-77"}),
            Cloud::kAzure);
}

TEST(LaunchOptions, AnEmptyNameOfTheTokensFileOpensNoJob) {
  const Environment empty = {{"KEELRUN_TOKEN_FILE", ""}};
  EXPECT_THAT(ProblemOf({"--standalone"}, empty),
              HasSubstr("(KEELRUN_TOKEN_FILE) has an empty name: name the file, or unset"));
  EXPECT_THAT(ProblemOf({}, {{"KEELRUN_TOKEN", ""}, {"KEELRUN_TOKEN_FILE", ""}}),
              HasSubstr("has an empty name"));
  EXPECT_EQ(Config({"--token-file=t"}, empty)->token_file, "t");
  EXPECT_EQ(Config({}, {{"KEELRUN_TOKEN_FILE", "t"}})->token_file, "t");
  // The job has its token.
  EXPECT_EQ(ProblemOf({}, {{"KEELRUN_TOKEN", "0123456789abcdef"}, {"KEELRUN_TOKEN_FILE", ""}}), "");
}

TEST(LaunchOptions, OurOwnAddressIsAHostWithoutAPort) {
  const std::pair<const char*, const char*> cases[] = {{"10.0.0.7", "10.0.0.7"},
                                                       {"node-7.cluster", "node-7.cluster"},
                                                       {"[::1]", "::1"},
                                                       {"fd00::2", "fd00::2"},
                                                       {"", ""}};
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(Config({std::string("--local-addr=") + text})->local_address, expected) << text;
  }
  for (const char* bad : {"10.0.0.7:4711", "[::1]:80", "[::1", "node 7", " "}) {
    EXPECT_THAT(ProblemOf({std::string("--local-addr=") + bad}),
                AllOf(HasSubstr("'--local-addr'"), HasSubstr("must be a name or an address")))
        << bad;
  }
}

TEST(LaunchOptions, AHostWithAColonIsAnIpv6Address) {
  EXPECT_EQ(*ParseEndpoint("fd00::2:29955"), (HostPort{"fd00::2", uint16_t{29955}}));
  EXPECT_EQ(*ParseEndpoint("[fd00::2]:29955"), (HostPort{"fd00::2", uint16_t{29955}}));
  EXPECT_EQ(Config({"--master-addr=fd00::2", "--master-port=5"})->endpoint_host, "fd00::2");
  for (const char* bad : {"fd00::2", "::1", "node0:29400:1", "2001:db8:0:0:0:0:0:7",
                          "10.0.0.7:29400:1", "[node0:1]:29400"}) {
    const auto endpoint = ParseEndpoint(bad);
    ASSERT_FALSE(endpoint.ok()) << bad;
    EXPECT_THAT(endpoint.error().message, HasSubstr("an IPv6 address in brackets")) << bad;
  }
  EXPECT_THAT(ProblemOf({"--nnodes=2", "--master-addr=node0:29400"}), HasSubstr("'--master-addr'"));
}

TEST(LaunchOptions, APortThatTheOtherHostsCannotKnowIsRefused) {
  const std::pair<Words, const char*> cases[] = {
      {{"--nnodes=2", "--master-port=0"}, "'--master-port'"},
      {{"--nnodes=1:2", "--rdzv-endpoint=node0:0"}, "'--rdzv-endpoint'"},
      {{"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"}, "such as 29400"},
      {{"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=n0,n1:0"}, "'--rdzv-endpoint'"},
  };
  for (const auto& [words, part] : cases) {
    EXPECT_THAT(ProblemOf(words), AllOf(HasSubstr(part), HasSubstr("give all hosts the same port")))
        << words.back();
  }
  for (const Words& alone :
       std::vector<Words>{{"--master-port=0"},
                          {"--rdzv-endpoint=localhost:0"},
                          {"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"}}) {
    EXPECT_EQ(Config(alone)->endpoint_port, 0) << alone.back();
  }
}

TEST(LaunchOptions, VariablesOfAServiceOfKubernetesAreNoOptions) {
  EXPECT_EQ(ProblemOf({}, {{"KEELRUN_PORT", "tcp://10.96.0.7:29400"},
                           {"KEELRUN_STATUS_PORT_8090_TCP_ADDR", "10.96.0.8"}}), "");
  EXPECT_EQ(Config({}, {{"KEELRUN_PORT_RANGE", "300-400"}, {"KEELRUN_SERVICE_PORT", "29400"}})
                ->ports, (PortRange{300, 400}));
  EXPECT_THAT(ProblemOf({}, {{"KEELRUN_STATUS_PORT", "8090"}}), HasSubstr("KEELRUN_STATUS"));
}

TEST(LaunchOptions, ALeaseWithoutEffectIsNoted) {
  const auto notes = [](const Words& words, bool is_in_place) {
    HostFacts facts = Facts();
    facts.is_in_place = is_in_place;
    return Config(words, {}, facts)->notes;
  };
  EXPECT_THAT(notes({"--lease=/shared", "--quorum=strict"}, true),
              ElementsAre(HasSubstr("--lease has no effect: one host"),
                          HasSubstr("--quorum has no effect: one host")));
  EXPECT_THAT(notes({"--standalone", "--lease=auto"}, true),
              ElementsAre(HasSubstr("--lease has no effect: one host")));
  EXPECT_THAT(notes({"--nnodes=2", "--lease=auto"}, false),
              ElementsAre(HasSubstr("--lease has no effect: auto needs a compiled program")));
  EXPECT_THAT(notes({"--nnodes=2", "--lease=auto"}, true),
              ElementsAre(HasSubstr("--lease has no effect: auto needs --checkpoint-dir")));
  for (const Words& words : std::vector<Words>{{"--nnodes=2", "--lease=/shared"},
                                               {"--nnodes=2", "--lease=none"},
                                               {"--nnodes=2", "--quorum=strict"},
                                               {"--lease=none"}}) {
    EXPECT_THAT(notes(words, true), IsEmpty()) << words.back();
  }
  HostFacts facts = Facts();
  facts.is_in_place = true;
  ASSERT_OK_AND_ASSIGN(const LaunchConfig found,
                       Config({"--nnodes=2", "--lease=auto", "train", "--checkpoint-dir=/c"}, {},
                              facts));
  EXPECT_THAT(found.notes, IsEmpty());
  EXPECT_EQ(found.lease_directory, "/c");
  EXPECT_TRUE(found.is_lease_found);
}

}  // namespace
}  // namespace keel
