// One function for each part.
#include "elastic/launch/policies.h"

#include "elastic/launch/lease.h"
#include "elastic/protocol/limits.h"
#include "elastic/status/http_server.h"

namespace keel {
namespace {

constexpr Duration kQuietMost = std::chrono::hours(24);

// The event loops, the board, the store, and a few that are open for a moment (/proc, a script).
constexpr uint64_t kFilesOfLauncher = 40;
// The link, its two watches, two pipes for output, and the log files for those.
constexpr uint64_t kFilesOfWorker = 7;
// A page's event loop, its listener and its connections.
constexpr uint64_t kFilesOfStatus = kHttpConnectionsMax + 8;
// At the host of the store: the connections of each worker, and of each launcher, of the job.
constexpr uint64_t kConnectionsOfWorker = 1;
constexpr uint64_t kConnectionsOfHost = 4;

// For enough hosts to come. Fixed hosts have one word for that and for the store to answer.
Duration HostsLimitFrom(const LaunchConfig& config) {
  const bool is_fixed = config.meeting == LaunchConfig::Meeting::kStatic;
  if (!is_fixed || config.is_join_limit_given) return config.join_limit;
  return config.read_limit.value_or(config.join_limit);
}

RestartPolicy RestartsFrom(const LaunchConfig& config) {
  return {config.restarts_max, config.restart_window};
}

// A supervisor that stands still has lost the store as surely as one that cannot reach it.
Duration QuietLimitFrom(const LaunchConfig& config) {
  return std::clamp(config.store_limit, kQuietLimitMin, kQuietMost);
}

std::optional<Duration> HangLimitFrom(const LaunchConfig& config) {
  switch (config.hangs) {
    case LaunchConfig::Hangs::kAuto: return std::nullopt;
    case LaunchConfig::Hangs::kGiven: return config.hang_limit;
    case LaunchConfig::Hangs::kOff: return kLongestWait;
  }
  return std::nullopt;
}

}  // namespace

HostConfig HostConfigFrom(const LaunchConfig& config, const Meeting& meeting,
                          const std::string& incarnation) {
  HostConfig host;
  host.incarnation = incarnation;
  host.host = meeting.own_name;
  host.address = meeting.own_address;
  host.machine = meeting.own_machine;
  host.seats = config.workers_per_host;
  if (config.meeting == LaunchConfig::Meeting::kStatic) host.order = config.node_rank;
  host.role = config.role;
  host.forgiven = config.forgiven;
  if (!config.health_command.empty()) host.health = kHealthGood;   // or it would not come
  host.program_says_hello = config.is_in_place || config.is_of_package;
  host.restarts = RestartsFrom(config);
  const bool keeps_store = meeting.server != nullptr;   // it has nobody to wait for
  host.join_limit = keeps_store ? config.join_limit : config.read_limit.value_or(config.join_limit);
  host.store_limit = config.store_limit;
  host.quiet_limit = QuietLimitFrom(config);
  host.park_limit = config.park_limit;
  host.start_limit = config.start_limit;
  host.shutdown_limit = config.shutdown_limit;
  host.save_limit = config.shutdown_limit;
  return host;
}

BoardClientConfig MemberConfigFrom(const LaunchConfig& config) {
  BoardClientConfig member;
  member.job = config.run_id;
  member.beat_interval = config.beat_interval;
  member.poll_interval = std::min(member.poll_interval, config.beat_interval);
  return member;
}

HealthPlan HealthPlanFrom(const LaunchConfig& config, const Environment& environment) {
  return {config.health_command, config.health_limit,
          With(environment, {{"LOCAL_WORLD_SIZE", std::to_string(config.workers_per_host)}})};
}

WorkerPlan WorkerPlanFrom(const LaunchConfig& config) {
  WorkerPlan plan;
  plan.run_id = config.run_id;
  plan.workers = config.workers_per_host;
  plan.role = config.role;
  plan.program = config.program;
  plan.logs = config.logs;
  plan.restarts_max = config.restarts_max;
  plan.signals_text = config.signals_text;
  plan.virtual_local_rank = config.virtual_local_rank;
  plan.numeric_names_library = config.numeric_names_library;
  plan.spares = std::min(config.spares, config.workers_per_host);
  plan.lease_folder = LeaseFolderOf(config);   // nobody can tell which scripts will save by it
  return plan;
}

JobPolicy JobPolicyFrom(const LaunchConfig& config) {
  JobPolicy policy;
  policy.hosts_min = config.hosts.least;
  policy.hosts_max = config.hosts.most;
  if (config.meeting == LaunchConfig::Meeting::kStandalone) policy.hosts_max = 1;
  policy.join_limit = HostsLimitFrom(config);
  policy.last_call_limit = config.last_call_limit;
  policy.beat_limit = config.beat_interval * config.beats_missed_max;
  policy.park_limit = config.park_limit;
  policy.stop_grace = config.shutdown_limit + policy.beat_limit;
  // By then a host that lost the store has given up and stopped its workers, and the workers of a
  // launcher that stands still have parked.
  policy.fence_limit = std::max(config.store_limit, QuietLimitFrom(config)) +
                       config.shutdown_limit + config.park_limit;
  policy.hang_limit = HangLimitFrom(config);
  policy.restarts = RestartsFrom(config);
  policy.shun_after = config.shun_after;
  policy.program_says_hello = config.is_in_place || config.is_of_package;
  policy.allow_inexact = config.allow_inexact;
  policy.quorum_limit = config.store_limit;
  // In etcd a claim is one host's alone, and its board takes nothing from any other one.
  policy.needs_quorum = config.quorum != LaunchConfig::Quorum::kOff &&
                        config.meeting != LaunchConfig::Meeting::kEtcd;
  policy.believes_refusals = config.quorum != LaunchConfig::Quorum::kStrict;
  return policy;
}

bool IsAlone(const LaunchConfig& config) {
  if (config.meeting == LaunchConfig::Meeting::kStandalone) return true;
  return config.meeting == LaunchConfig::Meeting::kStatic && config.hosts.most == 1;
}

std::optional<WorkersPlace> WorkersMeet(const LaunchConfig& config, const Meeting& meeting) {
  if (config.meeting != LaunchConfig::Meeting::kStatic) return std::nullopt;
  // Some containers do not know their own name, and neither would the workers.
  return WorkersPlace{meeting.is_name_known ? config.endpoint_host : meeting.own_address,
                      meeting.port, meeting.store_bind};
}

bool MayOpenBeside(const LaunchConfig& config) {
  return config.meeting == LaunchConfig::Meeting::kElastic && config.is_store_host.value_or(true);
}

uint64_t OpenFilesWanted(const LaunchConfig& config) {
  const auto workers = static_cast<uint64_t>(config.workers_per_host);
  const auto hosts = static_cast<uint64_t>(config.hosts.least);
  const uint64_t here = kFilesOfLauncher + workers * kFilesOfWorker;
  // It shows only later whether the endpoint's address is ours; unless told, assume that it is
  // another host's.
  using Meeting = LaunchConfig::Meeting;
  const bool is_first = config.meeting == Meeting::kStandalone ||
                        (config.meeting == Meeting::kStatic && config.node_rank == 0);
  const bool hosts_store = config.is_store_host.value_or(is_first);
  const uint64_t connections = hosts * (workers * kConnectionsOfWorker + kConnectionsOfHost);
  return here + (hosts_store ? connections : 0) + (config.status ? kFilesOfStatus : 0) +
         (config.alive_port ? kFilesOfStatus : 0);
}

}  // namespace keel
