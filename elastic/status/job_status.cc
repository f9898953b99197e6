// New items are added at the end; too many are dropped at the beginning.
#include "elastic/status/job_status.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "elastic/status/event_words.h"

namespace keel {
namespace {

std::string Cut(const std::string& text) {
  return text.size() <= kStatusTextMax ? text : Beginning(text, kStatusTextMax) + "...";
}

// Cuts all texts in it that others wrote.
void CutTexts(StatusHost& host) {
  for (std::string* text : {&host.gone, &host.record.host, &host.record.address, &host.record.role,
                            &host.record.reason, &host.record.unfit, &host.record.health}) {
    *text = Cut(*text);
  }
  host.record.fingerprint.clear();   // nobody looks at it here
  for (SeatRecord& seat : host.record.seats) seat.ended = Cut(seat.ended);
}

std::string NameOf(const StatusHost& host) {
  return host.record.host + " (slot " + std::to_string(host.slot) + ")";
}

}  // namespace

std::vector<StatusHost> StatusHostsOf(const std::vector<HostView>& views,
                                      const std::string& own) {
  std::vector<const HostView*> shown, gone;
  for (const HostView& view : views) (view.gone ? gone : shown).push_back(&view);
  // Ordered by when they were last heard, so that the latest to go is kept whatever its slot.
  const size_t left_out = gone.size() - std::min(gone.size(), kStatusGoneHostsMax);
  const auto newest = gone.begin() + static_cast<ptrdiff_t>(left_out);
  std::nth_element(gone.begin(), newest, gone.end(), [](const HostView* a, const HostView* b) {
    return std::pair(a->heard, a->slot) < std::pair(b->heard, b->slot);
  });
  shown.insert(shown.end(), newest, gone.end());
  std::sort(shown.begin(), shown.end(),
            [](const HostView* a, const HostView* b) { return a->slot < b->slot; });
  std::vector<StatusHost> hosts;
  for (const HostView* view : shown) {
    StatusHost host{view->slot, view->record.incarnation == own, "", view->record};
    if (view->gone) host.gone = view->gone_reason.empty() ? "gone" : view->gone_reason;
    hosts.push_back(std::move(host));
  }
  return hosts;
}

void JobStatus::EndEpoch(const std::string& end, const std::string& reason, int64_t wall_nanos) {
  if (epochs_.empty() || epochs_.back().ended_nanos != 0) return;
  StatusEpoch& epoch = epochs_.back();
  epoch.ended_nanos = wall_nanos;
  epoch.end = end;
  epoch.end_reason = Cut(reason);
}

void JobStatus::On(const LauncherEvent& event, int64_t wall_nanos) {
  if (const auto* const seen = std::get_if<EpochSeen>(&event)) OnEpoch(seen->epoch, wall_nanos);
  if (const auto* const broken = std::get_if<BreakSeen>(&event)) {
    OnBreak(broken->record, wall_nanos);
  }
  if (const auto* const saved = std::get_if<CheckpointSaved>(&event)) {
    OnSaved(saved->step, wall_nanos);
  }
  const std::optional<EventWords> words = WordsOf(event);
  if (words) OnEvent(words->kind, words->text, wall_nanos);
}

void JobStatus::OnEpoch(const EpochRecord& epoch, int64_t wall_nanos) {
  // A store that came back empty announces the epoch that has run all the time.
  if (running() != nullptr && running()->number == epoch.number) return;
  epoch_hosts_.clear();
  for (const EpochHost& host : epoch.hosts) epoch_hosts_.insert(host.incarnation);
  EndEpoch("boundary", "all parked at one step", wall_nanos);
  epochs_.push_back({epoch.number, wall_nanos, 0, static_cast<int>(epoch.workers.size()),
                     static_cast<int>(epoch.hosts.size()), Cut(epoch.reason), "", ""});
  ++epochs_total_;
  if (epochs_.size() > kStatusEpochsMax) epochs_.pop_front();
  OnEvent("epoch",
          "epoch " + std::to_string(epoch.number) + " of " +
              CountText(epoch.workers.size(), "worker") + " on " +
              CountText(epoch.hosts.size(), "host") + ": " + epoch.reason,
          wall_nanos);
}

void JobStatus::OnBreak(const BreakRecord& record, int64_t wall_nanos) {
  const std::string cause(BreakCauseName(record.cause));
  EndEpoch(cause, record.reason, wall_nanos);
  OnEvent("break", cause + ": " + record.reason, wall_nanos);
}

void JobStatus::OnEvent(const std::string& kind, const std::string& text, int64_t wall_nanos) {
  if (kind == "end") EndEpoch("end", text, wall_nanos);
  events_.push_back({wall_nanos, epochs_.empty() ? 0 : epochs_.back().number, kind, Cut(text)});
  ++events_total_;
  ++events_by_kind_[kind];
  if (events_.size() > kStatusEventsMax) events_.pop_front();
}

const StatusHost* JobStatus::Known(const StatusHost& host) const {
  for (const StatusHost& known : hosts_) {
    if (known.slot == host.slot && known.record.incarnation == host.record.incarnation) {
      return &known;
    }
  }
  return nullptr;
}

// A new board numbers its slots afresh, and a host that has just become the coordinator had seen
// only itself: the others are those of the epoch.
bool JobStatus::IsInJob(const std::string& incarnation) const {
  return epoch_hosts_.contains(incarnation) ||
         std::any_of(hosts_.begin(), hosts_.end(), [&](const StatusHost& known) {
           return known.slot >= 0 && known.gone.empty() &&
                  known.record.incarnation == incarnation;
         });
}

void JobStatus::OnRole(bool sees_all, const std::string& store) {
  takes_over_ = sees_all && (takes_over_ || !job_.sees_all);
  job_.sees_all = sees_all;
  job_.store = store;
}

void JobStatus::OnHosts(std::vector<StatusHost> hosts, int64_t wall_nanos) {
  const bool is_first = std::exchange(takes_over_, false);
  for (StatusHost& host : hosts) {
    CutTexts(host);
    if (host.slot < 0) continue;
    const StatusHost* const known = Known(host);
    const bool was_there = known != nullptr && known->gone.empty();
    const bool is_new = !is_first && !IsInJob(host.record.incarnation);
    if (host.gone.empty() && is_new) OnEvent("host-joined", NameOf(host), wall_nanos);
    if (host.gone.empty() || !was_there) continue;
    OnEvent("host-gone", host.gone, wall_nanos);
    epoch_hosts_.erase(host.record.incarnation);
  }
  hosts_ = std::move(hosts);
}

void JobStatus::OnFigures(const std::vector<StatusFigures>& figures, const WorkerTime& time,
                          int64_t wall_nanos) {
  time_ = time;
  for (const TimePart& each : kTimeParts) {
    risen_time_.*each.part = std::max(risen_time_.*each.part, time.*each.part);
  }
  told_nanos_ = wall_nanos;
  std::vector<StatusTrend> trends;
  for (const StatusFigures& one : figures) {
    StatusTrend trend{one, wall_nanos, one.told, wall_nanos, one.told};
    for (const StatusTrend& before : trends_) {
      if (before.now.worker != one.worker) continue;
      trend = before;
      trend.now = one;
      if (wall_nanos - trend.middle_nanos < kStatusWindowNanos) continue;
      trend.since = std::exchange(trend.middle, one.told);
      trend.since_nanos = std::exchange(trend.middle_nanos, wall_nanos);
    }
    trends.push_back(std::move(trend));
  }
  trends_ = std::move(trends);
  if (figures.empty()) return;
  newest_ = figures.front().told;
  AddPoint(figures.front(), wall_nanos);
}

// All workers know the same loss, and count the samples of all.
void JobStatus::AddPoint(const StatusFigures& figures, int64_t wall_nanos) {
  const bool is_same = last_told_ && last_told_->told.step == figures.told.step &&
                       last_told_->worker == figures.worker;
  if (is_same || wall_nanos - last_told_nanos_ < points_pause_) return;
  StatusPoint point{wall_nanos, figures.told.step, figures.told.loss, std::nullopt};
  const int64_t passed = wall_nanos - last_told_nanos_;
  if (last_told_ && last_told_->worker == figures.worker && passed > 0) {
    const int64_t made = std::max<int64_t>(figures.told.samples - last_told_->told.samples, 0);
    point.samples_per_s = static_cast<double>(made) * 1e9 / static_cast<double>(passed);
  }
  last_told_ = figures;
  last_told_nanos_ = wall_nanos;
  points_.push_back(point);
  if (points_.size() <= kStatusPointsMax) return;
  size_t kept = 0;
  for (size_t i = 0; i < points_.size(); i += 2) points_[kept++] = points_[i];
  points_.resize(kept);
  // From now on, points are as far apart as those that are left.
  points_pause_ = (points_.back().wall_nanos - points_.front().wall_nanos) /
                  static_cast<int64_t>(kept);
}

std::optional<double> JobStatus::samples_per_s() const {
  if (trends_.empty()) return std::nullopt;
  const StatusTrend& trend = trends_.front();
  const int64_t samples = trend.now.told.samples - trend.since.samples;
  if (told_nanos_ <= trend.since_nanos) return std::nullopt;
  return static_cast<double>(samples) * 1e9 /
         static_cast<double>(told_nanos_ - trend.since_nanos);
}

void JobStatus::OnSaved(int64_t step, int64_t wall_nanos) {
  if (!checkpoints_.empty() && checkpoints_.back().step == step) return;
  checkpoints_.push_back({wall_nanos, step});
  ++checkpoints_total_;
  if (checkpoints_.size() > kStatusCheckpointsMax) checkpoints_.pop_front();
  OnEvent("saved", "a checkpoint of step " + std::to_string(step), wall_nanos);
}

const StatusEpoch* JobStatus::running() const {
  return epochs_.empty() || epochs_.back().ended_nanos != 0 ? nullptr : &epochs_.back();
}

const StatusHost* JobStatus::own_host() const {
  const auto own = std::find_if(hosts_.begin(), hosts_.end(),
                                [](const StatusHost& host) {
                                  return host.is_here && host.gone.empty();
                                });
  return own == hosts_.end() ? nullptr : &*own;
}

int64_t JobStatus::step() const {
  int64_t step = -1;
  for (const StatusHost& host : hosts_) {
    if (!host.gone.empty()) continue;
    for (const SeatRecord& seat : host.record.seats) step = std::max(step, seat.position.step);
  }
  return step;
}

bool JobStatus::in_place() const {
  return std::any_of(hosts_.begin(), hosts_.end(), [](const StatusHost& host) {
    return host.record.kind == JobKind::kInPlace;
  });
}

std::string_view JobStatus::state() const {
  const StatusHost* const own = own_host();
  if (own != nullptr && own->record.state != MemberState::kMember) return "stopping";
  return running() != nullptr ? "running" : "waiting";
}

}  // namespace keel
