// One line for each event, with its facts as fields.
#include "elastic/report/event_log.h"

#include "base/log.h"
#include "base/text.h"

namespace keel {
namespace {

void Log(const Registered& event) { LogInfo("registered", {{"slot", event.slot}}); }

void Log(const EpochSeen& event) {
  LogInfo("epoch", {{"epoch", event.epoch.number},
                    {"workers", event.epoch.workers.size()},
                    {"hosts", event.epoch.hosts.size()},
                    {"reason", event.epoch.reason}});
}

void Log(const BreakSeen& event) {
  LogWarn("epoch-broken", {{"epoch", event.record.epoch},
                           {"cause", BreakCauseName(event.record.cause)},
                           {"reason", event.record.reason}});
}

void Log(const StopSeen& event) { LogInfo("job-stops", {{"reason", event.stop.reason}}); }

void Log(const StoreLost& event) { LogWarn("store-unreachable", {{"reason", event.reason}}); }
void Log(const StoreReached&) { LogInfo("store-reached"); }

void Log(const HostWaits& event) {
  LogWarn("still-waiting", {{"for", event.what},
                            {"waited", DurationText(event.waited)},
                            {"left", event.left ? DurationText(*event.left) : "no limit"},
                            {"cure", event.cure}});
}

void Log(const WorkerFailed& event) {
  const WorkerFailure& failure = event.failure;
  LogError("worker-died", {{"rank", failure.rank},
                           {"local_rank", failure.local_rank},
                           {"pid", failure.pid},
                           {"how", event.how},
                           {"error", failure.error ? BriefError(failure.error->message,
                                                                failure.error_file)
                                                   : ""},
                           {"step", event.step}});
}

void Log(const WorkerEnded& event) {
  LogInfo("worker-ended", {{"rank", event.rank}, {"pid", event.pid}, {"how", event.how}});
}

void Log(const SaveAsked& event) { LogInfo("save-wanted", {{"signal", event.signal}}); }

void Log(const NoticeEvent& event) {
  const std::string& what = event.text;
  switch (event.kind) {
    using Kind = NoticeEvent::Kind;
    case Kind::kFound: return LogInfo("notices-watched", {{"of", what}});
    case Kind::kHint: return LogInfo("notice-hint", {{"what", what}});
    case Kind::kAnnounced:
      LogWarn("notice", {{"what", what}, {"left", DurationText(event.left)}});
      if (!event.note.empty()) LogWarn("notice-time-doubted", {{"reason", event.note}});
      return;
    case Kind::kWithdrawn: return LogInfo("notice-withdrawn", {{"what", what}});
    case Kind::kUnreachable: return LogWarn("notices-unreachable", {{"reason", what}});
    case Kind::kReached: return LogInfo("notices-reached", {{"of", what}});
    case Kind::kGaveUp: return LogInfo("notices-not-watched", {{"reason", what}});
    case Kind::kLeave: return;   // NoticeObeyed tells what is done about it
  }
}

void Log(const NoticeObeyed& event) {
  LogWarn("notice-obeyed", {{"what", event.notice},
                            {"left", DurationText(event.left)},
                            {"to_save", DurationText(event.to_save)}});
}

void Log(const HealthChecked& event) {
  const std::string took = DurationText(event.took);
  if (event.is_fit) return LogInfo("healthy", {{"took", took}});
  LogError("not-healthy", {{"reason", event.reason}, {"took", took}});
}

void Log(const KilledByUser&) { LogWarn("killing-all", {{"reason", "interrupted twice"}}); }

void Log(const HostShunned& event) {
  LogWarn("host-shunned", {{"host", event.host}, {"reason", event.reason}});
}

void Log(const RegistersAnew& event) { LogWarn("registering-anew", {{"reason", event.reason}}); }

// The coordinator logs why a job waits (decision_log.h), whoever gets a signal logs it with the
// time that it leaves, a worker logs what it saved, and the summary tells the end.
void Log(const JobWaits&) {}
void Log(const NoStore&) {}
void Log(const StopAsked&) {}
void Log(const CheckpointSaved&) {}
void Log(const LauncherEnds&) {}

}  // namespace

void LogEvent(const LauncherEvent& event) {
  std::visit([](const auto& what) { Log(what); }, event);
}

}  // namespace keel
