// A manifest, then retention, then word of both.
#include "trainer/save/committer.h"

#include "base/log.h"
#include "base/thread_priority.h"
#include "ckpt/retention.h"

namespace keel {

Committer::Committer(Files& files, Clock& clock, const CheckpointConfig& config,
                     const Fence& fence, HeldDirectory& directory, Mirror& mirror,
                     SaveSpeed& speed)
    : files_(files), clock_(clock), config_(config), fence_(fence), directory_(directory),
      mirror_(mirror), speed_(speed) {}

void Committer::Begin(uint64_t step, std::unique_ptr<Save> save, bool is_awaited) {
  step_ = step;
  if (!is_awaited) is_hurried_ = false;
  std::promise<Outcome> told;
  commit_ = told.get_future();
  retention_ = std::async(std::launch::async, [=, this, save = std::move(save),
                                               told = std::move(told),
                                               before = std::move(retention_)]() mutable {
    if (!is_awaited) LetOthersFirst();
    Outcome outcome = Commit(step, std::move(save));
    const bool is_there = outcome.status.ok();
    told.set_value(std::move(outcome));
    if (before.valid()) before.wait();
    if (is_there) Retain(step);
  });
}

bool Committer::AwaitDone(Duration limit) const {
  if (is_hurried_) return commit_.wait_for(limit) == std::future_status::ready;
  return retention_.wait_for(limit) == std::future_status::ready;
}

void Committer::Collect() {
  if (under_way() && AwaitDone(Duration(0))) (void)Await();
}

Status Committer::Await() {
  if (!under_way()) return Ok();
  const Outcome outcome = commit_.get();
  Tell(step_, outcome);
  if (!is_hurried_) retention_.get();
  return outcome.status;
}

Committer::Outcome Committer::Commit(uint64_t step, std::unique_ptr<Save> save) const {
  const TimePoint begin = clock_.Monotonic();
  Outcome outcome;
  // Whoever is fenced does not take hold anew, either: the directory is others' by now.
  Status allowed = fence_.Check();
  if (allowed.ok()) allowed = directory_.HoldAnewWhereLost();
  auto report = allowed.ok()
                    ? save->Commit(clock_.WallNanos(), [this] { return fence_.Check(); })
                    : Result<CommitReport>(allowed.error());
  if (!report.ok()) {
    save->Abandon();
    outcome.status = report.error();
    return outcome;
  }
  outcome.report = std::move(*report);
  save.reset();
  outcome.took = clock_.Monotonic() - begin;
  mirror_.Wake(step);
  return outcome;
}

void Committer::Retain(uint64_t step) const {
  RetentionPolicy retention = config_.retention;
  retention.needed = mirror_.under_way();
  retention.made = step;
  const auto retained = ApplyRetention(files_, config_.root, retention, /*dry_run=*/false,
                                       [this] { return is_hurried_.load(); });
  if (!retained.ok()) {
    LogWarn("retention-failed", {{"dir", config_.root}, {"reason", retained.error().message}});
  }
}

void Committer::Tell(uint64_t step, const Outcome& outcome) {
  if (!outcome.status.ok()) {
    const Error& error = outcome.status.error();
    if (error.code == Code::kStaleEpoch) {
      return LogError("checkpoint-fenced", {{"step", step}, {"reason", error.message}});
    }
    return LogError("save-failed", {{"step", step}, {"reason", error.message}});
  }
  speed_.OnCommitted(outcome.took);
  committed_ = step;
  LogInfo("checkpoint", {{"step", step},
                         {"dir", outcome.report.step_dir},
                         {"bytes", outcome.report.stored_bytes},
                         {"commit_ms", outcome.took / std::chrono::milliseconds(1)}});
}

}  // namespace keel
