// FailureReport and JobSummary: what the launcher says at the end, as text and as JSON.
// Promises   pure functions. The report has torchrun's form (title, "Root Cause (first observed
//            failure)", a line for each fact), since people and programs look for it. The summary
//            tells each event: who, what, when, and what the job did about it. As text, what
//            workers wrote has no character that would confuse a terminal, and line breaks only in
//            the traceback, of which it has some KB; as JSON all of it is there.
// Does not   decide which worker failed first by anything but time: that of its own error file in
//            whole seconds, or else that at which its end was seen.
// Threads    plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "elastic/process/exit_status.h"
#include "elastic/protocol/blame.h"
#include "elastic/report/error_file.h"
#include "elastic/report/lost_output.h"
#include "elastic/report/time_ledger.h"

namespace keel {

struct WorkerFailure {
  int rank = 0;
  int local_rank = 0;
  std::string host;
  int64_t pid = 0;
  ExitStatus status;
  int64_t seen_nanos = 0;             // wall clock, when its end was seen
  std::string error_file;             // empty: it wrote none
  std::optional<WorkerError> error;   // what the file says
};

// The first one; there must be at least one failure.
const WorkerFailure& RootCause(const std::vector<WorkerFailure>& failures);

// `program`: the program that was run, for the title.
std::string FailureReportText(const std::string& program,
                              const std::vector<WorkerFailure>& failures);
Json FailureReportJson(const std::string& program, const std::vector<WorkerFailure>& failures);

// Something that happened to the job, and the job's answer.
struct JobEvent {
  int64_t wall_nanos = 0;
  int64_t epoch = 0;           // during which it happened; 0: before the first
  std::string what;            // one word, for programs: died, hung, host-lost, joined, stop ...
  std::string who;             // "rank 3 on node-b (local rank 1, pid 4711)"
  std::string why;             // "killed by signal 9 (SIGKILL) at step 120"
  std::string answer;          // "the others went on as epoch 2"; empty: none was needed
};

struct JobSummary {
  std::string job;
  int exit_code = 0;
  std::string outcome;         // "finished", "lost quorum: 1 of at least 2 hosts left"
  int64_t started_nanos = 0;   // wall clock
  int64_t ended_nanos = 0;
  int64_t epochs = 0;
  std::vector<JobEvent> events;
  std::string logs;            // the folder; empty: none
  std::vector<LostBytes> lost_output;   // what log files of this host's workers miss
  WorkerTime time;             // of this host's seats
  HostBlame blame;             // of this host
  std::string health;          // what its last health check said; empty: there was none
};

std::string JobSummaryText(const JobSummary& summary);
// A line of the summary, for a job in which nothing happened; empty if no worker told figures.
std::string GoodputLine(const JobSummary& summary);
// A line for each file, indented by two blanks; empty if no file misses anything.
std::string LostOutputText(const std::vector<LostBytes>& lost_output);
Json JobSummaryJson(const JobSummary& summary);

}  // namespace keel
