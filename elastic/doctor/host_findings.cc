// What can be wrong with one host by itself.
#include <algorithm>

#include "base/text.h"
#include "elastic/doctor/findings.h"
#include "elastic/launch/meeting.h"
#include "store/own_address.h"

namespace keel {
namespace {

constexpr int64_t kFilesEnough = 4096;
constexpr uint64_t kSharedMemoryEnough = uint64_t{512} << 20;
constexpr uint64_t kSharedMemoryFree = uint64_t{128} << 20;

std::string InterfaceOf(const DoctorFacts& facts) {
  for (const HostInterface& one : facts.interfaces) {
    if (one.address == facts.address) return one.name;
  }
  return "";
}

// Interfaces over which containers and virtual machines of one host communicate.
bool IsBridge(const std::string& interface) {
  for (const char* begin : {"docker", "br-", "virbr", "cni", "cbr", "lxc", "lxdbr", "podman"}) {
    if (interface.starts_with(begin)) return true;
  }
  return false;
}

std::string OtherInterfaces(const DoctorFacts& facts) {
  std::vector<std::string> others;
  for (const HostInterface& one : facts.interfaces) {
    const bool is_other = !IsLoopback(one.address) && !one.address.starts_with("fe80:") &&
                          !IsBridge(one.name) && one.address != facts.address;
    if (is_other) others.push_back(one.name + " " + one.address);
  }
  return others.empty() ? "none" : JoinList(others, ", ");
}

// One word of NCCL_SOCKET_IFNAME: the beginning of a name or, with '=', a whole one.
bool Fits(const std::string& interface, std::string_view word, bool exactly) {
  // "eth0:1" of NCCL's older form names an alias.
  return exactly ? interface == word : interface.starts_with(word);
}

// The interfaces that the variable selects, by NCCL's rules: "eth,ib", "=eth0", "^lo,docker".
// Gloo's words are whole names.
std::vector<std::string> ChosenInterfaces(const DoctorFacts& facts, std::string value,
                                          bool always_exact) {
  const bool negated = value.starts_with('^');
  if (negated) value.erase(0, 1);
  const bool exactly = value.starts_with('=') || always_exact;
  if (value.starts_with('=')) value.erase(0, 1);
  std::vector<std::string> chosen;
  for (const HostInterface& one : facts.interfaces) {
    const std::vector<std::string> words = SplitList(value);
    const bool fits = std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      return Fits(one.name, word, exactly);
    });
    const bool is_new = std::find(chosen.begin(), chosen.end(), one.name) == chosen.end();
    if (fits != negated && is_new) chosen.push_back(one.name);
  }
  return chosen;
}

bool IsLoopbackName(const DoctorFacts& facts, const std::string& interface) {
  return std::any_of(facts.interfaces.begin(), facts.interfaces.end(), [&](const auto& one) {
    return one.name == interface && IsLoopback(one.address);
  });
}

void CheckInterfaceVariable(const HostOfJob& host, const std::string& name, Check& check) {
  const DoctorFacts& facts = host.facts;
  const std::string value = VariableIn(facts.environment, name);
  if (value.empty()) return;
  const bool is_gloo = name.starts_with("GLOO_");
  const bool counts = is_gloo || !facts.gpus.empty();   // without a GPU, NCCL is not used
  const std::vector<std::string> chosen = ChosenInterfaces(facts, value, is_gloo);
  const std::string shown = name + "=" + value;
  const std::string cure = "unset it, or name the interface that leads to the other hosts: " +
                           OtherInterfaces(facts);
  if (chosen.empty()) {
    const std::string what = shown + " names no interface of this host";
    return counts ? check.Fail(host.label, what, cure) : check.Warn(host.label, what, cure);
  }
  if (host.is_alone || host.is_rehearsal) return;
  const bool all_loopback = std::all_of(chosen.begin(), chosen.end(), [&](const auto& one) {
    return IsLoopbackName(facts, one);
  });
  if (all_loopback) {
    const std::string what = shown + " leaves only loopback, which no other host reaches";
    return counts ? check.Fail(host.label, what, cure) : check.Warn(host.label, what, cure);
  }
  if (IsBridge(chosen.front())) {
    check.Warn(host.label, shown + " selects " + chosen.front() + ", a bridge inside this host",
               cure);
  }
}

bool IsOn(const std::string& value) {
  const Result<bool> on = ParseBool(value);
  const Result<int64_t> number = ParseInteger(value);
  return (on.ok() && *on) || (number.ok() && *number != 0);
}

struct BadVariable {
  const char* name;
  bool when_on;         // harmful if it is on; otherwise harmful if it is off
  const char* what;
  const char* cure;
};
constexpr BadVariable kBadVariables[] = {
    {"NCCL_IB_DISABLE", true, "keeps NCCL off InfiniBand and RoCE: slow if hosts have them",
     "unset it, unless these networks do not work here"},
    {"NCCL_P2P_DISABLE", true, "keeps GPUs of one host from reading each other's memory: slow",
     "unset it, unless this host hangs without it"},
    {"NCCL_SHM_DISABLE", true, "makes GPUs of one host exchange all data over the network: slow",
     "unset it, and make /dev/shm large enough"},
    {"TORCH_NCCL_BLOCKING_WAIT", true, "makes waits for NCCL block the program",
     "unset it: TORCH_NCCL_ASYNC_ERROR_HANDLING=1, the default here, does what it was for"},
    {"TORCH_NCCL_ASYNC_ERROR_HANDLING", false, "lets workers hang for ever when one is lost",
     "unset it, or set it to 1"},
    {"CUDA_LAUNCH_BLOCKING", true, "makes the program wait for each kernel: everything is slow",
     "unset it when you are done debugging"},
};

void CheckOldNames(const HostOfJob& host, Check& check) {
  for (const char* name : {"NCCL_ASYNC_ERROR_HANDLING", "NCCL_BLOCKING_WAIT"}) {
    if (VariableIn(host.facts.environment, name).empty()) continue;
    check.Warn(host.label, std::string(name) + " is an old name, which newer versions of PyTorch "
                                               "do not read",
               std::string("unset it; its new name is TORCH_") + name);
  }
}

}  // namespace

void CheckInterface(const HostOfJob& host, Check& check) {
  const DoctorFacts& facts = host.facts;
  if (host.is_alone) return;
  const std::string cure_address =
      "give --local-addr one of this host's own addresses: " + OtherInterfaces(facts);
  if (IsLoopback(facts.address)) {
    if (host.is_rehearsal) return;
    return check.Fail(host.label,
                      "the others are told to reach this host at " + facts.address +
                          ", a loopback address, at which each host reaches only itself: "
                          "right only if all launchers run on one machine",
                      "write the endpoint as a name or address that leads here from the others "
                      "(not localhost), or " + cure_address);
  }
  const std::string interface = InterfaceOf(facts);
  if (interface.empty()) {
    return check.Warn(host.label,
                      "its address " + facts.address + " belongs to none of this host's interfaces",
                      "this is right only if something in between translates it; otherwise " +
                          cure_address);
  }
  if (IsBridge(interface)) {
    check.Warn(host.label,
               "its address " + facts.address + " is that of " + interface +
                   ", a bridge inside this host",
               cure_address);
  }
}

void CheckOwnName(const HostOfJob& host, Check& check) {
  const DoctorFacts& facts = host.facts;
  const std::string number =
      facts.name_number.empty() ? facts.hosts_file_number : facts.name_number;
  const bool chosen = !VariableIn(facts.environment, "GLOO_SOCKET_IFNAME").empty();
  if (host.is_alone || host.is_rehearsal || chosen || !IsLoopback(number)) return;
  if (IsLoopback(facts.address)) return;   // that is the fault, or all is on one machine
  check.Warn(host.label,
             "its own name " + facts.host + " leads to " + number + ": Gloo in a program that "
                 "runs unchanged (Python DDP) listens there, and no other host reaches it",
             "take that line out of /etc/hosts or put " + facts.address + " in it, or set "
             "GLOO_SOCKET_IFNAME; programs of the trainer need neither");
}

void CheckFileLimit(const HostOfJob& host, Check& check) {
  const DoctorFacts& facts = host.facts;
  if (facts.files_limit == 0) {
    return check.Warn(host.label, "the limit of open files cannot be read", "mount /proc");
  }
  const std::string limit = std::to_string(facts.files_limit);
  const std::string wanted = std::to_string(std::max(facts.files_wanted, kFilesEnough));
  const std::string cure = "raise the limit (`ulimit -n " + wanted +
                           "`, or LimitNOFILE of a service)";
  if (facts.files_limit < facts.files_wanted) {
    return check.Fail(host.label, "at most " + limit + " files may be open at once, and keelrun "
                                  "needs " + std::to_string(facts.files_wanted), cure);
  }
  if (facts.files_limit < kFilesEnough) {
    check.Warn(host.label, "at most " + limit + " files may be open at once: enough for keelrun, "
                           "but data loaders and groups of many workers need more", cure);
  }
}

void CheckSharedMemory(const HostOfJob& host, Check& check) {
  const DiskSpace& space = host.facts.shared_memory;
  const std::string cure = "give the container more (docker run --shm-size=8g, --ipc=host; on "
                           "Kubernetes an emptyDir with medium: Memory at /dev/shm)";
  if (space.total == 0) {
    return check.Warn(host.label, "there is no /dev/shm, which NCCL and data loaders share memory "
                                  "through", cure);
  }
  if (space.total < kSharedMemoryEnough) {
    return check.Warn(host.label, "/dev/shm has only " + BytesText(space.total) +
                                      ": NCCL and data loaders die of SIGBUS when it is full",
                      cure);
  }
  if (space.free < kSharedMemoryFree) {
    check.Warn(host.label, "/dev/shm is nearly full: " + BytesText(space.free) + " of " +
                               BytesText(space.total) + " are free",
               "remove what dead processes left there (ls -l /dev/shm)");
  }
}

void CheckVariables(const HostOfJob& host, Check& check) {
  for (const char* name : {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"}) {
    CheckInterfaceVariable(host, name, check);
  }
  for (const BadVariable& bad : kBadVariables) {
    const std::string value = VariableIn(host.facts.environment, bad.name);
    if (value.empty() || IsOn(value) != bad.when_on) continue;
    check.Warn(host.label, std::string(bad.name) + "=" + value + " " + bad.what, bad.cure);
  }
  CheckOldNames(host, check);
}

std::vector<Finding> BriefFindings(const DoctorFacts& facts) {
  std::vector<Finding> findings;
  const HostOfJob host{facts, facts.host, /*is_alone=*/false, /*is_rehearsal=*/false};
  const auto look = [&](const char* name, void (*check)(const HostOfJob&, Check&)) {
    Check into(findings, name);
    check(host, into);
  };
  look("interface", CheckInterface);
  look("names", CheckOwnName);
  look("files", CheckFileLimit);
  look("shared-memory", CheckSharedMemory);
  look("variables", CheckVariables);
  return findings;
}

}  // namespace keel
