// One event for each verdict.
#include "elastic/report/decision_log.h"

#include "base/log.h"

namespace keel {

namespace {

// A wait that lasts is told with how long it may still last, and what would end it.
void LogWait(const Decision& decision, TimePoint now) {
  if (decision.waited == Duration(0)) return LogInfo("waiting", {{"reason", decision.detail}});
  const bool ends = decision.gives_up != kNever;
  LogInfo("waiting", {{"reason", decision.detail},
                      {"waited", DurationText(decision.waited)},
                      {"left", ends ? DurationText(decision.gives_up - now) : "no limit"},
                      {"cure", decision.cure}});
}

}  // namespace

void LogDecision(const Decision& decision, TimePoint now) {
  using Verdict = Decision::Verdict;
  const std::string& why = decision.detail;
  switch (decision.verdict) {
    case Verdict::kWait:
      if (decision.reason == Reason::kRunning) return LogDebug("watching", {{"reason", why}});
      if (decision.reason == Reason::kStandsStill) {
        return LogWarn("stands-still", {{"reason", why}});
      }
      return LogWait(decision, now);
    case Verdict::kExpire: return LogWarn("host-lost", {{"reason", why}});
    case Verdict::kRefuse: return LogError("host-refused", {{"reason", why}});
    case Verdict::kShun:   // who is left out is told by each launcher as it reads so
      if (decision.reason == Reason::kUnfit) return LogDebug("shunning", {{"reason", why}});
      return LogWarn("host-unfit", {{"reason", why}});
    case Verdict::kTakeUp: return LogInfo("epoch-taken-up", {{"reason", why}});
    case Verdict::kForm:
      return LogInfo("epoch-formed", {{"epoch", decision.epoch.number}, {"reason", why}});
    case Verdict::kBreak:
      return LogWarn("epoch-breaks", {{"epoch", decision.broken.epoch}, {"reason", why}});
    case Verdict::kAnnounce: return LogInfo("joining", {{"reason", why}});
    case Verdict::kStop: return LogInfo("stop-decided", {{"reason", why}});
    case Verdict::kEnd: return LogInfo("end-decided", {{"code", decision.code}, {"reason", why}});
  }
}

}  // namespace keel
