// Examination: all checks of one look at a job's hosts, in the order in which they are told.
// Promises   pure; Run() gives at least one finding for each check.
// Threads    one. Keeps the view by reference, which must outlive it.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "elastic/doctor/findings.h"

namespace keel {

// It has more than 25 methods because each check of the list in Run() is one.
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
    Health();
    Gpus();
    Processors();
    Directory();
    Lease();
    Buckets();
    Space();
    Each("shared-memory", CheckSharedMemory, SharedMemoryText());
    Each("files", CheckFileLimit, FilesText());
    Page();
    Variables();
    AllReduce();
    return std::move(findings_);
  }

 private:
  size_t count() const { return view_.hosts.size(); }
  // In a job of one host nobody needs to be told which one is meant.
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
  // Each pair that was looked at.
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
    if (view_.is_by_directory) check.Skip("only this host is examined");
    if (view_.is_alone || view_.is_by_directory) return true;
    if (count() < 2) check.Skip("no other host came");
    return count() < 2;
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
  void Health();
  void Gpus();
  void Processors();
  void Directory();
  void Lease();
  void Buckets();
  void CheckBucket(size_t host, const BucketFacts& bucket, Check& check);
  void Space();
  void Page();
  void Variables();
  void AllReduce();
  // Fails for each host that has told this trouble.
  void FailEach(Check& check, std::string DoctorFacts::*trouble, const std::string& cure) const {
    for (size_t host = 0; host < count(); ++host) {
      const std::string& what = view_.hosts[host].*trouble;
      if (!what.empty()) check.Fail(Label(host), what, cure);
    }
  }
  // Warns where hosts have different values; "" counts as one where `even_none`.
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

}  // namespace keel
