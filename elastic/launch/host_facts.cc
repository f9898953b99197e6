// Looks at /dev, at the program's first bytes, and beside our own program.
#include "elastic/launch/host_facts.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <sstream>
#include <string_view>

#include "base/fd.h"
#include "base/process_setup.h"
#include "base/text.h"
#include "elastic/process/proc_file.h"
#include "elastic/process/program_path.h"
#include "elastic/workers/program_mark.h"
#include "store/own_address.h"

namespace keel {
namespace {

constexpr const char* kLibrary = "libkeel_numeric_names.so";

bool IsDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return c >= '0' && c <= '9'; });
}

// /dev/nvidia0, /dev/nvidia1 ...
int PresentGpus() {
  struct CloseDirectory {
    void operator()(DIR* directory) const { closedir(directory); }
  };
  const std::unique_ptr<DIR, CloseDirectory> devices(opendir("/dev"));
  int count = 0;
  while (const dirent* entry = devices ? readdir(devices.get()) : nullptr) {
    std::string_view name = entry->d_name;
    if (!name.starts_with("nvidia")) continue;
    name.remove_prefix(6);
    if (IsDigits(name)) ++count;
  }
  return count;
}

// A script is first looked for in the working folder; only if it is not there, in PATH.
std::string FileOf(const std::string& program, const std::string& search_path) {
  struct stat status {};
  if (program.empty() || stat(program.c_str(), &status) == 0) return program;
  const Result<std::string> found = FindProgram(program, search_path, "");
  return found.ok() ? *found : "";
}

bool IsElf(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, 4> begin{};
  return fd.valid() && read(fd.number(), begin.data(), begin.size()) == 4 &&
         std::memcmp(begin.data(), "\x7f" "ELF", 4) == 0;
}

std::string FindPython(const Environment& environment, const std::string& search_path) {
  const std::string chosen = VariableOf(environment, "PYTHON_EXEC");
  if (!chosen.empty()) return chosen;
  for (const char* name : {"python3", "python"}) {
    Result<std::string> found = FindProgram(name, search_path, "");
    if (found.ok()) return *std::move(found);
  }
  return "";
}

std::string OwnFolder() {
  std::array<char, 4096> path;
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  const std::string_view whole(path.data(), size > 0 ? static_cast<size_t>(size) : 0);
  return std::string(whole.substr(0, whole.rfind('/')));
}

// Where the library lies in an installation, and in a build folder.
std::string FindLibrary() {
  const std::string folder = OwnFolder();
  for (const char* beside : {"/../lib/evenkeel/", "/../lib64/evenkeel/",
                             "/../lib/x86_64-linux-gnu/evenkeel/",
                             "/../lib/aarch64-linux-gnu/evenkeel/"}) {
    const std::string path = folder + beside + kLibrary;
    std::array<char, 4096> real;
    if (access(path.c_str(), R_OK) == 0 && realpath(path.c_str(), real.data()) != nullptr) {
      return real.data();
    }
  }
  return "";
}

DmiFacts ReadDmi() {
  const auto read = [](const std::string& name) {
    return std::string(Trim(ReadProcFile("/sys/class/dmi/id/" + name).value_or("")));
  };
  return {read("sys_vendor"), read("product_name"), read("bios_version"),
          read("chassis_asset_tag")};
}

}  // namespace

std::optional<Cloud> CloudOf(const DmiFacts& dmi) {
  // On older machines (Xen) only the firmware's version tells the owner.
  if (dmi.sys_vendor == "Amazon EC2" || dmi.bios_version.ends_with(".amazon")) return Cloud::kAws;
  if (dmi.product_name == "Google Compute Engine") return Cloud::kGcp;
  // This tag is the same on all of them; the vendor is the same for any Hyper-V.
  if (dmi.chassis_asset_tag == "7783-7084-3265-9085-8269-3286-77") return Cloud::kAzure;
  return std::nullopt;
}

PortRange KernelPorts(const std::string& text) {
  std::istringstream words(text);
  PortRange ports;
  return words >> ports.first >> ports.last ? ports : PortRange();
}

int VisibleGpus(const std::string& visible, int present) {
  int count = 0;
  for (std::string_view rest = visible;; ++count) {
    const size_t comma = rest.find(',');
    const std::string_view entry = Trim(rest.substr(0, comma));
    const Result<int64_t> index = ParseInteger(entry);
    // An entry that is not a number names a GPU by its UUID.
    const bool is_good = index.ok() ? *index >= 0 && *index < present : !entry.empty();
    if (!is_good || count == present) return count;
    if (comma == std::string_view::npos) return count + 1;
    rest.remove_prefix(comma + 1);
  }
}

// Of version 4, as torchrun names such a job.
std::string RandomUuid(Random& random) {
  std::string id = RandomId(random, 32);
  id[12] = '4';
  id[16] = "89ab"[random.Uniform(4)];
  for (const size_t at : {20, 16, 12, 8}) id.insert(at, "-");
  return id;
}

HostFacts ReadHostFacts(const Environment& environment, const std::string& program,
                        Random& random) {
  HostFacts facts;
  const std::string search_path = VariableOf(environment, "PATH");
  const std::string temporary_dir = VariableOf(environment, "TMPDIR");
  facts.name = OwnHostName();
  facts.cpus = UsableProcessors();
  facts.gpus = PresentGpus();
  const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
  if (visible != environment.end()) facts.gpus = VisibleGpus(visible->second, facts.gpus);
  facts.unique_id = RandomUuid(random);
  facts.python = FindPython(environment, search_path);
  if (!temporary_dir.empty()) facts.temporary_dir = temporary_dir;
  const std::string file = FileOf(program, search_path);
  facts.is_compiled = IsElf(file);
  facts.is_in_place = HasProgramMark(file);
  facts.is_of_package = IsScriptOfPackage(program);
  facts.numeric_names = FindLibrary();
  facts.cloud = CloudOf(ReadDmi());
  facts.kernel_ports =
      KernelPorts(ReadProcFile("/proc/sys/net/ipv4/ip_local_port_range").value_or(""));
  return facts;
}

}  // namespace keel
