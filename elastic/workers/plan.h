// WorkerPlan: what all workers of one host are started with, made by WorkerPlanFrom()
// (elastic/launch/policies.h), or by hand in tests.
// Threads    a plain value.
#pragma once

#include <string>

#include "elastic/workers/logs.h"
#include "elastic/workers/program.h"

namespace keel {

struct WorkerPlan {
  std::string run_id = "none";           // of the job
  int workers = 1;                       // on this host
  std::string role = "default";
  WorkerProgram program;
  LogOptions logs;
  int restarts_max = 0;                  // told to workers, like the rest
  std::string signals_text;
  bool virtual_local_rank = false;
  std::string numeric_names_library;     // to be preloaded; empty: none
  std::string lease_folder;              // of the job's lease, absolute; empty: none
  int spares = 0;                        // processes that wait to become a worker
};

}  // namespace keel
