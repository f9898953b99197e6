// JobStory: what happened to the job as this host saw it, for the summary at the end.
// Promises   each break, and each death of an in-place worker, is told with what the job did about
//            it; the failures are those of the last epoch that had any.
// Threads    one.
#pragma once

#include <string>
#include <vector>

#include "elastic/protocol/records.h"
#include "elastic/report/failures.h"
#include "elastic/report/launcher_event.h"

namespace keel {

class JobStory {
 public:
  JobStory(std::string job, int64_t started_nanos);

  void On(const LauncherEvent& event, int64_t wall_nanos);

  void OnEpoch(const EpochRecord& epoch, int64_t wall_nanos);
  void OnBreak(const BreakRecord& record, int64_t wall_nanos);
  // An in-place worker ended by itself, inside or outside an epoch: that cost a restart.
  void OnDeath(const std::string& reason, int64_t wall_nanos);
  void OnFailure(WorkerFailure failure, int64_t epoch);
  // Somebody wants this host, or all hosts, to stop: it is told once.
  void OnStop(const std::string& reason, int64_t wall_nanos);
  void OnJobStops(const std::string& reason, int64_t wall_nanos);
  // How the time of this host's seats was spent.
  void OnTime(const WorkerTime& time) { summary_.time = time; }
  void OnBlame(const HostBlame& blame, const std::string& health) {
    summary_.blame = blame;
    summary_.health = health;
  }
  void OnLostOutput(std::vector<LostBytes> lost) { summary_.lost_output = std::move(lost); }
  void OnEnd(int exit_code, const std::string& outcome, int64_t wall_nanos);

  const JobSummary& summary() const { return summary_; }
  const std::vector<WorkerFailure>& failures() const { return failures_; }

 private:
  void Answer(const std::string& answer);
  bool IsTold(int64_t epoch, const std::string& why) const;
  // Forgets that a break told of this death, if one did.
  bool TakeToldByBreak(const std::string& why);

  JobSummary summary_;
  int64_t epoch_ = 0;
  int64_t failed_epoch_ = 0;
  std::vector<WorkerFailure> failures_;
  std::vector<std::string> deaths_of_break_;   // of this epoch, told by OnBreak() alone so far
};

}  // namespace keel
