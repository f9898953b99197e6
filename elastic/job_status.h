// JobStatus: what this host can see of the job, for whoever watches it (elastic/status_server.h).
// Promises   takes a few MB at most, whatever happens and however long: of events and epochs the
//            newest are kept, all are counted, and texts are cut.
// Does not   render (elastic/status_page.h, status_api.h, status_metrics.h) or escape anything.
// Threads    a plain value.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "elastic/membership.h"

namespace keel {

inline constexpr size_t kStatusEventsMax = 1000;
inline constexpr size_t kStatusEpochsMax = 500;
inline constexpr size_t kStatusGoneHostsMax = 32;
inline constexpr size_t kStatusTextMax = 400;   // bytes

// What never changes.
struct StatusJob {
  std::string name;
  std::string host;            // this one
  std::string program;
  std::string store;           // its address
  bool sees_all = true;        // else only this host's own workers: another one has the store
  int64_t started_nanos = 0;   // this launcher, as all times of this file by the wall clock
};

struct StatusHost {
  int64_t slot = -1;           // -1: it is not known yet
  bool is_here = false;        // it is this one
  std::string gone;            // why it is there no more; empty: it is there
  MemberRecord record;
};

// Those that are there, and the newest of those that are gone. `own`: the incarnation of this one.
std::vector<StatusHost> StatusHostsOf(const std::vector<HostView>& views, const std::string& own);

struct StatusEpoch {
  int64_t number = 0;
  int64_t begun_nanos = 0;
  int64_t ended_nanos = 0;     // 0: it runs
  int workers = 0;
  int hosts = 0;
  std::string reason;          // why it was formed
  std::string end;             // a word: died, host-lost ... boundary, end
  std::string end_reason;
};

struct StatusEvent {
  int64_t wall_nanos = 0;
  int64_t epoch = 0;           // during which; 0: before the first
  std::string kind;            // a word
  std::string text;
};

class JobStatus {
 public:
  explicit JobStatus(StatusJob job) : job_(std::move(job)) {}

  void OnEpoch(const EpochRecord& epoch, int64_t wall_nanos);
  void OnBreak(const BreakRecord& record, int64_t wall_nanos);
  // `kind` is one of our own words: all of them are counted for ever.
  void OnEvent(const std::string& kind, const std::string& text, int64_t wall_nanos);
  // All hosts that are seen (StatusHostsOf), as they are now. Who comes and goes is an event.
  void OnHosts(std::vector<StatusHost> hosts, int64_t wall_nanos);

  const StatusJob& job() const { return job_; }
  const std::vector<StatusHost>& hosts() const { return hosts_; }
  const std::deque<StatusEpoch>& epochs() const { return epochs_; }   // oldest first
  const std::deque<StatusEvent>& events() const { return events_; }
  int64_t epochs_total() const { return epochs_total_; }
  int64_t events_total() const { return events_total_; }
  const std::map<std::string, int64_t>& events_by_kind() const { return events_by_kind_; }
  // The newest epoch, while it runs.
  const StatusEpoch* running() const;
  const StatusHost* own_host() const;
  // The furthest that a worker told of; -1: none.
  int64_t step() const;
  bool in_place() const;
  // "running", "waiting" for an epoch, "stopping"
  std::string_view state() const;

 private:
  void EndEpoch(const std::string& end, const std::string& reason, int64_t wall_nanos);
  const StatusHost* Known(const StatusHost& host) const;

  StatusJob job_;
  std::vector<StatusHost> hosts_;
  std::deque<StatusEpoch> epochs_;
  std::deque<StatusEvent> events_;
  int64_t epochs_total_ = 0;
  int64_t events_total_ = 0;
  std::map<std::string, int64_t> events_by_kind_;
};

}  // namespace keel
