// Some variables the contract sets, some it only proposes, some it changes.
#include "elastic/workers/foreign_environment.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "elastic/protocol/control_link.h"

namespace keel {
namespace {

constexpr const char* kVisibleDevices = "CUDA_VISIBLE_DEVICES";
constexpr const char* kVisibleToHip = "HIP_VISIBLE_DEVICES";   // beats the other one on ROCm

Environment SetAlways(const ForeignWorker& worker) {
  Environment set = worker.place.Variables();
  set["GROUP_RANK"] = std::to_string(worker.group_rank);
  set["GROUP_WORLD_SIZE"] = std::to_string(worker.group_world_size);
  set["ROLE_RANK"] = std::to_string(worker.role_rank);
  set["ROLE_WORLD_SIZE"] = std::to_string(worker.role_world_size);
  set["ROLE_NAME"] = worker.role;
  set["TORCHELASTIC_RESTART_COUNT"] = std::to_string(worker.restart_count);
  set["TORCHELASTIC_MAX_RESTARTS"] = std::to_string(worker.restarts_max);
  set["TORCHELASTIC_RUN_ID"] = worker.run_id;
  // With this, Python's env:// connects to the epoch's store as a client, and never hosts one.
  set["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  set["TORCHELASTIC_ERROR_FILE"] = worker.error_file;
  if (!worker.signals_to_handle.empty()) {
    set["TORCHELASTIC_SIGNALS_TO_HANDLE"] = worker.signals_to_handle;
  }
  if (!worker.lease_folder.empty()) set[kLeaseVariable] = worker.lease_folder;
  if (worker.control_fd >= 0) set[kControlFdVariable] = std::to_string(worker.control_fd);
  return set;
}

void Propose(const ForeignWorker& worker, Environment& environment) {
  environment.emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  if (worker.place.local_world_size > 1) environment.emplace("OMP_NUM_THREADS", "1");
}

// The dynamic linker accepts colons and blanks between the names.
bool Names(const std::string& list, const std::string& library) {
  std::string colons = list;
  std::replace(colons.begin(), colons.end(), ' ', ':');
  const std::vector<std::string> names = SplitList(colons, ':');
  return std::find(names.begin(), names.end(), library) != names.end();
}

void AddPreload(const std::string& library, Environment& environment) {
  if (library.empty()) return;
  std::string& list = environment["LD_PRELOAD"];
  if (!Names(list, library)) list += (list.empty() ? "" : ":") + library;
}

Status NarrowDevices(const ForeignWorker& worker, Environment& environment) {
  if (!worker.virtual_local_rank) return Ok();
  const size_t index = static_cast<size_t>(worker.place.local_rank);
  environment["LOCAL_RANK"] = "0";
  const bool is_hip = !VariableOf(environment, kVisibleToHip).empty();
  const char* const source = is_hip ? kVisibleToHip : kVisibleDevices;
  const auto given = environment.find(source);
  if (given == environment.end()) {
    environment[kVisibleDevices] = std::to_string(worker.place.local_rank);
    return Ok();
  }
  const std::vector<std::string> devices = SplitList(given->second);
  if (index >= devices.size()) {
    return Error{Code::kInvalid, "--virtual-local-rank needs a GPU for local rank " +
                                     std::to_string(index) + ", but " + source + "=" +
                                     Shown(given->second) + " names only " +
                                     std::to_string(devices.size())};
  }
  given->second = devices[index];
  if (is_hip) environment[kVisibleDevices] = devices[index];
  return Ok();
}

}  // namespace

Result<Environment> ForeignEnvironment(const ForeignWorker& worker, const Environment& own) {
  Environment environment = own;
  // Our own variables lead to our own supervisor, if there is one above us, and to its job's lease.
  environment.erase(kControlFdVariable);
  environment.erase(kLeaseVariable);
  environment = With(std::move(environment), SetAlways(worker));
  Propose(worker, environment);
  AddPreload(worker.preload, environment);
  KEEL_TRY(NarrowDevices(worker, environment));
  return environment;
}

}  // namespace keel
