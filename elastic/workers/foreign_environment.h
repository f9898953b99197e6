// ForeignEnvironment: the whole environment of a worker, by torchrun's contract, so that any
// program written for torchrun finds what it expects.
// Promises   a pure function: the launcher's own environment, with what the contract sets on top.
//            What the user chose stays: OMP_NUM_THREADS, TORCH_NCCL_ASYNC_ERROR_HANDLING,
//            LD_PRELOAD (ours is added behind), CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES.
// Does not   read it back (elastic/worker_environment.h); start anything.
// Threads    plain values. Errors: kInvalid.
#pragma once

#include <string>

#include "base/environment.h"
#include "base/result.h"
#include "elastic/worker_environment.h"

namespace keel {

struct ForeignWorker {
  WorkerEnvironment place;         // ranks, sizes, and where the epoch's store is
  int group_rank = 0;              // of its host among the epoch's hosts
  int group_world_size = 1;
  int role_rank = 0;               // among the workers of its role
  int role_world_size = 1;
  std::string role = "default";
  int restart_count = 0;
  int restarts_max = 0;
  std::string run_id = "none";
  std::string error_file;          // empty: it shall write none
  std::string signals_to_handle;   // "SIGTERM,SIGINT"; empty: left unset
  // All get LOCAL_RANK 0, and each sees only its own GPU.
  bool virtual_local_rank = false;
  int control_fd = -1;             // the worker's descriptor of the link; -1: none
  std::string preload;             // path of the library with numeric names; empty: none
  std::string lease_folder;        // of the job's lease; empty: none
};

Result<Environment> ForeignEnvironment(const ForeignWorker& worker, const Environment& own);

}  // namespace keel
