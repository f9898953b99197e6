// Makes a LaunchConfig from options: it parses values, fills in defaults that depend on the host,
// and notes what has no effect.
// This file is longer than 500 lines because it is one class, each of whose methods takes the
// options of one subject.
#include <strings.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <utility>

#include "base/nearest.h"
#include "base/text.h"
#include "elastic/launch/etcd_values.h"
#include "elastic/launch/meeting.h"
#include "elastic/launch/options.h"
#include "elastic/launch/program_words.h"
#include "elastic/launch/token.h"
#include "elastic/status/request.h"
#include "elastic/worker_environment.h"
#include "store/bucket_files.h"
#include "store/host_port.h"
#include "store/own_address.h"

namespace keel {
namespace {

constexpr uint16_t kElasticPort = 29400;   // if no other is given, as in torchrun
constexpr uint16_t kStaticPort = 29500;    // likewise
constexpr int64_t kRestartsMax = 1'000'000;
constexpr int64_t kUnixSecondsMax = 7'000'000'000;   // in the year 2191: it fits as nanoseconds
constexpr size_t kRoleBytesMax = 4096;      // each host's record on the board has it

// In the form that --notice takes.
std::string CloudWord(Cloud cloud) {
  std::string word(CloudName(cloud));
  for (char& c : word) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return word;
}

// It has more than 25 methods because each group of options is read by one.
class ConfigMaker {
 public:
  ConfigMaker(const Options& options, const Environment& environment, const HostFacts& facts)
      : options_(options), environment_(environment), facts_(facts) {}

  Result<LaunchConfig> Make() {
    KEEL_TRY(MakeJob());
    KEEL_TRY(MakeMeeting());
    KEEL_TRY(NameTheNameless());
    KEEL_TRY(MakeLimits());
    KEEL_TRY(MakeNotices());
    KEEL_TRY(MakeStatus());
    KEEL_TRY(MakeDoctor());
    MakeAlivePort();
    KEEL_TRY(MakeProgram());
    KEEL_TRY(MakeLease());
    KEEL_TRY(MakeLogs());
    NoteIdleOptions();
    NoteThreads();
    return std::move(config_);
  }

 private:
  // Names the option, and where its value comes from.
  Error About(std::string_view name, const Error& error) const {
    return error.Doing("option '--" + std::string(name) + "' (" + options_.Source(name).Text() +
                       ")");
  }
  Error Refused(std::string_view name, const std::string& why) const {
    return About(name, {Code::kInvalid, why});
  }
  bool IsGiven(std::string_view name) const {
    return options_.Source(name).kind != OptionSource::Kind::kDefault;
  }
  void Note(std::string note) { config_.notes.push_back(std::move(note)); }
  void NoteIfGiven(const std::string& name, const std::string& why) {
    if (IsGiven(name)) Note("--" + name + " has no effect: " + why);
  }

  Status MakeJob() {
    const Result<HostRange> hosts = ParseHostRange(options_.Text("nnodes"));
    if (!hosts.ok()) return About("nnodes", hosts.error());
    const Result<int> workers =
        ParseWorkerCount(options_.Text("nproc-per-node"), facts_.cpus, facts_.gpus);
    if (!workers.ok()) return About("nproc-per-node", workers.error());
    config_.hosts = *hosts;
    config_.workers_per_host = *workers;
    const int64_t workers_least = int64_t{hosts->least} * *workers;
    if (workers_least > kWorldSizeMax) {
      return Refused("nproc-per-node", std::to_string(*workers) + " workers on each of at least " +
                                           std::to_string(hosts->least) + " hosts are " +
                                           std::to_string(workers_least) + ", more than the " +
                                           std::to_string(kWorldSizeMax) +
                                           " that a job can have");
    }
    if (options_.Text("role").size() > kRoleBytesMax) {
      return Refused("role", "it has " + std::to_string(options_.Text("role").size()) +
                                 " bytes; at most " + std::to_string(kRoleBytesMax) +
                                 " are possible");
    }
    KEEL_TRY(RefuseControls("role"));
    KEEL_TRY(RefuseControls("rdzv-id"));
    config_.run_id = options_.Text("rdzv-id");
    KEEL_TRY(TakeTokenFile());
    config_.role = options_.Text("role");
    config_.virtual_local_rank = options_.Flag("virtual-local-rank");
    if (!options_.Text("local-addr").empty()) {
      KEEL_TRY_ASSIGN(config_.local_address, HostIn("local-addr"));
    }
    return TakePortRange();
  }

  Status TakeTokenFile() {
    config_.token_file = options_.Text("token-file");
    if (!config_.token_file.empty()) return Ok();
    if (IsGiven("token-file")) {
      return Refused("token-file", "it names no file; leave it out where the job has no token");
    }
    // An empty variable gives no option, but a secret that has gone missing must not open the job.
    const auto token = environment_.find(kTokenVariable);
    const bool has_token = token != environment_.end() && !token->second.empty();
    if (has_token || environment_.count(kTokenFileVariable) == 0) return Ok();
    return Error{Code::kInvalid, std::string("the file of the job's token (") + kTokenFileVariable +
                                     ") has an empty name: name the file, or unset the variable"};
  }

  // The value is a host alone: no port follows it.
  Result<std::string> HostIn(const char* name) const {
    const Result<HostPort> host = ParseEndpoint(options_.Text(name) + ":0");
    if (host.ok()) return host->host;
    return Refused(name, Shown(options_.Text(name)) +
                             " must be a name or an address (IPv6: in brackets)");
  }

  Status TakePortRange() {
    const std::string& text = options_.Text("port-range");
    if (text.empty()) return Ok();
    const Result<PortRange> ports = ParsePortRange(text);
    if (!ports.ok()) return About("port-range", ports.error());
    config_.ports = *ports;
    const PortRange& kernel = facts_.kernel_ports;
    if (kernel.is_any() || ports->Holds(kernel) || config_.hosts.most == 1) return Ok();
    Note("--port-range=" + text + " does not hold the ports of the workers' own connections (Gloo, "
         "NCCL), which the kernel picks from " + PortRangeText(kernel) + "; let these through, "
         "too, or on each host: sysctl -w net.ipv4.ip_local_port_range=\"" +
         std::to_string(ports->first) + " " + std::to_string(ports->last) + "\"");
    return Ok();
  }

  // The text appears in lines of the log and of workers, and in names of folders and keys.
  Status RefuseControls(const char* name) const {
    const std::string& text = options_.Text(name);
    const bool has_any = std::any_of(text.begin(), text.end(), [](char c) {
      return (c >= 0 && c < ' ') || c == '\x7f';
    });
    if (!has_any) return Ok();
    return Refused(name, Shown(text) + " has a line feed or another control character in it");
  }

  // Mostly a variable that is not set. torchrun gives each host another name then: one host works,
  // fixed ones do, and those that look for each other by the job's name never meet.
  Status NameTheNameless() {
    if (!config_.run_id.empty()) return Ok();
    const bool is_one = config_.hosts.most == 1 && !IsEtcd();
    if (!is_one && !IsStatic()) {
      return Refused("rdzv-id", "it is empty; give all hosts of the job the same name, and each "
                                "job another one");
    }
    config_.run_id = is_one ? facts_.unique_id : LaunchConfig().run_id;
    return Ok();
  }

  Status MakeMeeting() {
    if (options_.Flag("standalone")) return MakeStandalone();
    const std::string& backend = options_.Text("rdzv-backend");
    if (backend == "static") return MakeStatic();
    if (backend == "c10d") return MakeElastic();
    if (backend == "etcd" || backend == "etcd-v2") return MakeEtcd();
    if (backend == "dir" || backend == "s3") return MakeByDirectory();
    return Refused("rdzv-backend",
                   Shown(backend) + " is unknown; use static, c10d, dir, s3 or etcd" +
                       DidYouMean(backend, {"static", "c10d", "dir", "s3", "etcd", "etcd-v2"}));
  }

  Status MakeStandalone() {
    for (const char* name : {"rdzv-backend", "rdzv-endpoint", "rdzv-id", "node-rank",
                             "master-addr", "master-port"}) {
      NoteIfGiven(name, "--standalone chooses it");
    }
    MeetAlone();
    config_.run_id = facts_.unique_id;
    if (config_.hosts.least == 1) return Ok();
    return Refused("nnodes", "--standalone is for one host, and " +
                                 Shown(options_.Text("nnodes")) + " asks for more; leave "
                                 "--standalone out and give --rdzv-endpoint");
  }

  void MeetAlone() {
    config_.meeting = LaunchConfig::Meeting::kStandalone;
    config_.endpoint_host = "localhost";
    config_.endpoint_port = 0;
  }

  // As torchrun since 2.15, so that two jobs on one host do not ask for the same port. A name that
  // was given for the job stays, which torchrun replaces.
  bool TakesFreePort() const {
    return config_.hosts.most == 1 && !options_.Has("master-port") &&
           options_.Text("rdzv-endpoint").empty();
  }

  Status MakeOneStatic() {
    KEEL_TRY(TakeMaster());   // what is no address stays an error
    NoteIfGiven("master-addr", "one host without --master-port meets nobody, and chooses a free "
                               "port");
    MeetAlone();
    if (!IsGiven("rdzv-id")) config_.run_id = facts_.unique_id;
    return Ok();
  }

  Status MakeStatic() {
    config_.meeting = LaunchConfig::Meeting::kStatic;
    if (config_.hosts.least < config_.hosts.most) {
      Note("--nnodes=" + options_.Text("nnodes") + " waits for all " +
           std::to_string(config_.hosts.most) +
           " hosts, for they are fixed with --rdzv-backend=static; use c10d for hosts that come "
           "and go");
      config_.hosts.least = config_.hosts.most;
    }
    const int64_t node_rank = options_.Integer("node-rank");
    if (node_rank < 0 || node_rank >= config_.hosts.most) {
      return Refused("node-rank", std::to_string(node_rank) + " must be from 0 to " +
                                      std::to_string(config_.hosts.most - 1));
    }
    if (TakesFreePort()) return MakeOneStatic();
    config_.node_rank = static_cast<int>(node_rank);
    config_.is_store_host = node_rank == 0;
    return options_.Text("rdzv-endpoint").empty() ? TakeMaster() : TakeStaticEndpoint();
  }

  Status TakeMaster() {
    KEEL_TRY_ASSIGN(config_.endpoint_host, HostIn("master-addr"));
    const int64_t port =
        options_.Has("master-port") ? options_.Integer("master-port") : kStaticPort;
    if (port < 0 || port > 65535) {
      return Refused("master-port", std::to_string(port) + " must be from 0 to 65535");
    }
    config_.endpoint_port = static_cast<uint16_t>(port);
    return RefuseUnknownPort("master-port", config_.endpoint_port, kStaticPort);
  }

  // The system picks a port in place of 0, and then only the host that has opened it knows it.
  Status RefuseUnknownPort(const char* name, uint16_t port, uint16_t instead) const {
    if (port != 0 || config_.hosts.most == 1) return Ok();
    return Refused(name, "in place of port 0 the system picks one, which the other hosts cannot "
                         "know; give all hosts the same port, such as " +
                             std::to_string(instead));
  }

  Status TakeStaticEndpoint() {
    const Result<HostPort> endpoint = ParseEndpoint(options_.Text("rdzv-endpoint"));
    if (!endpoint.ok()) return About("rdzv-endpoint", endpoint.error());
    if (!endpoint->port) {
      return Refused("rdzv-endpoint", Shown(options_.Text("rdzv-endpoint")) +
                                          " must have a port with --rdzv-backend=static: "
                                          "HOST:PORT");
    }
    for (const char* name : {"master-addr", "master-port"}) {
      NoteIfGiven(name, "--rdzv-endpoint says where to meet");
    }
    config_.endpoint_host = endpoint->host;
    config_.endpoint_port = *endpoint->port;
    return RefuseUnknownPort("rdzv-endpoint", config_.endpoint_port, kStaticPort);
  }

  // The first one is where the job begins; at the others it may be found later.
  Status TakeEndpoints(uint16_t port) {
    bool is_first = true;
    std::vector<std::string> texts = SplitList(options_.Text("rdzv-endpoint"));
    if (texts.empty()) texts.emplace_back();
    for (const std::string& text : texts) {
      Result<HostPort> endpoint = ParseEndpoint(text);
      if (!endpoint.ok()) return About("rdzv-endpoint", endpoint.error());
      KEEL_TRY(RefuseUnknownPort("rdzv-endpoint", endpoint->port.value_or(port), port));
      if (!is_first) {
        endpoint->port = endpoint->port.value_or(IsEtcd() ? port : config_.endpoint_port);
        config_.more_endpoints.push_back(*std::move(endpoint));
        continue;
      }
      config_.endpoint_host = endpoint->host;
      config_.endpoint_port = endpoint->port.value_or(port);
      is_first = false;
    }
    return Ok();
  }

  Status MakeElastic() {
    config_.meeting = LaunchConfig::Meeting::kElastic;
    KEEL_TRY(TakeEndpoints(kElasticPort));
    NoteStaticOptions();
    return Ok();
  }

  bool IsEtcd() const { return config_.meeting == LaunchConfig::Meeting::kEtcd; }
  bool IsStatic() const { return config_.meeting == LaunchConfig::Meeting::kStatic; }

  Status MakeEtcd() {
    config_.meeting = LaunchConfig::Meeting::kEtcd;
    if (SplitList(options_.Text("rdzv-endpoint")).empty()) {
      return Refused("rdzv-endpoint", "--rdzv-backend=etcd needs the members of the etcd cluster: "
                                      "HOST[:PORT][,HOST[:PORT]...]");
    }
    if (options_.Flag("doctor")) {
      return Refused("doctor", "it cannot look at hosts that meet in etcd; check them with "
                               "--rdzv-backend=c10d and one of the hosts as --rdzv-endpoint");
    }
    NoteStaticOptions();
    return TakeEndpoints(kEtcdEndpointPort);
  }

  void NoteStaticOptions() {
    for (const char* name : {"master-addr", "master-port", "node-rank"}) {
      NoteIfGiven(name, "it is for --rdzv-backend=static");
    }
  }

  // Whoever finds that nobody has the job begins it.
  Status MakeByDirectory() {
    config_.meeting = LaunchConfig::Meeting::kElastic;
    config_.meets_by_lease = true;
    config_.is_store_host = false;
    config_.endpoint_host.clear();
    config_.endpoint_port = 0;
    config_.lease_directory = options_.Text("rdzv-endpoint");
    NoteStaticOptions();
    if (config_.hosts.most == 1) {
      return Refused("rdzv-backend", options_.Text("rdzv-backend") +
                                         " is for jobs of several hosts, and --nnodes=" +
                                         options_.Text("nnodes") + " asks for one; use "
                                         "--standalone");
    }
    const bool wants_bucket = options_.Text("rdzv-backend") == "s3";
    const std::string& place = config_.lease_directory;
    if (wants_bucket && !IsBucketPath(place)) {
      return Refused("rdzv-endpoint", "--rdzv-backend=s3 needs s3://BUCKET/PREFIX, which all hosts "
                                      "reach");
    }
    if (!place.empty()) return Ok();
    return Refused("rdzv-endpoint", "--rdzv-backend=dir needs a directory that all hosts share");
  }

  // The directory of the checkpoints is the one place that the hosts of a job share for sure.
  std::string CheckpointDirectory() const {
    return ValueInWords(config_.program.arguments, "--checkpoint-dir");
  }

  Status MakeLease() {
    const std::string& quorum = options_.Text("quorum");
    if (quorum == "strict") config_.quorum = LaunchConfig::Quorum::kStrict;
    if (quorum == "off") config_.quorum = LaunchConfig::Quorum::kOff;
    if (config_.meeting == LaunchConfig::Meeting::kEtcd) {
      for (const char* name : {"lease", "quorum"}) {
        NoteIfGiven(name, "etcd itself says who coordinates");
      }
      return Ok();
    }
    const std::string& lease = options_.Text("lease");
    if (lease.empty()) {
      return Refused("lease", "it is empty; name a directory that all hosts share, auto, or none");
    }
    if (config_.meets_by_lease) {
      NoteIfGiven("lease", "with --rdzv-backend=dir the endpoint is the lease's directory");
      return Ok();
    }
    if (config_.hosts.most == 1) {
      const std::string why = "one host has no others that could go on without it";
      if (lease != "none") NoteIfGiven("lease", why);
      NoteIfGiven("quorum", why);
      return Ok();
    }
    if (lease == "none") return Ok();
    if (lease != "auto") {
      config_.lease_directory = lease;
      return Ok();
    }
    TakeLeaseOfProgram();
    return Ok();
  }

  void TakeLeaseOfProgram() {
    const std::string cure = "; name a directory that all hosts share";
    if (!config_.is_in_place) {
      return NoteIfGiven("lease", "auto needs a compiled program of this library" + cure);
    }
    config_.lease_directory = CheckpointDirectory();
    config_.is_lease_found = !config_.lease_directory.empty();
    if (config_.is_lease_found) return;
    NoteIfGiven("lease", "auto needs --checkpoint-dir on the program's command line" + cure);
  }

  Status MakeLimits() {
    const int64_t restarts = options_.Integer("max-restarts");
    if (restarts < 0) {
      return Refused("max-restarts", std::to_string(restarts) + " must be at least 0");
    }
    if (restarts > kRestartsMax) {
      Note("--max-restarts=" + std::to_string(restarts) + " is taken as " +
           std::to_string(kRestartsMax));
    }
    config_.restarts_max = static_cast<int>(std::min(restarts, kRestartsMax));
    config_.restart_window = options_.Time("restart-window");
    config_.forgiven = options_.Flag("forgive");
    config_.shun_after = static_cast<int>(options_.Integer("shun-after"));
    config_.shutdown_limit = options_.Time("shutdown-timeout");
    config_.park_limit = options_.Time("park-limit");
    config_.start_limit = options_.Time("start-limit");
    config_.store_limit = options_.Time("store-limit");
    KEEL_TRY(MakeHealth());
    config_.allow_inexact = options_.Flag("allow-inexact");
    KEEL_TRY(MakeHangLimit());
    const Result<KeyValues> pairs = ParseKeyValues(options_.Text("rdzv-conf"));
    if (!pairs.ok()) return About("rdzv-conf", pairs.error());
    for (const auto& [key, value] : *pairs) {
      const Status taken = TakeMeetingValue(key, value);
      if (!taken.ok()) return About("rdzv-conf", taken.error());
    }
    if (IsEtcd()) {
      const Status complete = CompleteEtcd(environment_, config_.etcd);
      if (!complete.ok()) return About("rdzv-conf", complete.error());
    }
    if (config_.beat_interval <= kLongestWait / config_.beats_missed_max) return Ok();
    return Refused("rdzv-conf",
                   "keep_alive_interval times keep_alive_max_attempt must be at most " +
                       DurationText(kLongestWait));
  }

  Status MakeHealth() {
    config_.health_command = options_.Text("health-check");
    config_.health_limit = options_.Time("health-limit");
    if (config_.health_command.empty()) {
      NoteIfGiven("health-limit", "--health-check is not given");
      return Ok();
    }
    // A worker that waits for checks counts as one that has been started, and may wait for the rest
    // of one and for another one.
    if (config_.health_limit < config_.start_limit / 2) return Ok();
    return Refused("health-limit", DurationText(config_.health_limit) +
                                       " must be less than half of --start-limit, which is " +
                                       DurationText(config_.start_limit));
  }

  Status MakeHangLimit() {
    const std::string& text = options_.Text("hang-limit");
    if (text == "auto") return Ok();
    config_.hangs = text == "off" ? LaunchConfig::Hangs::kOff : LaunchConfig::Hangs::kGiven;
    if (text == "off") return Ok();
    const Result<Duration> limit = ParseWait("hang-limit", text);
    if (!limit.ok()) {
      return Refused("hang-limit", Shown(text) +
                                       " must be auto, off, or a time such as 90s, at most " +
                                       DurationText(kLongestWait));
    }
    config_.hang_limit = *limit;
    if (*limit < kHangLook) {
      Note("--hang-limit=" + text + " is less than " + DurationText(kHangLook) +
           ", after which the launchers look first");
    }
    return Ok();
  }

  static Status TakeTime(const std::string& key, const std::string& value, Duration& limit) {
    KEEL_TRY_ASSIGN(limit, ParseWait(key, value));
    return Ok();
  }

  Status TakeMeetingValue(const std::string& key, const std::string& value) {
    if (key == "join_timeout") {
      config_.is_join_limit_given = true;
      return TakeTime(key, value, config_.join_limit);
    }
    if (key == "last_call_timeout") return TakeTime(key, value, config_.last_call_limit);
    if (key == "keep_alive_interval") return TakeTime(key, value, config_.beat_interval);
    if (key == "keep_alive_max_attempt") {
      const Result<int64_t> count = ParseInteger(value);
      if (!count.ok() || *count < 1 || *count > 1'000'000) {
        return Error{Code::kInvalid, key + "=" + Shown(value) +
                                         " must be a whole number from 1 to 1000000"};
      }
      config_.beats_missed_max = static_cast<int>(*count);
      return Ok();
    }
    const auto& of_etcd = EtcdKeysOfConf();
    if (IsEtcd() && std::find(of_etcd.begin(), of_etcd.end(), key) != of_etcd.end()) {
      return TakeEtcdValue(key, value, config_.etcd);
    }
    const bool is_c10d = !IsEtcd() && !IsStatic();
    if (key == "is_host" && is_c10d) {
      KEEL_TRY_ASSIGN(config_.is_store_host, TorchBool(key, value));
      return Ok();
    }
    if (key == (IsStatic() ? "timeout" : "read_timeout")) {
      Duration limit{};
      KEEL_TRY(TakeTime(key, value, limit));
      config_.read_limit = limit;
      return Ok();
    }
    const std::string kind(Trim(value));
    const bool is_tcp = strcasecmp(kind.c_str(), "tcp") == 0;
    // A file in which a host alone meets itself makes no difference.
    const bool is_alone = config_.meeting == LaunchConfig::Meeting::kStandalone;
    const bool is_idle = is_alone && strcasecmp(kind.c_str(), "file") == 0;
    if (key == "store_type" && is_c10d && !is_tcp && !is_idle) {
      return Error{Code::kInvalid, key + "=" + Shown(value) +
                                       " is not possible: use --rdzv-backend=dir for hosts that "
                                       "meet in a directory"};
    }
    return TakeIdleValue(key);
  }

  // The words that torchrun takes for a choice of its backends.
  static Result<bool> TorchBool(const std::string& key, const std::string& value) {
    if (value == "t" || value == "T" || value == "y" || value == "Y") return true;
    if (value == "f" || value == "F" || value == "n" || value == "N") return false;
    const Result<bool> parsed = ParseBool(value);
    return parsed.ok() ? parsed : parsed.error().Doing(key);
  }

  Status TakeIdleValue(const std::string& key) {
    static const std::vector<std::string> used = {"join_timeout", "last_call_timeout",
                                                  "keep_alive_interval", "keep_alive_max_attempt",
                                                  "read_timeout", "is_host"};
    static const std::vector<std::string> idle = {"close_timeout", "heartbeat_timeout", "timeout",
                                                  "rank", "store_type", "use_libuv",
                                                  "cas_backoff_max_seconds"};
    const auto& of_etcd = EtcdKeysOfConf();
    const bool is_idle = std::count(idle.begin(), idle.end(), key) > 0 ||
                         key == "is_host" || key == "read_timeout" ||
                         std::count(of_etcd.begin(), of_etcd.end(), key) > 0;
    if (is_idle) {
      Note("--rdzv-conf: " + key + " has no effect here");
      return Ok();
    }
    std::vector<std::string> known = used;
    known.insert(known.end(), idle.begin(), idle.end());
    std::string names;
    for (const std::string& name : used) names += (names.empty() ? "" : ", ") + name;
    Note("--rdzv-conf: unknown key " + Shown(key) + " has no effect" + DidYouMean(key, known) +
         "; those that have one are " + names);
    return Ok();
  }

  Status MakeNotices() {
    const std::string& notice = options_.Text("notice");
    const std::string& url = options_.Text("notice-url");
    const bool by_itself = notice == "auto";
    config_.notices.lead = options_.Time("notice-lead");
    if (!url.empty()) {
      const Result<HttpBase> base = ParseBaseUrl(url);
      if (!base.ok()) return About("notice-url", base.error());
      config_.notice_base = *base;
    }
    std::vector<Cloud>& clouds = config_.notices.clouds;
    for (const Cloud cloud : {Cloud::kAws, Cloud::kGcp, Cloud::kAzure}) {
      const bool is_named = notice == CloudWord(cloud);
      // Without being named, only the cloud that this machine says it belongs to is asked.
      const bool may_be = by_itself && (facts_.cloud ? facts_.cloud == cloud : !url.empty());
      if (is_named || may_be) clouds.push_back(cloud);
    }
    config_.notices.insists = !by_itself && !clouds.empty();
    config_.notices.is_sure = by_itself && facts_.cloud.has_value();
    if (clouds.empty()) NoteIfGiven("notice-url", "--notice=" + notice + " asks no service");
    if (notice == "slurm" || (by_itself && environment_.count("SLURM_JOB_ID") > 0)) TakeSlurmEnd();
    return Ok();
  }

  void TakeSlurmEnd() {
    const auto end = environment_.find("SLURM_JOB_END_TIME");
    const Result<int64_t> seconds =
        end == environment_.end() ? Error{Code::kNotFound, "none"} : ParseInteger(end->second);
    if (seconds.ok() && *seconds > 0 && *seconds < kUnixSecondsMax) {
      config_.notices.known_end = *seconds * 1'000'000'000;
      config_.notices.known_end_text = "Slurm's time limit";
    } else if (options_.Text("notice") == "slurm") {
      Note("--notice=slurm: SLURM_JOB_END_TIME does not say when the job ends; only a signal will "
           "(sbatch --signal=B:USR1@120)");
    }
  }

  Status MakeStatus() {
    const std::string& token = options_.Text("status-token");
    if (options_.Text("status").empty()) {
      NoteIfGiven("status-token", "--status is not given");
      return Ok();
    }
    Result<StatusAddress> where = ParseStatusAddress(options_.Text("status"));
    if (!where.ok()) return About("status", where.error());
    if (token.empty() && !IsLoopback(where->address)) {
      return Refused("status", Shown(where->address) +
                                   " can be reached from other machines: set a secret by "
                                   "--status-token (or KEELRUN_STATUS_TOKEN), or use 127.0.0.1 "
                                   "and a tunnel (ssh -L)");
    }
    if (!token.empty()) {
      const Status is_good = CheckStatusToken(token);
      if (!is_good.ok()) return About("status-token", is_good.error());
    }
    where->token = token;
    config_.status = *std::move(where);
    return Ok();
  }

  // Torchrun's own hook for probes ignores what is no port, too.
  void MakeAlivePort() {
    const auto given = environment_.find("TORCHELASTIC_HEALTH_CHECK_PORT");
    if (given == environment_.end() || config_.doctor) return;
    const Result<int64_t> port = ParseInteger(Trim(given->second));
    if (port.ok() && *port >= 0 && *port <= 65535) {
      config_.alive_port = static_cast<uint16_t>(*port);
      return;
    }
    Note("TORCHELASTIC_HEALTH_CHECK_PORT=" + Shown(given->second) +
         " has no effect: it must be a port, from 0 (any) to 65535");
  }

  Status MakeDoctor() {
    if (!options_.Flag("doctor")) {
      for (const char* name : {"doctor-dir", "doctor-limit"}) {
        NoteIfGiven(name, "--doctor is not given");
      }
      return Ok();
    }
    config_.doctor = {options_.Text("doctor-dir"), options_.Time("doctor-limit")};
    return Ok();
  }

  Status MakeProgram() {
    ProgramOptions chosen;
    chosen.module = options_.Flag("module");
    chosen.no_python = options_.Flag("no-python");
    chosen.run_path = options_.Flag("run-path");
    chosen.is_compiled = facts_.is_compiled;
    chosen.python = facts_.python;
    config_.is_in_place = facts_.is_in_place;
    config_.is_of_package = facts_.is_of_package;
    // The doctor needs no program to look at the hosts.
    if (!config_.doctor || !options_.positionals().empty()) {
      KEEL_TRY_ASSIGN(config_.program, ChooseProgram(chosen, options_.positionals()));
    }
    config_.numeric_names = options_.Flag("numeric-names");
    if (config_.numeric_names) {
      config_.numeric_names_library = facts_.numeric_names;
      if (facts_.numeric_names.empty()) {
        Note("libkeel_numeric_names.so is not beside keelrun: workers will ask the name service "
             "for every peer's name, which can stall them; install it, or say --no-numeric-names");
      }
    }
    config_.spares = static_cast<int>(options_.Integer("spares"));
    config_.signals_text = options_.Text("signals-to-handle");
    Result<HandledSignals> signals = ParseSignals(config_.signals_text);
    if (!signals.ok()) return About("signals-to-handle", signals.error());
    config_.signals = std::move(signals->numbers);
    for (const std::string& why : signals->ignored) Note("--signals-to-handle: " + why);
    return Ok();
  }

  Status MakeLogs() {
    const std::string& specs = options_.Text("logs-specs");
    if (!specs.empty() && specs != "default") {
      return Refused("logs-specs", Shown(specs) + " is unknown: Python's entry points cannot be "
                                       "loaded here; leave it out, and see --tee and --redirects");
    }
    LogOptions& logs = config_.logs;
    logs.prefix_template = options_.Text("log-line-prefix-template");
    logs.host = facts_.name;
    logs.log_dir = options_.Text("log-dir");
    logs.temporary_dir = facts_.temporary_dir;
    logs.run_id = config_.run_id;
    logs.role = config_.role;
    Result<StreamMap> redirects = ParseStreamMap(options_.Text("redirects"));
    if (!redirects.ok()) return About("redirects", redirects.error());
    logs.redirects = *std::move(redirects);
    Result<StreamMap> tee = ParseStreamMap(options_.Text("tee"));
    if (!tee.ok()) return About("tee", tee.error());
    logs.tee = *std::move(tee);
    logs.out_filters = ParseFilters(options_.Text("duplicate-stdout-filters"));
    logs.err_filters = ParseFilters(options_.Text("duplicate-stderr-filters"));
    KEEL_TRY_ASSIGN(config_.log_format, ParseLogFormat(options_.Text("log-format")));
    KEEL_TRY_ASSIGN(config_.log_level, ParseLogLevel(options_.Text("log-level")));
    if (options_.Text("local-ranks-filter").empty()) return Ok();
    Result<std::set<int>> shown = ParseLocalRanks(options_.Text("local-ranks-filter"));
    if (!shown.ok()) return About("local-ranks-filter", shown.error());
    if (*shown->begin() >= config_.workers_per_host) {
      Note("--local-ranks-filter=" + options_.Text("local-ranks-filter") +
           " shows no worker on the console: the local ranks here are 0 to " +
           std::to_string(config_.workers_per_host - 1));
    }
    logs.shown_ranks = *std::move(shown);
    return Ok();
  }

  void NoteIdleOptions() {
    NoteIfGiven("monitor-interval", "the end of a worker is seen at once");
    NoteIfGiven("start-method", "workers are programs of their own, never forks of Python");
    NoteIfGiven("event-log-handler", "events are in the launcher's log (see --log-format json)");
    NoteIfGiven("numa-binding", "start the program with numactl to bind it");
    if (environment_.count("TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT") > 0) {
      Note("TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT has no effect: hosts that finish early wait for "
           "the others as long as those run");
    }
    if (environment_.count("TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT") > 0) {
      Note("TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT has no effect: how long a worker "
           "waits in the kernel is not watched");
    }
  }

  // As torchrun says it, word for word: people look for it.
  void NoteThreads() {
    if (environment_.count("OMP_NUM_THREADS") > 0 || config_.workers_per_host < 2) return;
    if (config_.is_in_place || config_.doctor) return;   // the trainer chooses its own threads
    Note("Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to "
         "avoid your system being overloaded, please further tune the variable for optimal "
         "performance in your application as needed.");
  }

  const Options& options_;
  const Environment& environment_;
  const HostFacts& facts_;
  LaunchConfig config_;
};

}  // namespace

Result<LaunchConfig> ConfigFrom(const Options& options, const Environment& environment,
                                const HostFacts& facts) {
  return ConfigMaker(options, environment, facts).Make();
}

}  // namespace keel
