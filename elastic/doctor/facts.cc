// Takes each fact from where the kernel, the name service or a file tells it.
#include "elastic/doctor/facts.h"

#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/digest.h"
#include "base/file_helpers.h"
#include "base/process_setup.h"
#include "base/text.h"
#include "base/version.h"
#include "base/within.h"
#include "elastic/launch/find_torch.h"
#include "elastic/launch/host_facts.h"
#include "store/bucket_files.h"
#include "elastic/launch/policies.h"
#include "elastic/process/proc_file.h"
#include "elastic/process/program_path.h"
#include "elastic/protocol/records.h"
#include "elastic/workers/logs.h"
#include "store/own_address.h"
#include "store/resolve.h"

namespace keel {
namespace {

constexpr Duration kLookUpLimit = std::chrono::seconds(3);
constexpr uint64_t kProgramBytesMax = uint64_t{256} << 20;

std::vector<std::string> LinesOf(std::string_view text) { return SplitList(text, '\n'); }

std::vector<std::string> WordsOf(std::string_view line) {
  std::string text(line);
  std::replace(text.begin(), text.end(), '\t', ' ');
  return SplitList(text, ' ');
}

std::vector<HostInterface> Interfaces() {
  std::vector<HostInterface> found;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return found;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    std::string address = NumericAddress(one->ifa_addr);
    if (!address.empty()) found.push_back({one->ifa_name, std::move(address)});
  }
  freeifaddrs(all);
  return found;
}

// Two launchers in one container are on one machine; two containers on one kernel are not.
std::string MachineId() {
  std::array<char, 64> network{};
  const ssize_t size = readlink("/proc/self/ns/net", network.data(), network.size() - 1);
  const std::string boot(Trim(ReadProcFile("/proc/sys/kernel/random/boot_id").value_or("")));
  return boot + "/" + std::string(network.data(), size > 0 ? static_cast<size_t>(size) : 0);
}

std::vector<std::string> NamesIn(const std::string& folder) {
  struct CloseDirectory {
    void operator()(DIR* directory) const { closedir(directory); }
  };
  std::vector<std::string> names;
  const std::unique_ptr<DIR, CloseDirectory> directory(opendir(folder.c_str()));
  while (const dirent* entry = directory ? readdir(directory.get()) : nullptr) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// "Model:   NVIDIA H200"
std::string ModelIn(const std::string& information) {
  for (const std::string& line : LinesOf(information)) {
    if (line.starts_with("Model:")) return std::string(Trim(std::string_view(line).substr(6)));
  }
  return "";
}

// In a container the driver's folder may be missing although the devices are there.
std::vector<std::string> GpuModels(const Environment& environment) {
  Random random(0);
  const int count = ReadHostFacts(environment, "", random).gpus;
  std::vector<std::string> models;
  const std::string folder = "/proc/driver/nvidia/gpus/";
  for (const std::string& name : NamesIn(folder)) {
    models.push_back(ModelIn(ReadProcFile(folder + name + "/information").value_or("")));
  }
  models.resize(static_cast<size_t>(count), models.empty() ? "" : models.front());
  return models;
}

std::string ProgramDigest(const std::string& program, const Environment& environment,
                          Files& files) {
  struct stat status {};
  std::string where = program;
  if (stat(program.c_str(), &status) != 0) {
    const Result<std::string> found = FindProgram(program, SearchPath(environment), "");
    if (!found.ok()) return "";
    where = *found;
  }
  const Result<std::string> bytes = ReadWhole(files, where, kProgramBytesMax);
  return bytes.ok() ? DigestOf(BytesOf(*bytes)).Hex() : "";
}

void AddNames(DoctorFacts& facts) {
  const Result<std::string> number = ResolveHost(facts.host, kLookUpLimit);
  if (number.ok()) {
    facts.name_number = *number;
  } else {
    facts.name_trouble = number.error().message;
  }
  const Result<std::string> name = NameOfAddress(facts.address, kLookUpLimit);
  if (name.ok()) {
    facts.address_name = *name;
  } else {
    facts.address_trouble = name.error().message;
    facts.address_silent = name.error().code == Code::kTimeout;
  }
}

std::string LogDirectoryOf(const LogOptions& logs) {
  return logs.log_dir.empty() ? logs.temporary_dir : logs.log_dir;
}

// The job makes --log-dir and what is missing above it, but not the folder of temporary files. It
// does not make what a link leads to.
Result<std::string> NearestFolder(Files& files, const LogOptions& logs) {
  for (std::string at = LogDirectoryOf(logs);; at = ParentDir(at)) {
    const Result<FileInfo> found = files.Stat(at);
    if (found.ok() && found->kind == FileKind::kDirectory) return at;
    if (found.ok()) return Error{Code::kInvalid, at + " is not a directory"};
    const Result<std::string> end = files.Resolve(at);
    const bool will_be_made = found.error().code == Code::kNotFound && !logs.log_dir.empty() &&
                              end.ok() && *end == at && ParentDir(at) != at;
    if (!will_be_made) return found.error();
  }
}

// Rights do not tell: a file system may refuse what they allow.
Result<DiskSpace> SpaceForLogs(Files& files, const LogOptions& logs, Random random) {
  KEEL_TRY_ASSIGN(const std::string folder, NearestFolder(files, logs));
  const std::string tried = JoinPath(folder, ".keelrun-doctor-" + RandomId(random, 16));
  KEEL_TRY(files.MakeDir(tried));
  (void)files.RemoveDir(tried);   // an empty folder that stays is only litter
  return SpaceOf(folder);
}

}  // namespace

DiskSpace SpaceOf(const std::string& path) {
  struct statvfs told {};
  if (statvfs(path.c_str(), &told) != 0) return {};
  return {uint64_t{told.f_blocks} * told.f_frsize, uint64_t{told.f_bavail} * told.f_frsize};
}

Error DiskSilent(Duration limit) {
  return {Code::kTimeout, "its file system does not answer within " + DurationText(limit) +
                              "; is its server up? (see mount, dmesg)"};
}

Result<DiskSpace> TryLogFolder(Files& files, const LogOptions& logs, Random random,
                               Duration limit) {
  const auto tried = Within<Result<DiskSpace>>(
      limit, [&files, logs, random] { return SpaceForLogs(files, logs, random); });
  return tried.value_or(DiskSilent(limit));
}

std::string VariableIn(std::string_view environment, std::string_view name) {
  for (const std::string& line : LinesOf(environment)) {
    if (line.starts_with(name) && line.substr(name.size()).starts_with('=')) {
      return line.substr(name.size() + 1);
    }
  }
  return "";
}

std::string NumberInHostsFile(std::string_view text, std::string_view name) {
  for (const std::string& line : LinesOf(text)) {
    const std::string_view said = std::string_view(line).substr(0, line.find('#'));
    const std::vector<std::string> words = WordsOf(said);
    if (words.size() < 2) continue;
    if (std::find(words.begin() + 1, words.end(), name) != words.end()) return words.front();
  }
  return "";
}

std::string DriverVersion(std::string_view text) {
  const std::vector<std::string> lines = LinesOf(text);
  if (lines.empty()) return "";
  for (const std::string& word : WordsOf(lines.front())) {
    const bool is_number = word.find_first_not_of("0123456789.") == std::string::npos;
    if (is_number && word.find('.') != std::string::npos) return word;
  }
  return "";
}

std::string KernelsOf(std::string_view cpuinfo) {
  for (const std::string& line : LinesOf(cpuinfo)) {
    if (!line.starts_with("flags")) continue;
    const std::vector<std::string> words = WordsOf(line);
    const auto has = [&](const char* flag) {
      return std::find(words.begin(), words.end(), flag) != words.end();
    };
    const bool is_avx2 = has("avx2") && has("fma");
    const bool is_avx512 = is_avx2 && has("avx512f") && has("avx512vl") && has("avx512bw") &&
                           has("avx512dq");
    return is_avx512 ? "AVX512" : is_avx2 ? "AVX2" : "DEFAULT";
  }
  return "";
}

std::string RelevantVariables(const Environment& environment) {
  std::string lines;
  for (const auto& [name, value] : environment) {
    const bool is_one = name.starts_with("NCCL_") || name.starts_with("TORCH_NCCL_") ||
                        name.starts_with("GLOO_") || name == "CUDA_LAUNCH_BLOCKING";
    if (is_one && value.find('\n') == std::string::npos) lines += name + "=" + value + "\n";
  }
  return lines;
}

std::string LoadedTorch(Files& files) {
  for (const std::string& line : LinesOf(ReadProcFile("/proc/self/maps").value_or(""))) {
    const size_t path_begin = line.find('/');
    if (path_begin == std::string::npos || !line.ends_with("/libtorch_cpu.so")) continue;
    const std::string library = line.substr(path_begin);
    const std::string folder = ParentDir(ParentDir(library));
    std::string version = TorchVersionIn(files, folder);
    if (!version.empty()) return version;
    struct stat status {};
    if (stat(library.c_str(), &status) != 0) return "";
    return "a libtorch_cpu.so of " + std::to_string(status.st_size) + " bytes";
  }
  return "";
}

DoctorFacts BriefFacts(const LaunchConfig& config, const Environment& environment,
                       const std::string& own_name, const std::string& own_address) {
  DoctorFacts facts;
  facts.host = own_name;
  facts.address = own_address;
  facts.node_rank = config.meeting == LaunchConfig::Meeting::kStatic ? config.node_rank : -1;
  facts.hosts_least = config.hosts.least;
  facts.hosts_most = config.hosts.most;
  facts.workers = config.workers_per_host;
  facts.interfaces = Interfaces();
  facts.hosts_file_number =
      NumberInHostsFile(ReadProcFile("/etc/hosts").value_or(""), own_name);
  const Result<uint64_t> limit = RaiseFileLimit();
  const Result<uint64_t> open_now = CountOpenFiles();
  if (limit.ok() && open_now.ok()) {
    facts.files_limit = static_cast<int64_t>(std::min<uint64_t>(*limit, INT64_MAX));
    facts.files_wanted = static_cast<int64_t>(*open_now + OpenFilesWanted(config));
  }
  facts.shared_memory = SpaceOf("/dev/shm");
  facts.environment = RelevantVariables(environment);
  return facts;
}

void AddSlowFacts(DoctorFacts& facts, const LaunchConfig& config, const Environment& environment,
                  Files& files, Random random) {
  facts.version = kVersion;
  facts.protocol = kProtocolVersion;
  facts.machine = MachineId();
  AddNames(facts);
  facts.log_directory = LogDirectoryOf(config.logs);
  if (facts.log_directory != kNoLogs) {
    const auto space = TryLogFolder(files, config.logs, std::move(random), kDiskLimit);
    if (space.ok()) facts.log_space = *space;
    if (!space.ok()) facts.log_trouble = space.error().message;
  }
  facts.gpus = GpuModels(environment);
  facts.driver = DriverVersion(ReadProcFile("/proc/driver/nvidia/version").value_or(""));
  facts.kernels = KernelsOf(ReadProcFile("/proc/cpuinfo").value_or(""));
  facts.program = config.program.name;
  if (!facts.program.empty() && config.program.kind != WorkerProgram::Kind::kModule) {
    facts.program_digest = ProgramDigest(facts.program, environment, files);
  }
  if (config.doctor && !IsBucketPath(config.doctor->directory)) {
    facts.directory = config.doctor->directory;
  }
}

}  // namespace keel
