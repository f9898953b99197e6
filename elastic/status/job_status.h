// JobStatus: what this host knows of the job, for those who watch it (elastic/status/server.h).
// Promises   takes a few MB at most, whatever happens and however long: the newest events and
//            epochs are kept, all are counted, and texts are cut.
// Does not   render (page.h, api.h and metrics.h beside it) or escape anything.
// Threads    a plain value.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "elastic/decisions/membership.h"
#include "elastic/protocol/control_link.h"
#include "elastic/report/launcher_event.h"
#include "elastic/report/time_ledger.h"

namespace keel {

inline constexpr size_t kStatusEventsMax = 1000;
inline constexpr size_t kStatusEpochsMax = 500;
inline constexpr size_t kStatusGoneHostsMax = 32;
inline constexpr size_t kStatusTextMax = 400;   // bytes
inline constexpr size_t kStatusPointsMax = 1000;
inline constexpr size_t kStatusCheckpointsMax = 100;
// The newest step times are averaged over at least this time, and at most twice that.
inline constexpr int64_t kStatusWindowNanos = 10'000'000'000;

// What never changes during the job, but for what OnRole() tells.
struct StatusJob {
  std::string name;
  std::string host;            // this one
  std::string program;
  std::string store;           // its address, which may change
  bool sees_all = true;        // false: it sees only its own workers, as another host coordinates
  int64_t started_nanos = 0;   // of this launcher; all times in this file are by the wall clock
};

struct StatusHost {
  int64_t slot = -1;           // -1: it is not known yet
  bool is_here = false;        // it is this one
  std::string gone;            // why it is gone; empty: it is there
  MemberRecord record;
};

// Those that are there, and the newest that are gone. `own`: the incarnation of this one.
std::vector<StatusHost> StatusHostsOf(const std::vector<HostView>& views, const std::string& own);

struct StatusEpoch {
  int64_t number = 0;
  int64_t begun_nanos = 0;
  int64_t ended_nanos = 0;     // 0: it runs
  int workers = 0;
  int hosts = 0;
  std::string reason;          // why the epoch was formed
  std::string end;             // a word: died, host-lost ... boundary, end
  std::string end_reason;
};

struct StatusEvent {
  int64_t wall_nanos = 0;
  int64_t epoch = 0;           // during which; 0: before the first
  std::string kind;            // a word
  std::string text;
};

// One point of the curves.
struct StatusPoint {
  int64_t wall_nanos = 0;
  int64_t step = 0;
  std::optional<double> loss;
  std::optional<double> samples_per_s;   // since the point before
};

struct StatusCheckpoint {
  int64_t wall_nanos = 0;
  int64_t step = 0;
};

// What one of this host's workers told about itself.
struct StatusFigures {
  size_t index = 0;            // of its seat
  int rank = -1;
  std::string worker;          // its incarnation
  FiguresMessage told;
};

// The same, with what it told a while ago: the difference tells what happened in between.
struct StatusTrend {
  StatusFigures now;
  int64_t since_nanos = 0;
  FiguresMessage since;
  int64_t middle_nanos = 0;    // the time of `middle`, the next `since`
  FiguresMessage middle;
};

// It has more than 25 methods and 12 data members because it is a record of all that the page
// shows; most of its methods only give one part of that.
class JobStatus {
 public:
  explicit JobStatus(StatusJob job) : job_(std::move(job)) {}

  void On(const LauncherEvent& event, int64_t wall_nanos);

  void OnEpoch(const EpochRecord& epoch, int64_t wall_nanos);
  void OnBreak(const BreakRecord& record, int64_t wall_nanos);
  // `kind` is one of our own words: all kinds are counted for ever.
  void OnEvent(const std::string& kind, const std::string& text, int64_t wall_nanos);
  // All hosts that are seen (StatusHostsOf), as they are now. Those that come or go become events.
  void OnHosts(std::vector<StatusHost> hosts, int64_t wall_nanos);
  // Whether this host has the coordinator's role now, and the address of the store that it follows.
  void OnRole(bool sees_all, const std::string& store);

  // All figures of this host's workers, repeatedly, those of the lowest rank first, and how the
  // time of its seats was spent.
  void OnFigures(const std::vector<StatusFigures>& figures, const WorkerTime& time,
                 int64_t wall_nanos);
  // May be called several times for one checkpoint.
  void OnSaved(int64_t step, int64_t wall_nanos);

  const StatusJob& job() const { return job_; }
  const std::vector<StatusHost>& hosts() const { return hosts_; }
  const std::deque<StatusEpoch>& epochs() const { return epochs_; }   // oldest first
  const std::deque<StatusEvent>& events() const { return events_; }
  int64_t epochs_total() const { return epochs_total_; }
  int64_t events_total() const { return events_total_; }
  const std::map<std::string, int64_t>& events_by_kind() const { return events_by_kind_; }
  // What the lowest rank told last; empty: nobody has told anything yet.
  const std::optional<FiguresMessage>& newest() const { return newest_; }
  // Over the whole time, oldest first: of very many, every second one, or every fourth ...
  const std::vector<StatusPoint>& points() const { return points_; }
  const std::vector<StatusTrend>& trends() const { return trends_; }
  const std::deque<StatusCheckpoint>& checkpoints() const { return checkpoints_; }
  int64_t checkpoints_total() const { return checkpoints_total_; }
  const WorkerTime& time() const { return time_; }
  // The same as parts that never fall: of the time inside an epoch, what went into a step is known
  // only at its end.
  const WorkerTime& risen_time() const { return risen_time_; }
  // For the whole group, over the newest window; empty: unknown.
  std::optional<double> samples_per_s() const;
  // The newest epoch, if it still runs.
  const StatusEpoch* running() const;
  const StatusHost* own_host() const;
  // The furthest step that a worker of a host that is there told; -1: none.
  int64_t step() const;
  bool in_place() const;
  // "running", "waiting" for an epoch, "stopping"
  std::string_view state() const;

 private:
  void EndEpoch(const std::string& end, const std::string& reason, int64_t wall_nanos);
  const StatusHost* Known(const StatusHost& host) const;
  bool IsInJob(const std::string& incarnation) const;
  void AddPoint(const StatusFigures& figures, int64_t wall_nanos);

  StatusJob job_;
  std::vector<StatusHost> hosts_;
  std::set<std::string> epoch_hosts_;      // incarnations, but for those told to be gone since
  bool takes_over_ = false;                // the next list of hosts is the first of this role
  std::deque<StatusEpoch> epochs_;
  std::deque<StatusEvent> events_;
  int64_t epochs_total_ = 0;
  int64_t events_total_ = 0;
  std::map<std::string, int64_t> events_by_kind_;
  std::optional<FiguresMessage> newest_;
  std::vector<StatusPoint> points_;
  int64_t points_pause_ = 0;               // nanoseconds between two of them, at least
  std::optional<StatusFigures> last_told_;   // those of the last point
  int64_t last_told_nanos_ = 0;
  int64_t told_nanos_ = 0;                 // when figures last came
  std::vector<StatusTrend> trends_;
  std::deque<StatusCheckpoint> checkpoints_;
  int64_t checkpoints_total_ = 0;
  WorkerTime time_;
  WorkerTime risen_time_;
};

}  // namespace keel
