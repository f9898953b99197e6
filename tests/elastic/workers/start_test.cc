// MakeChildSpec(): what an epoch says of a worker's place reaches its environment.
#include "elastic/workers/start.h"

#include <gtest/gtest.h>

#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

// Hosts with so many workers and such roles, ranked one after the other.
EpochRecord Epoch(const std::vector<std::pair<int, int>>& hosts) {
  EpochRecord record;
  record.number = 1;
  record.store = {"10.0.0.1", 29400, ""};
  for (const auto& [workers, role] : hosts) {
    const int group_rank = static_cast<int>(record.hosts.size());
    const int64_t slot = 10 + group_rank;
    record.hosts.push_back({slot, "i", group_rank, role});
    for (int i = 0; i < workers; ++i) {
      record.workers.push_back({static_cast<int>(record.workers.size()), slot, i, ""});
    }
  }
  return record;
}

Environment Of(const EpochRecord& epoch, int rank) {
  WorkerPlan plan;
  plan.workers = 8;
  WorkerStart start;
  start.epoch = epoch;
  start.rank = rank;
  start.slot = epoch.workers[rank].slot;
  start.index = epoch.workers[rank].index;
  const Result<ChildSpec> spec = MakeChildSpec(plan, start, {});
  EXPECT_OK(spec);
  return spec.ok() ? spec->environment : Environment{};
}

void ExpectOf(const EpochRecord& epoch, int rank, const Environment& expected) {
  const Environment made = Of(epoch, rank);
  for (const auto& [name, value] : expected) {
    const auto found = made.find(name);
    EXPECT_EQ(found == made.end() ? "unset" : found->second, value) << name << " of rank " << rank;
  }
}

// Seven hosts in three roles, as torchrun has it (#111): in each role from 0 on, without gaps.
TEST(WorkerLaunch, RanksOfARoleHaveNoGapsHoweverItsHostsLieBetweenOthers) {
  const EpochRecord epoch = Epoch({{1, 0}, {8, 1}, {2, 0}, {5, 3}, {3, 0}, {2, 3}, {4, 0}});
  const int sizes[] = {10, 8, 0, 7};   // by role
  std::vector<int> next(4, 0);
  for (const EpochWorker& worker : epoch.workers) {
    const int role = epoch.hosts[worker.slot - 10].role;
    ExpectOf(epoch, worker.rank, {{"RANK", std::to_string(worker.rank)},
                                  {"WORLD_SIZE", "25"},
                                  {"ROLE_RANK", std::to_string(next[role]++)},
                                  {"ROLE_WORLD_SIZE", std::to_string(sizes[role])}});
  }
}

TEST(WorkerLaunch, AWorkerKnowsItsHostsPlace) {
  ExpectOf(Epoch({{1, 0}, {3, 0}}), 2,
           {{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "3"}, {"GROUP_RANK", "1"},
            {"GROUP_WORLD_SIZE", "2"}, {"ROLE_RANK", "2"}, {"ROLE_WORLD_SIZE", "4"},
            {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29400"}});
}

TEST(WorkerLaunch, AWorkerThatWaitsForItsEpochIsToldNothingThatOnlyAnEpochCanSay) {
  const Result<ChildSpec> spec = MakeChildSpec({}, {}, {{"RANK", "7"}, {"ROLE_RANK", "7"}});
  ASSERT_OK(spec);
  for (const char* name : {"RANK", "WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE", "MASTER_PORT"}) {
    EXPECT_EQ(spec->environment.count(name), 0u) << name;
  }
}

TEST(WorkerLaunch, AWorkerIsToldTheLeaseOfItsOwnJobOnly) {
  const Environment own = {{"KEEL_LEASE", "/of/another.lease"}};
  const Result<ChildSpec> without = MakeChildSpec({}, {}, own);
  ASSERT_OK(without);
  EXPECT_EQ(without->environment.count("KEEL_LEASE"), 0u);
  WorkerPlan plan;
  plan.lease_folder = "/shared/job.lease";
  const Result<ChildSpec> with = MakeChildSpec(plan, {}, own);
  ASSERT_OK(with);
  EXPECT_EQ(with->environment.at("KEEL_LEASE"), "/shared/job.lease");
}

}  // namespace
}  // namespace keel
