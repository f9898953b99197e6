// Checks of the hosts of a job and of the network between them. Those of what is installed and set
// on each of them are in setup_findings.cc.
#include "elastic/doctor/findings.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/text.h"
#include "elastic/doctor/examination.h"
#include "elastic/launch/meeting.h"
#include "store/own_address.h"

namespace keel {
namespace {

constexpr int64_t kClocksApartNs = 1'000'000'000;
constexpr int64_t kFarNs = 5'000'000;                  // a round trip between zones, or worse
constexpr int64_t kSlowBytesPerSecond = 12'500'000;    // 100 Mbit/s

std::string TimeText(int64_t ns) { return DurationText(Duration(ns)); }

std::string HostsText(int64_t count) {
  return std::to_string(count) + (count == 1 ? " host" : " hosts");
}

}  // namespace

void Examination::Hosts() {
  Check check(findings_, "hosts");
  if (view_.is_alone) return check.Well("the job has this one host, " + labels_[0]);
  if (view_.is_by_directory) {
    return check.Skip("only this host, " + labels_[0] + ", is examined: with --rdzv-backend=dir "
                      "there is no endpoint where the doctors of several hosts could meet, so "
                      "run this on each of them");
  }
  const std::string cure = "start the same command on each host within --doctor-limit, with the "
                           "same token or none; if it runs there already, check the endpoint, its "
                           "port, and firewalls in between";
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
  Same(check, "--nnodes", "give all hosts the same --nnodes", true, [](const DoctorFacts& facts) {
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
  check.Fail("", "no host came with " + JoinList(missing, ", "),
             "start the command with that number on the missing host");
}

void Examination::Store() {
  Check check(findings_, "store");
  int64_t slowest = 0;
  for (size_t host = 0; host < count(); ++host) {
    const DoctorFacts& facts = view_.hosts[host];
    slowest = std::max(slowest, facts.store_nanos);
    if (facts.store_trouble.empty()) continue;
    check.Fail(Label(host), "workers have no store to meet at: " + facts.store_trouble,
               "do as the message says; the log may say more");
  }
  if (!view_.meeting_trouble.empty()) return check.Skip("no store was reached");
  check.Well("the store answers within " + TimeText(slowest));
}

void Examination::Names() {
  Check check(findings_, "names");
  const std::string cure = "add the name to DNS or to /etc/hosts of all hosts; Evenkeel's programs "
                           "use numeric addresses only, but other programs may use names";
  for (size_t host = 0; host < count(); ++host) {
    const DoctorFacts& facts = view_.hosts[host];
    if (!facts.name_trouble.empty()) check.Warn(Label(host), facts.name_trouble, cure);
    CheckOwnName(HostAt(host), check);
    if (facts.address_silent) {
      check.Warn(Label(host), facts.address_trouble + ": each such look-up stalls programs that "
                                                      "ask for the names of their peers",
                 "repair reverse DNS; workers under keelrun do not look names up, unless "
                 "--no-numeric-names is given");
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
                       JoinList(addresses, ", ") + "), so that logs cannot tell them apart",
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
    check.Fail(labels_[from], "it came, but then did not report what it sees",
               "check whether its own doctor still runs, and what it printed");
  }
  Pairs([&](size_t from, size_t to, const DoctorSight& sight) {
    if (!sight.reach_trouble.empty()) {
      return check.Fail(labels_[from],
                        "cannot reach " + labels_[to] + ": " + sight.reach_trouble,
                        "allow all ports between the hosts of a job (workers listen on ports "
                        "that the system picks), or say by --port-range which ones are allowed; "
                        "or give " + labels_[to] + " another --local-addr");
    }
    longest = std::max(longest, sight.round_trip_ns);
    if (sight.round_trip_ns < kFarNs) return;
    check.Warn(labels_[from], "a round trip to " + labels_[to] + " takes " +
                                  TimeText(sight.round_trip_ns) + ": each all-reduce takes longer",
               "use hosts in one zone or rack");
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
                   "'s, so the times in their logs do not match (the job itself compares no "
                   "clocks)",
               "run a time service (chrony, systemd-timesyncd) on all hosts");
  });
  check.Well("the clocks are less than " + TimeText(std::max<int64_t>(most, 1'000'000)) +
             " apart");
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
                           " per second and host) over plain TCP; NCCL may be faster";
  if (slowest > 0 && pace < static_cast<double>(kSlowBytesPerSecond)) {
    check.Warn("", "slow: " + text, "check whether the address belongs to the fast network "
                                    "(--local-addr), and whether other traffic is in the way");
  }
  check.Well(text);
}

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
