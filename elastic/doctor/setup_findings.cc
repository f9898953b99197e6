// Checks of what is installed and set on the hosts of a job: programs, devices, space, variables.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "base/text.h"
#include "elastic/doctor/examination.h"
#include "elastic/workers/logs.h"

namespace keel {
namespace {

constexpr uint64_t kDiskEnough = uint64_t{1} << 30;
constexpr uint64_t kLogSpaceEnough = uint64_t{100} << 20;
// A store's clock is read to the second, and some time after it was told.
constexpr int64_t kStoreClockDoubt = 60'000'000'000;

}  // namespace

void Examination::Versions() {
  Check check(findings_, "versions");
  Same(check, "Evenkeel's version", "install the same release on all hosts", true,
       [](const DoctorFacts& facts) { return facts.version; });
  Same(check, "the protocol's version", "install the same release on all hosts", true,
       [](const DoctorFacts& facts) { return std::to_string(facts.protocol); });
  Same(check, "LibTorch", "install the same LibTorch on all hosts: other kernels give other bits, "
       "and workers with other fingerprints are refused without --allow-inexact",
       !view_.allow_inexact, [](const DoctorFacts& facts) { return facts.torch; });
  const DoctorFacts& first = view_.hosts.front();
  check.Well("Evenkeel " + first.version + ", protocol " + std::to_string(first.protocol) +
             ", LibTorch " + (first.torch.empty() ? "not loaded" : first.torch));
}

void Examination::Program() {
  Check check(findings_, "program");
  FailEach(check, &DoctorFacts::program_trouble, "put the program there, or correct its name");
  const bool any = std::any_of(view_.hosts.begin(), view_.hosts.end(),
                               [](const auto& one) { return !one.program.empty(); });
  if (!any) return check.Skip("no program was named on the command line");
  Same(check, "the program", "give all hosts the same command", true,
       [](const DoctorFacts& facts) { return facts.program; }, true);
  Same(check, "the program's file", "copy the same build to all hosts", false,
       [](const DoctorFacts& facts) { return facts.program_digest.substr(0, 12); });
  check.Well(view_.hosts.front().program + " can be started");
}

void Examination::Health() {
  Check check(findings_, "health");
  FailEach(check, &DoctorFacts::health_trouble,
           "mend what it complains of, or use another host; if the host is well, correct the "
           "command of --health-check");
  const bool any = std::any_of(view_.hosts.begin(), view_.hosts.end(),
                               [](const auto& one) { return one.has_health_check; });
  if (!any) return check.Skip("no --health-check was given");
  check.Well("the health check finds nothing wrong");
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
  Same(check, "the set of GPUs", "use hosts of one kind: the slowest GPU sets the pace, and other "
       "kinds give other bits", false, models);
  Same(check, "the GPU driver", "install the same driver on all hosts", false,
       [](const DoctorFacts& facts) { return facts.driver; });
  for (size_t host = 0; host < count(); ++host) {
    const DoctorFacts& facts = view_.hosts[host];
    const auto gpus = static_cast<int64_t>(facts.gpus.size());
    if (gpus == 0 || facts.workers <= gpus) continue;
    check.Warn(Label(host), std::to_string(facts.workers) + " workers share " +
                                std::to_string(gpus) + " GPUs, which NCCL refuses",
               "give --nproc-per-node=gpu, or check which GPUs CUDA_VISIBLE_DEVICES hides");
  }
  const DoctorFacts& first = view_.hosts.front();
  check.Well(models(first) + (first.driver.empty() ? "" : ", driver " + first.driver));
}

void Examination::Processors() {
  Check check(findings_, "processors");
  for (size_t host = 0; host < count(); ++host) {
    if (view_.hosts[host].kernels != "DEFAULT") continue;
    check.Warn(Label(host), "its processor lacks AVX2, which portable numerics need",
               "use another host, or native numerics, whose bits differ between kinds of hosts");
  }
  std::set<std::string> kinds;
  for (const DoctorFacts& facts : view_.hosts) {
    if (!facts.kernels.empty()) kinds.insert(facts.kernels);
  }
  const std::string all = JoinList({kinds.begin(), kinds.end()}, " and ");
  const char* const note = kinds.size() > 1 ? ": portable numerics give the same bits on all" : "";
  check.Well(all.empty() ? "the processors are of a kind without AVX" : all + note);
}

void Examination::Directory() {
  Check check(findings_, "directory");
  const bool any = std::any_of(view_.hosts.begin(), view_.hosts.end(),
                               [](const auto& one) { return !one.directory.empty(); });
  if (!any) return check.Skip("no directory was named: give --doctor-dir that of the checkpoints");
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
                 "free some space (`keel gc` removes old checkpoints): a checkpoint holds the "
                 "model and the state of the optimizer, often three times the size of the model");
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

void Examination::Lease() {
  Check check(findings_, "lease");
  const bool any = std::any_of(view_.hosts.begin(), view_.hosts.end(),
                               [](const auto& one) { return !one.lease.empty(); });
  if (!any) return check.Skip("the job has none: see --lease");
  std::vector<std::string> there;
  for (size_t host = 0; host < count(); ++host) {
    const DoctorFacts& facts = view_.hosts[host];
    const bool is_there = !facts.lease.empty() && !facts.is_lease_missing;
    if (is_there && facts.lease_trouble.empty()) there.push_back(labels_[host]);
  }
  for (size_t host = 0; host < count(); ++host) {
    const DoctorFacts& facts = view_.hosts[host];
    if (facts.lease.empty()) {
      check.Fail(Label(host), "no directory for the lease is named here, as it is on other hosts",
                 "give all hosts the same --lease");
    }
    if (facts.is_lease_missing && !there.empty()) {
      check.Warn(Label(host), facts.lease + " is not there, but that of " + JoinList(there, ", ") +
                                  " is: is it mounted here? If not, the job makes one that the "
                                  "other hosts do not see",
                 "mount it, or name a directory that all hosts share with --lease");
    }
    if (facts.lease_trouble.empty()) continue;
    const std::string what = facts.lease + " cannot hold the job's lease: " + facts.lease_trouble;
    const char* const cure = "name a directory that all hosts share and that this user may write, "
                             "of a file system where mkdir and rename are atomic (NFS, Lustre, "
                             "CephFS); mount it, or make it once";
    if (facts.is_lease_found) {
      check.Warn(Label(host), what + "; the job has none", cure);
    } else {
      check.Fail(Label(host), what, cure);
    }
  }
  const bool is_nowhere = std::all_of(view_.hosts.begin(), view_.hosts.end(),
                                      [](const auto& one) { return one.is_lease_missing; });
  const std::string& lease = view_.hosts.front().lease;
  if (is_nowhere) return check.Skip(lease + " is not there yet: the job will make it");
  check.Well(lease + " can hold the lease: of two claims of one name, one "
             "succeeds");
}

void Examination::CheckBucket(size_t host, const BucketFacts& bucket, Check& check) {
  const std::string& place = bucket.place;
  if (!bucket.trouble.empty()) {
    check.Fail(Label(host), place + " cannot be used: " + bucket.trouble,
               "these credentials must put, read, list and remove objects below it, and list and "
               "end uploads in parts (s3:PutObject, GetObject, DeleteObject, "
               "AbortMultipartUpload, ListBucket, ListBucketMultipartUploads, "
               "ListMultipartUploadParts)");
    return;
  }
  if (std::abs(bucket.clock_ahead_ns) > kStoreClockDoubt) {
    const bool is_behind = bucket.clock_ahead_ns > 0;
    check.Warn(Label(host), "this host's clock is " +
                                DurationText(Duration(std::abs(bucket.clock_ahead_ns))) +
                                (is_behind ? " behind" : " ahead of") + " that of " + place,
               "set it, for example by NTP: stores refuse requests of other times");
  }
  if (!bucket.other_region.empty()) {
    check.Warn(Label(host), place + " is in the region " + bucket.other_region,
               "set AWS_REGION=" + bucket.other_region +
                   "; a bucket in the machines' own region is quicker, and costs no transfer");
  }
  if (bucket.ends_unfinished == false) {
    check.Warn(Label(host), "no rule of " + place + " ends uploads that nobody finishes",
               "add one (AbortIncompleteMultipartUpload, after some days): they are billed, and "
               "only a job or `keel gc` there ends them");
  }
  if (bucket.keeps_versions == true) {
    check.Warn(Label(host), place + " keeps versions of what is removed",
               "suspend versioning there, or let old versions expire: retention frees nothing, "
               "and all checkpoints stay billed");
  }
}

void Examination::Buckets() {
  Check check(findings_, "bucket");
  std::set<std::string> named;
  bool is_known = true;
  for (size_t host = 0; host < count(); ++host) {
    for (const BucketFacts& bucket : view_.hosts[host].buckets) {
      CheckBucket(host, bucket, check);
      is_known = is_known && bucket.ends_unfinished && bucket.keeps_versions;
      named.insert(bucket.place);
    }
  }
  if (named.empty()) return check.Skip("the command names none");
  check.Well(JoinList({named.begin(), named.end()}, ", ") +
             " can be saved in: of two puts of one key one is refused" +
             (is_known ? "" : "; which rules are set there (old uploads, versions) may not be "
                              "asked by these credentials, or is not known to the store"));
}

void Examination::Space() {
  Check check(findings_, "disk");
  const DoctorFacts* kept = nullptr;
  for (size_t host = 0; host < count(); ++host) {
    const DoctorFacts& facts = view_.hosts[host];
    if (facts.log_directory == kNoLogs) continue;
    if (kept == nullptr) kept = &facts;
    if (!facts.log_trouble.empty()) {
      check.Fail(Label(host), "no logs can be kept in " + facts.log_directory + ": " +
                                  facts.log_trouble,
                 "let this user make folders there, or give another --log-dir");
    } else if (facts.log_space.total == 0) {
      check.Warn(Label(host), "the free space of the log folder, " + facts.log_directory +
                                  ", cannot be read",
                 "look whether its file system can hold logs, or give another --log-dir");
    } else if (facts.log_space.free < kLogSpaceEnough) {
      check.Warn(Label(host), "only " + BytesText(facts.log_space.free) + " are free for logs in " +
                                  facts.log_directory,
                 "free some space, or give another --log-dir");
    }
  }
  if (kept == nullptr) return check.Skip(std::string("no logs are kept: --log-dir=") + kNoLogs);
  check.Well(BytesText(kept->log_space.free) + " are free for logs in " + kept->log_directory);
}

void Examination::Page() {
  Check check(findings_, "status");
  FailEach(check, &DoctorFacts::status_trouble,
           "give --status an address of this host and a port that is free there (ss -ltnp shows "
           "who has which)");
  std::set<std::string> places;
  for (const DoctorFacts& facts : view_.hosts) {
    if (!facts.status.empty()) places.insert(facts.status);
  }
  if (places.empty()) return check.Skip("no --status was given");
  check.Well("the status page can be at " + JoinList({places.begin(), places.end()}, ", "));
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

// NCCL takes some for granted to be the same everywhere; the interface is each host's own.
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
    Same(check, name, "give it the same value on all hosts: workers that choose differently hang",
         false, [&](const DoctorFacts& facts) { return VariableIn(facts.environment, name); },
         true);
  }
  const std::string all = JoinList({names.begin(), names.end()}, ", ");
  check.Well(all.empty() ? "no variable of NCCL or Gloo is set"
                         : "none of these does harm: " + all);
}

}  // namespace keel
