// What one decision of the coordinator costs while an epoch runs: with many hosts, with many
// workers, and after many hosts have come and gone.
#include <benchmark/benchmark.h>

#include "elastic/board/job_watch.h"
#include "elastic/decisions/membership.h"

namespace keel {
namespace {

constexpr TimePoint kNow{std::chrono::hours(1)};

MemberRecord RecordOf(int64_t slot, int seats) {
  MemberRecord record;
  record.incarnation = "host" + std::to_string(slot);
  record.host = "node-" + std::to_string(slot);
  record.kind = JobKind::kInPlace;
  record.epoch = {1, "id", 1, "", 0, 0, 0};
  for (int i = 0; i < seats; ++i) {
    SeatRecord seat;
    seat.worker = record.incarnation + "/" + std::to_string(i);
    seat.state = SeatState::kRunning;
    seat.epoch = 1;
    seat.position.step = 10;
    record.seats.push_back(std::move(seat));
  }
  return record;
}

// `gone` hosts had the first slots, as after weeks on spot machines.
JobWatch Running(int64_t hosts, int seats, int64_t gone) {
  const BoardKeys keys("job", "g");
  JobWatch watch("host" + std::to_string(gone), keys);
  watch.NoteOpened(kNow);
  Decision formed;
  EpochRecord& epoch = formed.epoch;
  epoch.number = 1;
  epoch.id = "id";
  epoch.kind = JobKind::kInPlace;
  for (int64_t slot = 0; slot < gone + hosts; ++slot) {
    const MemberRecord record = RecordOf(slot, seats);
    watch.NoteMember(slot, MemberText(record), "1", kNow);
    if (slot < gone) {
      watch.NoteGone(slot, "it left");
      continue;
    }
    epoch.hosts.push_back({slot, record.incarnation, static_cast<int>(epoch.hosts.size()), 0, 0});
    for (int i = 0; i < seats; ++i) {
      const int rank = static_cast<int>(epoch.workers.size());
      epoch.workers.push_back({rank, slot, i, record.seats[i].worker});
    }
  }
  watch.NoteEpoch(epoch, formed, kNow);
  watch.NoteAllRead(kNow);
  return watch;
}

void DecideWhileItRuns(benchmark::State& state) {
  const JobWatch watch =
      Running(state.range(0), static_cast<int>(state.range(1)), state.range(2));
  JobPolicy policy;
  policy.hosts_max = static_cast<int>(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(Decide(watch.view(), policy, kNow));
}

BENCHMARK(DecideWhileItRuns)
    ->ArgNames({"hosts", "seats", "gone"})
    ->Args({100, 8, 0})
    ->Args({1000, 1, 0})
    ->Args({1000, 8, 0})
    ->Args({1000, 8, 9000})
    ->Args({100, 8, 9900})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace keel

BENCHMARK_MAIN();
