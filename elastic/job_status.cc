// What is new goes to the end; what is too much leaves at the beginning.
#include "elastic/job_status.h"

#include <algorithm>
#include <utility>

namespace keel {
namespace {

std::string Cut(const std::string& text) {
  return text.size() <= kStatusTextMax ? text : text.substr(0, kStatusTextMax) + "...";
}

// All that others wrote into it.
void CutTexts(StatusHost& host) {
  for (std::string* text : {&host.gone, &host.record.host, &host.record.address, &host.record.role,
                            &host.record.reason}) {
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
  std::vector<StatusHost> hosts;
  size_t gone = 0;
  for (auto view = views.rbegin(); view != views.rend(); ++view) {
    if (view->gone && ++gone > kStatusGoneHostsMax) continue;
    StatusHost host{view->slot, view->record.incarnation == own, "", view->record};
    if (view->gone) host.gone = view->gone_reason.empty() ? "gone" : view->gone_reason;
    hosts.push_back(std::move(host));
  }
  std::reverse(hosts.begin(), hosts.end());
  return hosts;
}

void JobStatus::EndEpoch(const std::string& end, const std::string& reason, int64_t wall_nanos) {
  if (epochs_.empty() || epochs_.back().ended_nanos != 0) return;
  StatusEpoch& epoch = epochs_.back();
  epoch.ended_nanos = wall_nanos;
  epoch.end = end;
  epoch.end_reason = Cut(reason);
}

void JobStatus::OnEpoch(const EpochRecord& epoch, int64_t wall_nanos) {
  // A store that came back empty names the one that ran all the time.
  if (running() != nullptr && running()->number == epoch.number) return;
  EndEpoch("boundary", "all parked at one step", wall_nanos);
  epochs_.push_back({epoch.number, wall_nanos, 0, static_cast<int>(epoch.workers.size()),
                     static_cast<int>(epoch.hosts.size()), Cut(epoch.reason), "", ""});
  ++epochs_total_;
  if (epochs_.size() > kStatusEpochsMax) epochs_.pop_front();
  OnEvent("epoch",
          "epoch " + std::to_string(epoch.number) + " of " + std::to_string(epoch.workers.size()) +
              " workers on " + std::to_string(epoch.hosts.size()) + " hosts: " + epoch.reason,
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

void JobStatus::OnHosts(std::vector<StatusHost> hosts, int64_t wall_nanos) {
  for (StatusHost& host : hosts) {
    CutTexts(host);
    if (host.slot < 0) continue;
    const StatusHost* const known = Known(host);
    const bool was_there = known != nullptr && known->gone.empty();
    if (host.gone.empty() && known == nullptr) OnEvent("host-joined", NameOf(host), wall_nanos);
    if (!host.gone.empty() && was_there) OnEvent("host-gone", host.gone, wall_nanos);
  }
  hosts_ = std::move(hosts);
}

const StatusEpoch* JobStatus::running() const {
  return epochs_.empty() || epochs_.back().ended_nanos != 0 ? nullptr : &epochs_.back();
}

const StatusHost* JobStatus::own_host() const {
  const auto own = std::find_if(hosts_.begin(), hosts_.end(),
                                [](const StatusHost& host) { return host.is_here; });
  return own == hosts_.end() ? nullptr : &*own;
}

int64_t JobStatus::step() const {
  int64_t step = -1;
  for (const StatusHost& host : hosts_) {
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
