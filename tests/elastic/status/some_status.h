// Jobs to be watched, for the tests of what is shown of them.
#pragma once

#include <string>
#include <vector>

#include "elastic/status/job_status.h"

namespace keel {

constexpr int64_t kSecondNanos = 1'000'000'000;
constexpr int64_t kBegin = 1'790'000'000 * kSecondNanos;   // in the year 2026

inline EpochRecord EpochOf(int64_t number, size_t workers, size_t hosts,
                           const std::string& reason = "all are here") {
  EpochRecord epoch;
  epoch.number = number;
  epoch.reason = reason;
  epoch.workers.resize(workers);
  epoch.hosts.resize(hosts);
  return epoch;
}

inline BreakRecord BreakOf(int64_t epoch, BreakCause cause, const std::string& reason) {
  BreakRecord record;
  record.epoch = epoch;
  record.cause = cause;
  record.reason = reason;
  return record;
}

inline StatusHost HostOf(int64_t slot, size_t seats, int64_t step, const std::string& name = "") {
  StatusHost host{slot, slot == 0, "", {}};
  host.record.incarnation = "i" + std::to_string(slot);
  host.record.host = name.empty() ? "node" + std::to_string(slot) : name;
  host.record.address = "10.0.0." + std::to_string(slot);
  host.record.kind = JobKind::kInPlace;
  if (slot == 1) {
    host.record.blame = {1, 2, 0, 0, 0, {40, 3, 20}};
    host.record.health = kHealthGood;
  }
  for (size_t i = 0; i < seats; ++i) {
    SeatRecord seat;
    seat.state = SeatState::kRunning;
    seat.epoch = 1;
    seat.rank = static_cast<int>(slot * static_cast<int64_t>(seats) + static_cast<int64_t>(i));
    seat.position.step = step;
    host.record.seats.push_back(seat);
  }
  return host;
}

inline StatusFigures FiguresOf(size_t index, int64_t steps, std::optional<double> loss,
                               const std::string& worker = "w") {
  StatusFigures figures{index, static_cast<int>(index), worker + std::to_string(index), {}};
  figures.told.step = figures.told.steps = steps;
  figures.told.loss = loss;
  figures.told.samples = 64 * steps;
  figures.told.parts = {{"forward", steps * 30'000'000}, {"vote", steps * 10'000'000}};
  return figures;
}

inline WorkerTime SomeTime() {
  WorkerTime time;
  time.knows_steps = true;
  time.steps = std::chrono::seconds(90);
  time.starting = std::chrono::seconds(10);
  return time;
}

inline StatusJob JobOf(const std::string& name = "run7") {
  return {name, "node0", "train.py", "10.0.0.0:29400", true, kBegin};
}

// 64 hosts, an epoch and a break a second, and 10,000 events on top, all as long as they may be.
inline JobStatus BigStatus() {
  JobStatus status(JobOf());
  std::vector<StatusHost> hosts;
  for (int64_t slot = 0; slot < 64; ++slot) hosts.push_back(HostOf(slot, 8, 1000));
  status.OnHosts(hosts, kBegin);
  const std::string words(5000, '<');
  int64_t now = kBegin;
  for (int64_t i = 1; i <= 2500; ++i) {
    now += kSecondNanos;
    status.OnEpoch(EpochOf(i, 512, 64, words), now);
    status.OnEvent("death", words, now);
    status.OnBreak(BreakOf(i, BreakCause::kDied, words), now);
    status.OnSaved(i, now);
    status.OnFigures({FiguresOf(0, i, 1.0 / static_cast<double>(i)), FiguresOf(1, i, 0.5)},
                     SomeTime(), now);
  }
  return status;
}

}  // namespace keel
