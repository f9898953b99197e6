// From a place in an epoch to a ChildSpec.
#include "elastic/workers/start.h"

#include <algorithm>
#include <set>

#include "elastic/workers/foreign_environment.h"
#include "elastic/workers/process.h"

namespace keel {
namespace {

// The variables that only an epoch can set.
constexpr const char* kOfAnEpoch[] = {"RANK",       "WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE",
                                      "GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR",
                                      "MASTER_PORT"};

// The place among the workers of all hosts with this host's role, in the order of ranks.
void PlaceInRole(const EpochRecord& epoch, const WorkerStart& start, ForeignWorker& worker) {
  const auto own = std::find_if(epoch.hosts.begin(), epoch.hosts.end(),
                                [&](const EpochHost& host) { return host.slot == start.slot; });
  std::set<int64_t> slots;
  for (const EpochHost& host : epoch.hosts) {
    if (own != epoch.hosts.end() && host.role == own->role) slots.insert(host.slot);
  }
  worker.role_rank = worker.role_world_size = 0;
  for (const EpochWorker& other : epoch.workers) {
    if (slots.count(other.slot) == 0) continue;
    ++worker.role_world_size;
    worker.role_rank += other.rank < start.rank ? 1 : 0;
  }
}

void Place(const EpochRecord& epoch, const WorkerStart& start, ForeignWorker& worker) {
  WorkerEnvironment& place = worker.place;
  place.rank = start.rank;
  place.world_size = static_cast<int>(epoch.workers.size());
  place.local_world_size = static_cast<int>(
      std::count_if(epoch.workers.begin(), epoch.workers.end(),
                    [&](const EpochWorker& other) { return other.slot == start.slot; }));
  place.master_address = epoch.store.address;
  place.master_port = static_cast<uint16_t>(epoch.store.port);
  worker.group_world_size = static_cast<int>(epoch.hosts.size());
  for (const EpochHost& host : epoch.hosts) {
    if (host.slot == start.slot) worker.group_rank = host.group_rank;
  }
  worker.restart_count = epoch.restarts;
  PlaceInRole(epoch, start, worker);
}

}  // namespace

Result<ChildSpec> MakeChildSpec(const WorkerPlan& plan, const WorkerStart& start,
                                const Environment& own) {
  ForeignWorker worker;
  worker.place.local_rank = start.index;
  worker.place.local_world_size = plan.workers;
  if (start.epoch) Place(*start.epoch, start, worker);
  worker.role = plan.role;
  worker.restarts_max = plan.restarts_max;
  worker.run_id = plan.run_id;
  worker.error_file = start.logs.error_file;
  worker.signals_to_handle = plan.signals_text;
  worker.virtual_local_rank = plan.virtual_local_rank;
  worker.control_fd = kWorkerControlFd;
  worker.preload = plan.numeric_names_library;
  worker.lease_folder = plan.lease_folder;
  ChildSpec spec;
  KEEL_TRY_ASSIGN(spec.environment, ForeignEnvironment(worker, own));
  if (!start.epoch) {
    for (const char* name : kOfAnEpoch) spec.environment.erase(name);
  }
  spec.polite = start.polite;
  spec.argv = plan.program.CommandLine(start.index);
  spec.in = Stream::Inherit();
  spec.out = start.logs.out.AsStream();
  spec.err = start.logs.err.AsStream();
  return spec;
}

}  // namespace keel
