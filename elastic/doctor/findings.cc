// Goes check by check, over all hosts that came.
#include "elastic/doctor/findings.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/text.h"
#include "elastic/launch/meeting.h"
#include "store/own_address.h"

namespace keel {
namespace {

constexpr int64_t kClocksApartNs = 1'000'000'000;
constexpr int64_t kFarNs = 5'000'000;                  // a round trip between zones, or worse
constexpr int64_t kSlowBytesPerSecond = 12'500'000;    // 100 Mbit/s
constexpr uint64_t kDiskEnough = uint64_t{1} << 30;
constexpr uint64_t kLogSpaceEnough = uint64_t{100} << 20;

std::string TimeText(int64_t ns) { return DurationText(Duration(ns)); }

class Examination {
 public:
  explicit Examination(const DoctorView& view)
      : view_(view), labels_(LabelsOf(view.hosts)), is_rehearsal_(IsRehearsal()) {}

  std::vector<Finding> Run() {
    Hosts();
    Store();
    Names();
    Each("interface", CheckInterface, InterfaceText());
    Ports();
    Clocks();
    Versions();
    Program();
    Gpus();
    Processors();
    Directory();
    Space();
    Each("shared-memory", CheckSharedMemory, SharedMemoryText());
    Each("files", CheckFileLimit, FilesText());
    Variables();
    AllReduce();
    return std::move(findings_);
  }

 private:
  size_t count() const { return view_.hosts.size(); }
  // In a job of one host it is clear which host is meant.
  std::string Label(size_t host) const { return view_.is_alone ? "" : labels_[host]; }

  bool IsRehearsal() const {
    return count() > 1 && std::all_of(view_.hosts.begin(), view_.hosts.end(), [&](const auto& one) {
             return one.machine == view_.hosts.front().machine;
           });
  }
  HostOfJob HostAt(size_t host) const {
    return {view_.hosts[host], Label(host), view_.is_alone, is_rehearsal_};
  }
  void Each(const char* name, void (*check)(const HostOfJob&, Check&), const std::string& well) {
    Check into(findings_, name);
    for (size_t host = 0; host < count(); ++host) check(HostAt(host), into);
    into.Well(well);
  }
  const DoctorSight* Sight(size_t from, size_t to) const {
    if (from >= view_.sights.size() || to >= view_.sights[from].size()) return nullptr;
    return &view_.sights[from][to];
  }
  // Visits each pair of which one has looked at the other.
  void Pairs(const std::function<void(size_t, size_t, const DoctorSight&)>& visit) const {
    for (size_t from = 0; from < count(); ++from) {
      for (size_t to = 0; to < count(); ++to) {
        const DoctorSight* const sight = Sight(from, to);
        if (from != to && sight != nullptr) visit(from, to, *sight);
      }
    }
  }
  bool SkipAlone(Check& check) const {
    if (view_.is_alone) check.Skip("the job has one host");
    if (!view_.is_alone && count() < 2) check.Skip("no other host came");
    return view_.is_alone || count() < 2;
  }

  void Hosts();
  void CheckNodeRanks(Check& check);
  void Store();
  void Names();
  void CheckSharedNames(Check& check);
  void Ports();
  void Clocks();
  void Versions();
  void Program();
  void Gpus();
  void Processors();
  void Directory();
  void Space();
  void Variables();
  void AllReduce();
  // Warns if hosts have different values; "" counts as a value only with `even_none`.
  bool Same(Check& check, const std::string& what, const std::string& cure, bool fails,
            const std::function<std::string(const DoctorFacts&)>& value, bool even_none = false);

  std::string InterfaceText() const;
  std::string SharedMemoryText() const;
  std::string FilesText() const;

  const DoctorView& view_;
  const std::vector<std::string> labels_;
  const bool is_rehearsal_;
  std::vector<Finding> findings_;
};

std::string HostsText(int64_t count) {
  return std::to_string(count) + (count == 1 ? " host" : " hosts");
}

void Examination::Hosts() {
  Check check(findings_, "hosts");
  if (view_.is_alone) return check.Well("the job has this one host, " + labels_[0]);
  const std::string cure = "start the same command on each host within --doctor-limit; where it "
                           "runs, check the endpoint, its port, and firewalls between";
  if (!view_.meeting_trouble.empty()) check.Fail("", view_.meeting_trouble, cure);
  const DoctorFacts& first = view_.hosts.front();
  const auto came = static_cast<int64_t>(count());
  if (view_.meeting_trouble.empty() && came < first.hosts_most) {
    const std::string what = std::to_string(came) + " of " + HostsText(first.hosts_most) +
                             " came: " + JoinList(labels_, ", ");
    if (came < first.hosts_least) {
      check.Fail("", what + "; the job needs " + std::to_string(first.hosts_least), cure);
    } else {
      check.Warn("", what + "; the job could begin without the others", cure);
    }
  }
  CheckNodeRanks(check);
  Same(check, "--nnodes", "give all hosts the same one", true, [](const DoctorFacts& facts) {
    return std::to_string(facts.hosts_least) + ":" + std::to_string(facts.hosts_most);
  });
  check.Well("all " + std::to_string(came) + " came: " + JoinList(labels_, ", ") +
             (is_rehearsal_ ? " (a rehearsal: they are one machine)" : ""));
}

// If hosts are numbered, the missing ones can be named.
void Examination::CheckNodeRanks(Check& check) {
  if (view_.hosts.front().node_rank < 0 || !view_.meeting_trouble.empty()) return;
  std::map<int64_t, std::vector<std::string>> having;
  for (size_t host = 0; host < count(); ++host) {
    having[view_.hosts[host].node_rank].push_back(labels_[host]);
  }
  for (const auto& [rank, hosts] : having) {
    if (hosts.size() < 2) continue;
    check.Fail(hosts.back(), "--node-rank=" + std::to_string(rank) + " was given to " +
                                 JoinList(hosts, " and "), "give each host a number of its own");
  }
  std::vector<std::string> missing;
  for (int64_t rank = 0; rank < view_.hosts.front().hosts_most; ++rank) {
    if (having.count(rank) == 0) missing.push_back("--node-rank=" + std::to_string(rank));
  }
  if (missing.empty()) return;
  check.Fail("", "nobody came as " + JoinList(missing, ", "),
             "start the command there, with that number");
}

void Examination::Store() {
  Check check(findings_, "store");
  int64_t slowest = 0;
  for (size_t host = 0; host < count(); ++host) {
    const DoctorFacts& facts = view_.hosts[host];
    slowest = std::max(slowest, facts.store_nanos);
    if (facts.store_trouble.empty()) continue;
    check.Fail(Label(host), "workers have no store to meet at: " + facts.store_trouble,
               "as the message says; what nobody else can read is in the log");
  }
  if (!view_.meeting_trouble.empty()) return check.Skip("none was reached");
  check.Well("answers within " + TimeText(slowest));
}

void Examination::Names() {
  Check check(findings_, "names");
  const std::string cure = "an entry in DNS or in /etc/hosts of all hosts; this project's own "
                           "programs use numbers only, other programs may use names";
  for (size_t host = 0; host < count(); ++host) {
    const DoctorFacts& facts = view_.hosts[host];
    if (!facts.name_trouble.empty()) check.Warn(Label(host), facts.name_trouble, cure);
    CheckOwnName(HostAt(host), check);
    if (facts.address_silent) {
      check.Warn(Label(host), facts.address_trouble + ": each such look-up stalls programs that "
                                                      "ask for the names of their peers",
                 "repair reverse DNS; workers under keelrun do not ask, unless with "
                 "--no-numeric-names");
    }
  }
  CheckSharedNames(check);
  Pairs([&](size_t from, size_t to, const DoctorSight& sight) {
    const DoctorFacts& other = view_.hosts[to];
    if (other.host == view_.hosts[from].host) return;   // the name would lead to the host itself
    if (!sight.name_trouble.empty()) return check.Warn(labels_[from], sight.name_trouble, cure);
    const bool is_its_own =
        sight.name_number == other.address || IsLoopback(sight.name_number) ||
        std::any_of(other.interfaces.begin(), other.interfaces.end(), [&](const auto& one) {
          return one.address == sight.name_number;
        });
    if (is_its_own && (is_rehearsal_ || !IsLoopback(sight.name_number))) return;
    check.Warn(labels_[from],
               "here the name " + other.host + " leads to " + sight.name_number +
                   ", which is not an address of that host (" + other.address + ")",
               cure);
  });
  std::set<std::string> texts;
  for (const DoctorFacts& facts : view_.hosts) {
    texts.insert(facts.host + " is " + facts.name_number + ", and " + facts.address + " is " +
                 (facts.address_name.empty() ? "nameless" : facts.address_name));
  }
  check.Well(JoinList({texts.begin(), texts.end()}, "; "));
}

// Launchers on one machine share its name; machines should have names of their own.
void Examination::CheckSharedNames(Check& check) {
  std::map<std::string, std::map<std::string, std::string>> called;   // name, machine, address
  for (const DoctorFacts& facts : view_.hosts) called[facts.host][facts.machine] = facts.address;
  for (const auto& [name, machines] : called) {
    if (machines.size() < 2) continue;
    std::vector<std::string> addresses;
    for (const auto& [machine, address] : machines) addresses.push_back(address);
    check.Warn("", std::to_string(machines.size()) + " hosts are called " + name + " (" +
                       JoinList(addresses, ", ") + "): logs do not tell them apart",
               "give each host a name of its own (hostnamectl; --hostname of a container)");
  }
}

std::string Examination::InterfaceText() const {
  std::vector<std::string> texts;
  for (const DoctorFacts& facts : view_.hosts) {
    std::string name = "?";
    for (const HostInterface& one : facts.interfaces) {
      if (one.address == facts.address) name = one.name;
    }
    texts.push_back(facts.host + " is reached at " + facts.address + " (" + name + ")");
  }
  return JoinList(texts, ", ");
}

void Examination::Ports() {
  Check check(findings_, "ports");
  if (SkipAlone(check)) return;
  int64_t longest = 0;
  for (size_t from = 0; from < count(); ++from) {
    if (Sight(from, 0) != nullptr) continue;
    check.Fail(labels_[from], "it came, but then told nothing of what it sees",
               "look at what its own doctor printed, and whether it still runs");
  }
  Pairs([&](size_t from, size_t to, const DoctorSight& sight) {
    if (!sight.reach_trouble.empty()) {
      return check.Fail(labels_[from],
                        "cannot reach " + labels_[to] + ": " + sight.reach_trouble,
                        "allow all ports between the hosts of a job (workers listen on ports "
                        "that the system picks), or give " + labels_[to] + " another --local-addr");
    }
    longest = std::max(longest, sight.round_trip_ns);
    if (sight.round_trip_ns < kFarNs) return;
    check.Warn(labels_[from], "a round trip to " + labels_[to] + " takes " +
                                  TimeText(sight.round_trip_ns) + ": each all-reduce takes longer",
               "take hosts of one zone or rack");
  });
  check.Well("all reach each other; the longest round trip takes " + TimeText(longest));
}

void Examination::Clocks() {
  Check check(findings_, "clocks");
  if (SkipAlone(check)) return;
  int64_t most = 0;
  Pairs([&](size_t from, size_t to, const DoctorSight& sight) {
    if (from > to || !sight.reach_trouble.empty()) return;
    const int64_t apart = std::abs(sight.clock_ahead_ns);
    most = std::max(most, apart + sight.clock_doubt_ns);
    if (apart - sight.clock_doubt_ns < kClocksApartNs) return;
    check.Warn(labels_[to],
               "its clock is " + TimeText(apart) +
                   (sight.clock_ahead_ns > 0 ? " ahead of " : " behind ") + labels_[from] +
                   "'s: logs of the two do not fit together (the job itself compares no clocks)",
               "run a time service (chrony, systemd-timesyncd) on all hosts");
  });
  check.Well("less than " + TimeText(std::max<int64_t>(most, 1'000'000)) + " apart");
}

bool Examination::Same(Check& check, const std::string& what, const std::string& cure, bool fails,
                       const std::function<std::string(const DoctorFacts&)>& value,
                       bool even_none) {
  std::map<std::string, std::vector<std::string>> having;
  for (size_t host = 0; host < count(); ++host) {
    const std::string one = value(view_.hosts[host]);
    if (!one.empty() || even_none) having[one].push_back(labels_[host]);
  }
  if (having.size() < 2) return true;
  std::vector<std::string> texts;
  for (const auto& [one, hosts] : having) {
    texts.push_back((one.empty() ? "unset" : one) + " on " + JoinList(hosts, ", "));
  }
  const std::string told = what + " differs: " + JoinList(texts, "; ");
  if (fails) {
    check.Fail("", told, cure);
  } else {
    check.Warn("", told, cure);
  }
  return false;
}

void Examination::Versions() {
  Check check(findings_, "versions");
  Same(check, "Evenkeel's version", "install the same release on all hosts", true,
       [](const DoctorFacts& facts) { return facts.version; });
  Same(check, "the protocol's version", "install the same release on all hosts", true,
       [](const DoctorFacts& facts) { return std::to_string(facts.protocol); });
  Same(check, "LibTorch", "install the same on all hosts: other kernels give other bits, and "
       "workers with other fingerprints are refused without --allow-inexact", !view_.allow_inexact,
       [](const DoctorFacts& facts) { return facts.torch; });
  const DoctorFacts& first = view_.hosts.front();
  check.Well("Evenkeel " + first.version + ", protocol " + std::to_string(first.protocol) +
             ", LibTorch " + (first.torch.empty() ? "not loaded" : first.torch));
}

void Examination::Program() {
  Check check(findings_, "program");
  bool any = false;
  for (size_t host = 0; host < count(); ++host) {
    const DoctorFacts& facts = view_.hosts[host];
    any |= !facts.program.empty();
    if (facts.program_trouble.empty()) continue;
    check.Fail(Label(host), facts.program_trouble, "put the program there, or correct its name");
  }
  if (!any) return check.Skip("none was named on the command line");
  Same(check, "the program", "give all hosts the same command", true,
       [](const DoctorFacts& facts) { return facts.program; }, true);
  Same(check, "the program's file", "copy the same build to all hosts", false,
       [](const DoctorFacts& facts) { return facts.program_digest.substr(0, 12); });
  check.Well(view_.hosts.front().program + " can be started");
}

void Examination::Gpus() {
  Check check(findings_, "gpus");
  const auto models = [](const DoctorFacts& facts) {
    std::map<std::string, int> counts;
    for (const std::string& model : facts.gpus) ++counts[model.empty() ? "unnamed GPU" : model];
    std::vector<std::string> texts;
    for (const auto& [model, number] : counts) {
      texts.push_back(std::to_string(number) + " " + model);
    }
    return texts.empty() ? "none" : JoinList(texts, " and ");
  };
  Same(check, "what GPUs there are", "take hosts of one kind: the slowest GPU sets the pace, and "
       "other kinds give other bits", false, models);
  Same(check, "the GPU driver", "install the same driver on all hosts", false,
       [](const DoctorFacts& facts) { return facts.driver; });
  for (size_t host = 0; host < count(); ++host) {
    const DoctorFacts& facts = view_.hosts[host];
    const auto gpus = static_cast<int64_t>(facts.gpus.size());
    if (gpus == 0 || facts.workers <= gpus) continue;
    check.Warn(Label(host), std::to_string(facts.workers) + " workers share " +
                                std::to_string(gpus) + " GPUs, which NCCL refuses",
               "--nproc-per-node=gpu, or what CUDA_VISIBLE_DEVICES hides");
  }
  const DoctorFacts& first = view_.hosts.front();
  check.Well(models(first) + (first.driver.empty() ? "" : ", driver " + first.driver));
}

void Examination::Processors() {
  Check check(findings_, "processors");
  for (size_t host = 0; host < count(); ++host) {
    if (view_.hosts[host].kernels != "DEFAULT") continue;
    check.Warn(Label(host), "its processor lacks AVX2, which portable numerics need",
               "take another host, or native numerics, whose bits are those of one kind of host");
  }
  std::set<std::string> kinds;
  for (const DoctorFacts& facts : view_.hosts) {
    if (!facts.kernels.empty()) kinds.insert(facts.kernels);
  }
  const std::string all = JoinList({kinds.begin(), kinds.end()}, " and ");
  const char* const note = kinds.size() > 1 ? ": portable numerics give the same bits" : "";
  check.Well(all.empty() ? "of a kind that has no AVX" : all + note);
}

void Examination::Directory() {
  Check check(findings_, "directory");
  const bool any = std::any_of(view_.hosts.begin(), view_.hosts.end(),
                               [](const auto& one) { return !one.directory.empty(); });
  if (!any) return check.Skip("none was named: --doctor-dir takes that of the checkpoints");
  for (size_t host = 0; host < count(); ++host) {
    const DoctorFacts& facts = view_.hosts[host];
    if (facts.directory.empty()) {
      check.Fail(Label(host), "no --doctor-dir was given here", "give all hosts the same command");
    } else if (!facts.directory_trouble.empty()) {
      check.Fail(Label(host), facts.directory + " cannot be used: " + facts.directory_trouble,
                 "make the directory, let this user write there, or name another one");
    } else if (facts.directory_space.total > 0 && facts.directory_space.free < kDiskEnough) {
      check.Warn(Label(host), "only " + BytesText(facts.directory_space.free) + " are free in " +
                                  facts.directory,
                 "free some (`keel gc` drops old ones): a checkpoint has the model and what the "
                 "optimizer keeps, often three times the model");
    }
  }
  Pairs([&](size_t from, size_t to, const DoctorSight& sight) {
    const DoctorFacts& here = view_.hosts[from];
    const DoctorFacts& there = view_.hosts[to];
    const bool both = !here.directory.empty() && !there.directory.empty() &&
                      here.directory_trouble.empty() && there.directory_trouble.empty();
    if (!both || sight.probe_trouble.empty()) return;
    check.Fail(labels_[from],
               "what " + labels_[to] + " wrote in " + there.directory + " is not seen in " +
                   here.directory + ": " + sight.probe_trouble,
               "give all hosts one directory of a file system that they share (NFS, Lustre, ...)");
  });
  check.Well(view_.hosts.front().directory + " can be written" +
             (count() < 2 ? "" : ", and all see what the others write") + "; " +
             BytesText(view_.hosts.front().directory_space.free) + " are free");
}

void Examination::Space() {
  Check check(findings_, "disk");
  for (size_t host = 0; host < count(); ++host) {
    const DoctorFacts& facts = view_.hosts[host];
    if (facts.log_space.total == 0) {
      check.Warn(Label(host), "the folder for logs, " + facts.log_directory + ", cannot be asked",
                 "make it, or give another --log-dir");
    } else if (facts.log_space.free < kLogSpaceEnough) {
      check.Warn(Label(host), "only " + BytesText(facts.log_space.free) + " are free for logs in " +
                                  facts.log_directory, "free some, or give another --log-dir");
    }
  }
  const DoctorFacts& first = view_.hosts.front();
  check.Well(BytesText(first.log_space.free) + " are free for logs in " + first.log_directory);
}

std::string Examination::SharedMemoryText() const {
  uint64_t least = UINT64_MAX;
  for (const DoctorFacts& facts : view_.hosts) least = std::min(least, facts.shared_memory.free);
  return BytesText(least) + " are free in /dev/shm";
}

std::string Examination::FilesText() const {
  int64_t least = INT64_MAX;
  for (const DoctorFacts& facts : view_.hosts) least = std::min(least, facts.files_limit);
  return std::to_string(least) + " files may be open at once";
}

// NCCL assumes some to be the same everywhere; the interface is each host's own.
void Examination::Variables() {
  Check check(findings_, "variables");
  std::set<std::string> names;
  for (size_t host = 0; host < count(); ++host) {
    CheckVariables(HostAt(host), check);
    for (const std::string& line : SplitList(view_.hosts[host].environment, '\n')) {
      names.insert(line.substr(0, line.find('=')));
    }
  }
  for (const std::string& name : names) {
    const bool is_own = name.find("IFNAME") != std::string::npos || name == "NCCL_IB_HCA" ||
                        name.starts_with("NCCL_DEBUG") || name == "NCCL_HOSTID";
    if (is_own) continue;
    Same(check, name, "set it on all hosts or on none: workers that choose differently hang", false,
         [&](const DoctorFacts& facts) { return VariableIn(facts.environment, name); }, true);
  }
  const std::string all = JoinList({names.begin(), names.end()}, ", ");
  check.Well(all.empty() ? "none of NCCL or Gloo is set" : "none that hurts among " + all);
}

void Examination::AllReduce() {
  Check check(findings_, "all-reduce");
  if (SkipAlone(check)) return;
  if (view_.sums.empty()) {
    return check.Skip("not tried, since not all hosts reach each other");
  }
  int64_t slowest = 0;
  int64_t bytes = 0;
  for (size_t host = 0; host < view_.sums.size(); ++host) {
    const DoctorSum& sum = view_.sums[host];
    slowest = std::max(slowest, sum.nanos);
    bytes = std::max(bytes, sum.bytes);
    if (sum.trouble.empty()) continue;
    check.Fail(labels_[host], "a small all-reduce failed: " + sum.trouble,
               "look for a firewall or a path that drops large packets (MTU): ping -M do -s 8900");
  }
  // Each byte leaves a host nearly twice.
  const double moved = 2.0 * static_cast<double>(bytes) * static_cast<double>(count() - 1) /
                       static_cast<double>(count());
  const double pace = slowest > 0 ? moved / (static_cast<double>(slowest) / 1e9) : 0;
  const std::string text = BytesText(static_cast<uint64_t>(bytes)) + " among " +
                           HostsText(static_cast<int64_t>(count())) + " in " + TimeText(slowest) +
                           " (" + BytesText(static_cast<uint64_t>(pace)) +
                           " a second and host), over plain TCP: not what NCCL would reach";
  if (slowest > 0 && pace < static_cast<double>(kSlowBytesPerSecond)) {
    check.Warn("", "slow: " + text, "look whether the address leads over the fast network "
                                    "(--local-addr), and for other traffic");
  }
  check.Well(text);
}

}  // namespace

void Check::Warn(const std::string& host, std::string what, std::string cure) {
  is_well_ = false;
  findings_.push_back({name_, Severity::kWarning, host, std::move(what), std::move(cure)});
}

void Check::Fail(const std::string& host, std::string what, std::string cure) {
  is_well_ = false;
  findings_.push_back({name_, Severity::kFailure, host, std::move(what), std::move(cure)});
}

void Check::Skip(std::string why) {
  is_well_ = false;
  findings_.push_back({name_, Severity::kSkipped, "", std::move(why)});
}

void Check::Well(std::string what) {
  if (is_well_) findings_.push_back({name_, Severity::kOk, "", std::move(what)});
}

std::vector<std::string> LabelsOf(const std::vector<DoctorFacts>& hosts) {
  std::vector<std::string> labels;
  for (size_t host = 0; host < hosts.size(); ++host) {
    const auto same = std::count_if(hosts.begin(), hosts.end(), [&](const auto& one) {
      return one.host == hosts[host].host;
    });
    labels.push_back(hosts[host].host +
                     (same > 1 ? " (" + std::to_string(host + 1) + ")" : ""));
  }
  return labels;
}

std::vector<Finding> AllFindings(const DoctorView& view) {
  KEEL_CHECK(!view.hosts.empty(), "the doctor's own host is always there");
  return Examination(view).Run();
}

}  // namespace keel
