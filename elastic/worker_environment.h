// WorkerEnvironment: who a worker is, by the variables that torchrun and similar launchers set.
// Promises   writing and reading are inverse to each other. An error names the variable that is
//            missing or no sensible number, and what is expected.
// Does not   hold what Python's part of the contract adds (restart counts, error files).
// Threads    a plain value.
// Errors     kInvalid.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/environment.h"

namespace keel {

// The greatest WORLD_SIZE.
inline constexpr int kWorldSizeMax = 1 << 20;

struct WorkerEnvironment {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  std::string master_address = "127.0.0.1";  // where the store is
  uint16_t master_port = 0;

  // RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT.
  Environment Variables() const;
};

// Whether a launcher started this process: RANK is there.
bool HasWorkerEnvironment(const Environment& environment);

// LOCAL_RANK and LOCAL_WORLD_SIZE default to RANK and WORLD_SIZE; the rest must be there.
Result<WorkerEnvironment> ReadWorkerEnvironment(const Environment& environment);

}  // namespace keel
