// DoctorFacts: what one host knows about itself that decides whether a job of several hosts will
// work.
// Promises   each question ends within its limit, and an answer that could not be had says why.
//            BriefFacts() reads only the kernel and small local files, so a job can examine itself
//            before it starts without being slower for it.
// Does not   judge (elastic/doctor/findings.h), or talk to other hosts (elastic/doctor/doctor.h).
// Threads    any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/files.h"
#include "base/random.h"
#include "elastic/launch/config.h"

namespace keel {

// So long a file system is waited for.
inline constexpr Duration kDiskLimit = std::chrono::seconds(5);

struct HostInterface {
  std::string name;
  std::string address;
  bool operator==(const HostInterface&) const = default;
};

// The space of a file system; a total of 0: it could not be asked.
struct DiskSpace {
  uint64_t total = 0;
  uint64_t free = 0;
  bool operator==(const DiskSpace&) const = default;
};

// A place in a bucket, as this host finds it.
struct BucketFacts {
  std::string place = {};
  std::string trouble = {};          // why nothing can be saved there
  int64_t clock_ahead_ns = 0;        // the store's clock, which tells whole seconds, minus ours
  std::string other_region = {};     // as in BucketRules, and so are the next
  std::optional<bool> ends_unfinished = {};
  std::optional<bool> keeps_versions = {};
  bool operator==(const BucketFacts&) const = default;
};

struct DoctorFacts {
  // Which host it is, and what it was told.
  std::string host;               // its own name
  std::string address;            // numeric, as others reach it
  int64_t port = 0;               // where its doctor listens; 0: nowhere
  int64_t last_port = 0;          // ... as well: at the other end of --port-range; 0: nowhere
  std::string machine;            // equal if two launchers share a kernel and its network
  int64_t node_rank = -1;         // -1: hosts are not numbered
  int64_t hosts_least = 1;
  int64_t hosts_most = 1;
  int64_t workers = 1;

  // How it sees itself.
  std::vector<HostInterface> interfaces = {};
  std::string hosts_file_number = {};   // that of its own name in /etc/hosts; empty: it has none
  std::string name_number = {};         // that of its own name by look-up
  std::string name_trouble = {};
  std::string address_name = {};        // the name that a reverse look-up of `address` gives
  std::string address_trouble = {};
  bool address_silent = false;          // that reverse look-up exceeded its limit

  // What it has.
  int64_t files_limit = 0;        // 0: unknown
  int64_t files_wanted = 0;
  DiskSpace shared_memory = {};   // /dev/shm
  std::string directory = {};     // to be shared; empty: none was named
  std::string directory_trouble = {};
  DiskSpace directory_space = {};
  std::string lease = {};         // the directory of the job's lease; empty: it has none
  bool is_lease_found = false;    // nobody named it: if it is of no use, the job has no lease
  std::string lease_trouble = {};
  std::vector<BucketFacts> buckets = {};   // in which the job saves, or has its lease
  std::string log_directory = {};
  DiskSpace log_space = {};
  std::vector<std::string> gpus = {};   // their models; "" if the driver does not tell
  std::string driver = {};
  std::string kernels = {};       // AVX512, AVX2 or DEFAULT, as LibTorch chooses; empty: unknown
  std::string environment = {};   // variables of NCCL, Gloo and CUDA, one per line

  // What runs there.
  std::string version = {};
  int64_t protocol = 0;
  std::string torch = {};         // empty: not loaded
  std::string store_trouble = {}; // why jobs have no store here
  int64_t store_nanos = 0;        // for one question to the store and its answer
  std::string program = {};       // empty: none was named
  std::string program_digest = {};
  std::string program_trouble = {};

  // What keeps a job from starting; doctors of earlier versions do not tell it.
  bool is_lease_missing = false;       // the directory of a found lease: the job will make it
  std::string log_trouble = {};        // why no logs can be kept in `log_directory`
  std::string status = {};             // where the status page is to be; empty: nowhere
  std::string status_trouble = {};
  bool has_health_check = false;
  std::string health_trouble = {};     // what it says of this host; empty: the host is fit
};

// The facts that `keelrun` itself checks before a job of several hosts.
DoctorFacts BriefFacts(const LaunchConfig& config, const Environment& environment,
                       const std::string& own_name, const std::string& own_address);

// Adds the rest, except what needs a store, another host, or the shared directory.
// `files` must outlive a call that hangs.
void AddSlowFacts(DoctorFacts& facts, const LaunchConfig& config, const Environment& environment,
                  Files& files, Random random);

// Asks the file system, which may hang.
DiskSpace SpaceOf(const std::string& path);

// Of a file system that has not answered for so long.
Error DiskSilent(Duration limit);

// The space for logs where the job will keep them, or in the nearest folder above that is there: a
// folder is made in it, and removed. The error is why no logs can be kept.
Result<DiskSpace> TryLogFolder(Files& files, const LogOptions& logs, Random random,
                               Duration limit);

// The LibTorch that this process has loaded: its version, or its size; empty: none.
std::string LoadedTorch(Files& files);

// The value of a NAME=value line in `environment`; "" if there is none.
std::string VariableIn(std::string_view environment, std::string_view name);

// From texts of the system: pure.
// The number that a hosts file gives for `name`: the first one.
std::string NumberInHostsFile(std::string_view text, std::string_view name);
// From the text of /proc/driver/nvidia/version.
std::string DriverVersion(std::string_view text);
// From the text of /proc/cpuinfo.
std::string KernelsOf(std::string_view cpuinfo);
// Those that NCCL, Gloo and CUDA read, one per line.
std::string RelevantVariables(const Environment& environment);

}  // namespace keel
