// DoctorFindings: concludes from what hosts know about themselves and each other what is wrong,
// where, and how to cure it.
// Promises   pure; every check gives at least one finding, even if all is well, so that a reader
//            sees what was checked. Whatever is wrong has a cure.
// Does not   ask anybody (elastic/doctor/facts.h, elastic/doctor/doctor.h), or write for people
//            (elastic/doctor/text.h).
// Threads    pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "elastic/doctor/facts.h"

namespace keel {

// What one host has seen of another.
struct DoctorSight {
  std::string name_number = {};       // that of the other host's name
  std::string name_trouble = {};
  std::string reach_trouble = {};     // empty: it takes our connections
  int64_t round_trip_ns = 0;          // the shortest of several
  int64_t clock_ahead_ns = 0;         // the other host's clock minus ours
  int64_t clock_doubt_ns = 0;         // the possible error of that
  std::string probe_trouble = {};     // empty: its file in the shared directory is seen
  bool operator==(const DoctorSight&) const = default;
};

// How the small all-reduce went on one host.
struct DoctorSum {
  std::string trouble = {};   // empty: it went well, and the sum is right
  int64_t nanos = 0;          // the median of several
  int64_t bytes = 0;          // of the numbers that were added
  bool operator==(const DoctorSum&) const = default;
};

struct DoctorView {
  bool is_alone = true;                          // the job has one host
  bool is_by_directory = false;                  // ... of several, which meet by its lease alone
  bool allow_inexact = false;
  std::string meeting_trouble = {};              // why the hosts could not exchange anything
  std::vector<DoctorFacts> hosts = {};           // those that came; the first one keeps the store
  // By host, then by the host it looked at; empty: that host told nothing.
  std::vector<std::vector<DoctorSight>> sights = {};
  std::vector<DoctorSum> sums = {};              // by host; empty: none was tried
};

enum class Severity { kOk, kSkipped, kWarning, kFailure };

struct Finding {
  std::string check;      // what was checked, in one word
  Severity severity = Severity::kOk;
  std::string host;       // the host it is about; empty: the job
  std::string what;
  std::string cure = {};  // for a warning or a failure
  bool operator==(const Finding&) const = default;
};

// What one host can find out by itself, without asking anybody, before a job of several hosts.
// Returns only what is wrong.
std::vector<Finding> BriefFindings(const DoctorFacts& facts);

// All findings, check by check.
std::vector<Finding> AllFindings(const DoctorView& view);

// Collects the findings of one check: all is well unless something was found wrong.
class Check {
 public:
  Check(std::vector<Finding>& findings, std::string name)
      : findings_(findings), name_(std::move(name)) {}

  void Warn(const std::string& host, std::string what, std::string cure);
  void Fail(const std::string& host, std::string what, std::string cure);
  void Skip(std::string why);
  // Adds this finding unless something was wrong.
  void Well(std::string what);

 private:
  std::vector<Finding>& findings_;
  const std::string name_;
  bool is_well_ = true;
};

// The hosts' names, made distinct if several have the same one: "node0", "node0 (2)".
std::vector<std::string> LabelsOf(const std::vector<DoctorFacts>& hosts);

// Checks of one host by itself. `label` is empty if there is only one host.
struct HostOfJob {
  const DoctorFacts& facts;
  std::string label;
  bool is_alone;          // the job has one host
  bool is_rehearsal;      // all hosts that came are launchers on one machine
};
void CheckInterface(const HostOfJob& host, Check& check);
void CheckOwnName(const HostOfJob& host, Check& check);
void CheckFileLimit(const HostOfJob& host, Check& check);
void CheckSharedMemory(const HostOfJob& host, Check& check);
void CheckVariables(const HostOfJob& host, Check& check);

}  // namespace keel
