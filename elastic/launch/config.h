// LaunchConfig: what a launcher was told to do, in the words of this project, with nothing left to
// parse. It is made by ConfigFrom() (elastic/launch/options.h), or by hand in tests.
// Threads    a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "elastic/launch/values.h"
#include "elastic/notice/http_base.h"
#include "elastic/notice/watch.h"
#include "elastic/protocol/limits.h"
#include "elastic/status/address.h"
#include "elastic/workers/logs.h"
#include "elastic/workers/program.h"
#include "store/host_port.h"
#include "store/port_range.h"

namespace keel {

inline constexpr int64_t kSparesMax = 64;
inline constexpr int64_t kShunAfterMax = 1'000'000;

struct LaunchConfig {
  // Who: the job, its hosts, its workers.
  std::string run_id = "none";
  HostRange hosts;
  int workers_per_host = 1;
  std::string role = "default";

  // Where they meet.
  enum class Meeting {
    kStandalone,    // this host alone, on a port of its own choice
    kStatic,        // MAX hosts with given numbers; number 0 hosts the store
    kElastic,       // MIN to MAX hosts that come and go
    kEtcd,          // the same, in an etcd cluster whose members the endpoints are
  };
  Meeting meeting = Meeting::kStatic;
  std::string endpoint_host = "127.0.0.1";
  uint16_t endpoint_port = 29500;
  std::vector<HostPort> more_endpoints;  // other hosts of the job, where it may be found as well
  std::optional<bool> is_store_host;     // empty: the owner of the endpoint's address is
  // How that cluster is reached.
  struct Etcd {
    bool is_tls = false;
    std::string ca_file;                 // empty: the authorities that the system trusts
    std::string cert_file;               // empty: this host shows no certificate
    std::string key_file;
    std::string user;                    // empty: the cluster has no users
    std::string password;
  };
  Etcd etcd;
  std::string token_file;                // with the job's secret; empty: it is in the environment
  int node_rank = 0;                     // for kStatic
  std::string local_address;             // empty: it is found out
  PortRange ports;                       // among which each port is chosen that nobody gives
  std::string lease_directory;           // empty: the job has no lease
  bool is_lease_found = false;           // by ourselves: if it is of no use, there is none
  bool meets_by_lease = false;           // there is no endpoint: the lease says where the job is

  // What runs.
  WorkerProgram program;
  bool is_in_place = false;              // its workers will say hello (PROTOCOL.md section 1)
  bool is_of_package = false;            // as is_in_place, of a script in Python
  LogOptions logs;
  bool virtual_local_rank = false;
  bool numeric_names = true;
  std::string numeric_names_library;     // empty: missing, or not wanted

  // What happens when it ends.
  int restarts_max = 0;
  int spares = 1;                        // as asked for; workers of other programs have none
  Duration restart_window = kRestartWindow;   // 0: all deaths count
  int shun_after = kShunAfter;                // deaths of one host's workers; 0: never
  bool forgiven = false;                      // this host comes although it was left out
  std::string health_command;                 // says whether this machine is fit; empty: it is
  Duration health_limit = kHealthLimit;
  std::vector<int> signals;              // that stop the job
  std::string signals_text;              // as workers are told
  bool allow_inexact = false;

  enum class Quorum { kOn, kStrict, kOff };
  Quorum quorum = Quorum::kOn;           // for each epoch (elastic/decisions/quorum.h)

  // How long each thing may take (elastic/PROTOCOL.md section 11).
  Duration join_limit = kJoinLimit;
  bool is_join_limit_given = false;
  std::optional<Duration> read_limit;    // for the store to answer at first; empty: join_limit
  Duration last_call_limit = kLastCallLimit;
  Duration beat_interval = kBeatInterval;
  int beats_missed_max = kBeatsMissedMax;
  Duration park_limit = kParkLimit;
  Duration shutdown_limit = kShutdownLimit;
  Duration start_limit = kStartLimit;
  Duration store_limit = kStoreLimit;
  enum class Hangs { kAuto, kGiven, kOff };
  Hangs hangs = Hangs::kAuto;
  Duration hang_limit{0};                // for kGiven

  // Who announces the end of this machine; nobody unless ConfigFrom() says so.
  NoticePlan notices;
  HttpBase notice_base;

  // Where the job can be watched; empty: nowhere.
  std::optional<StatusAddress> status;
  std::optional<uint16_t> alive_port;    // where probes ask whether this launcher is alive

  // Instead of running a job: checks whether one would work (elastic/doctor/doctor.h).
  struct Doctor {
    std::string directory;               // that all hosts should share; empty: none
    Duration limit = kDoctorLimit;       // for the other hosts to come
  };
  std::optional<Doctor> doctor;

  // How it logs.
  LogFormat log_format = LogFormat::kText;
  LogLevel log_level = LogLevel::kInfo;
  // One for each option given that has no effect here, or a different one than in torchrun.
  std::vector<std::string> notes;
};

}  // namespace keel
