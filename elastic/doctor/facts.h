// DoctorFacts: what one host knows of itself that decides whether a job of several hosts will work.
// Promises   each question ends within its limit, and what could not be found out says why.
//            BriefFacts() asks nobody: the kernel and small local files only, so that a job may
//            look at itself before it starts without being slower for it.
// Does not   judge (elastic/doctor/findings.h), or talk to other hosts (elastic/doctor/doctor.h).
// Threads    any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/files.h"
#include "elastic/launch/config.h"

namespace keel {

struct HostInterface {
  std::string name;
  std::string address;
  bool operator==(const HostInterface&) const = default;
};

// Of a file system; a total of 0: it could not be asked.
struct DiskSpace {
  uint64_t total = 0;
  uint64_t free = 0;
  bool operator==(const DiskSpace&) const = default;
};

struct DoctorFacts {
  // Who it is, and what it was told.
  std::string host;               // its own name
  std::string address;            // numeric, as others reach it
  int64_t port = 0;               // where its doctor listens; 0: nowhere
  std::string machine;            // equal where two launchers share a kernel and its network
  int64_t node_rank = -1;         // -1: hosts are not numbered
  int64_t hosts_least = 1;
  int64_t hosts_most = 1;
  int64_t workers = 1;

  // How it is seen by itself.
  std::vector<HostInterface> interfaces = {};
  std::string hosts_file_number = {};   // its own name's in /etc/hosts; empty: it is not there
  std::string name_number = {};         // its own name's, looked up
  std::string name_trouble = {};
  std::string address_name = {};        // of `address`, looked up the other way
  std::string address_trouble = {};
  bool address_silent = false;          // that look-up took longer than its limit

  // What it has.
  int64_t files_limit = 0;        // 0: unknown
  int64_t files_wanted = 0;
  DiskSpace shared_memory = {};   // /dev/shm
  std::string directory = {};     // to be shared; empty: none was named
  std::string directory_trouble = {};
  DiskSpace directory_space = {};
  std::string log_directory = {};
  DiskSpace log_space = {};
  std::vector<std::string> gpus = {};   // their models; "" where the driver does not tell
  std::string driver = {};
  std::string kernels = {};       // AVX512, AVX2 or DEFAULT, as LibTorch chooses; empty: unknown
  std::string environment = {};   // variables of NCCL, Gloo and CUDA: a line each

  // What runs there.
  std::string version = {};
  int64_t protocol = 0;
  std::string torch = {};         // empty: not loaded
  std::string store_trouble = {}; // why jobs have no store here
  int64_t store_nanos = 0;        // one question to it and its answer
  std::string program = {};       // empty: none was named
  std::string program_digest = {};
  std::string program_trouble = {};
};

// What `keelrun` itself looks at before a job of several hosts.
DoctorFacts BriefFacts(const LaunchConfig& config, const Environment& environment,
                       const std::string& own_name, const std::string& own_address);

// The rest of it, but for what needs a store, another host, or the shared directory.
void AddSlowFacts(DoctorFacts& facts, const LaunchConfig& config, const Environment& environment,
                  Files& files);

// Asks the file system, which may hang.
DiskSpace SpaceOf(const std::string& path);

// Which LibTorch this process has loaded: its version, or its size; empty: none.
std::string LoadedTorch();

// NAME=value of `environment`, "" where it has none.
std::string VariableIn(std::string_view environment, std::string_view name);

// From texts of the system: pure.
// What a hosts file has for `name`: the number that comes first.
std::string NumberInHostsFile(std::string_view text, std::string_view name);
// Of /proc/driver/nvidia/version.
std::string DriverVersion(std::string_view text);
// Of /proc/cpuinfo.
std::string KernelsOf(std::string_view cpuinfo);
// Those that NCCL, Gloo and CUDA read, a line each.
std::string RelevantVariables(const Environment& environment);

}  // namespace keel
