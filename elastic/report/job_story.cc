// Keeps events in the order in which they were seen.
#include "elastic/report/job_story.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace keel {
namespace {

constexpr const char* kStop = "stop";

bool IsOneDeath(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && (a.starts_with(b) || b.starts_with(a));
}

}  // namespace

JobStory::JobStory(std::string job, int64_t started_nanos) {
  summary_.job = std::move(job);
  summary_.started_nanos = started_nanos;
}

void JobStory::On(const LauncherEvent& event, int64_t at) {
  if (const auto* const seen = std::get_if<EpochSeen>(&event)) {
    OnEpoch(seen->epoch, at);
  } else if (const auto* const broken = std::get_if<BreakSeen>(&event)) {
    OnBreak(broken->record, at);
  } else if (const auto* const stop = std::get_if<StopSeen>(&event)) {
    OnJobStops(stop->stop.reason, at);
  } else if (const auto* const failed = std::get_if<WorkerFailed>(&event)) {
    if (failed->in_place) OnDeath(failed->who + " " + failed->how, at);
    OnFailure(failed->failure, failed->epoch);
  } else if (const auto* const ended = std::get_if<WorkerEnded>(&event)) {
    const bool is_of_it = !failures_.empty() && ended->epoch == failed_epoch_;
    if (ended->stopped && is_of_it) failures_.push_back(*ended->stopped);
  } else if (const auto* const asked = std::get_if<StopAsked>(&event)) {
    OnStop(asked->by, at);
  } else if (const auto* const obeyed = std::get_if<NoticeObeyed>(&event)) {
    OnStop(obeyed->by, at);
  } else if (const auto* const killed = std::get_if<KilledByUser>(&event)) {
    OnStop(killed->why, at);
  } else if (const auto* const checked = std::get_if<HealthChecked>(&event)) {
    if (!checked->is_fit) OnStop(checked->reason, at);
  } else if (const auto* const shunned = std::get_if<HostShunned>(&event)) {
    if (shunned->is_own) OnStop("this host is left out: " + shunned->reason, at);
  } else if (const auto* const end = std::get_if<LauncherEnds>(&event)) {
    OnEnd(end->code, end->outcome, at);
  }
}

// Sets the answer of the newest events, as far as they have none yet.
void JobStory::Answer(const std::string& answer) {
  auto& events = summary_.events;
  for (auto event = events.rbegin(); event != events.rend() && event->answer.empty(); ++event) {
    event->answer = answer;
  }
}

void JobStory::OnEpoch(const EpochRecord& epoch, int64_t) {
  Answer("went on as epoch " + std::to_string(epoch.number) + ": " +
         CountText(epoch.workers.size(), "worker") + " on " +
         CountText(epoch.hosts.size(), "host"));
  epoch_ = epoch.number;
  deaths_of_break_.clear();
  summary_.epochs = std::max(summary_.epochs, epoch.number);
}

// Of a death, either of the two may come first, and only one may know of a core dump.
bool JobStory::IsTold(int64_t epoch, const std::string& why) const {
  return std::any_of(summary_.events.begin(), summary_.events.end(), [&](const JobEvent& event) {
    return event.epoch == epoch && IsOneDeath(event.why, why);
  });
}

bool JobStory::TakeToldByBreak(const std::string& why) {
  return std::erase_if(deaths_of_break_, [&](const std::string& told) {
           return IsOneDeath(told, why);
         }) > 0;
}

void JobStory::OnBreak(const BreakRecord& record, int64_t wall_nanos) {
  if (IsTold(record.epoch, record.reason)) return;
  if (record.cause == BreakCause::kDied) deaths_of_break_.push_back(record.reason);
  summary_.events.push_back(
      {wall_nanos, record.epoch, std::string(BreakCauseName(record.cause)), "", record.reason, ""});
}

void JobStory::OnDeath(const std::string& reason, int64_t wall_nanos) {
  // Outside an epoch one after the other may die of the same: each is told.
  if (TakeToldByBreak(reason)) return;
  summary_.events.push_back(
      {wall_nanos, epoch_, std::string(BreakCauseName(BreakCause::kDied)), "", reason, ""});
}

void JobStory::OnFailure(WorkerFailure failure, int64_t epoch) {
  if (epoch != failed_epoch_) failures_.clear();
  failed_epoch_ = epoch;
  failures_.push_back(std::move(failure));
}

void JobStory::OnStop(const std::string& reason, int64_t wall_nanos) {
  const auto& events = summary_.events;
  const bool is_told = std::any_of(events.begin(), events.end(), [&](const JobEvent& event) {
    return event.what == kStop && event.why == reason;
  });
  if (is_told) return;
  summary_.events.push_back({wall_nanos, epoch_, kStop, "", reason, ""});
}

// This may be the result of a wish to stop that was told already.
void JobStory::OnJobStops(const std::string& reason, int64_t wall_nanos) {
  const auto& events = summary_.events;
  const bool is_told = std::any_of(events.begin(), events.end(),
                                   [](const JobEvent& event) { return event.what == kStop; });
  if (!is_told) OnStop(reason, wall_nanos);
}

void JobStory::OnEnd(int exit_code, const std::string& outcome, int64_t wall_nanos) {
  summary_.exit_code = exit_code;
  summary_.outcome = outcome;
  summary_.ended_nanos = wall_nanos;
  Answer("the job ended: " + outcome);
}

}  // namespace keel
