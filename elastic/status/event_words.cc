// Kinds of events that mean the same to a reader share a word.
#include "elastic/status/event_words.h"

namespace keel {
namespace {

using Words = std::optional<EventWords>;

// The words in front of what a notice is about.
std::string NoticeKindText(NoticeEvent::Kind kind) {
  switch (kind) {
    using Kind = NoticeEvent::Kind;
    case Kind::kFound: return "watching the notices of ";
    case Kind::kHint: return "hint: ";
    case Kind::kAnnounced: return "announced: ";
    case Kind::kWithdrawn: return "withdrawn: ";
    case Kind::kUnreachable: return "unreachable: ";
    case Kind::kReached: return "reached again: ";
    case Kind::kGaveUp: return "no service is asked any more: ";
    case Kind::kLeave: return "obeyed: ";
  }
  return "";
}

Words Of(const StopSeen& event) { return {{"stop", event.stop.reason}}; }
Words Of(const StoreLost& event) { return {{"store-lost", event.reason}}; }
Words Of(const StoreReached&) { return {{"store-reached", ""}}; }
Words Of(const NoStore& event) { return {{"no-store", event.reason}}; }
Words Of(const JobWaits& event) { return {{"waiting", event.reason}}; }
Words Of(const HostWaits& event) { return {{"waiting", event.what}}; }
Words Of(const WorkerFailed& event) { return {{"death", event.who + " " + event.how}}; }
Words Of(const WorkerEnded& event) { return {{"worker-ended", event.who + " " + event.how}}; }
Words Of(const SaveAsked& event) { return {{"save-wanted", event.signal}}; }
Words Of(const StopAsked& event) { return {{"stop", event.by}}; }
Words Of(const NoticeEvent& event) {
  return {{"notice", NoticeKindText(event.kind) + event.text}};
}
Words Of(const NoticeObeyed& event) {
  return {{"notice", NoticeKindText(NoticeEvent::Kind::kLeave) + event.notice}};
}
Words Of(const HealthChecked& event) {
  if (event.is_fit) return {};
  return {{"not-healthy", event.reason}};
}
Words Of(const HostShunned& event) { return {{"host-shunned", event.reason}}; }
Words Of(const RegistersAnew& event) { return {{"registering-anew", event.reason}}; }
Words Of(const LauncherEnds& event) {
  return {{"end", event.outcome + " (exit code " + std::to_string(event.code) + ")"}};
}

// The page has lists of epochs, breaks and checkpoints, shows the slot beside each host, and ends
// with a launcher that is killed.
Words Of(const EpochSeen&) { return {}; }
Words Of(const BreakSeen&) { return {}; }
Words Of(const CheckpointSaved&) { return {}; }
Words Of(const Registered&) { return {}; }
Words Of(const KilledByUser&) { return {}; }

}  // namespace

std::optional<EventWords> WordsOf(const LauncherEvent& event) {
  return std::visit([](const auto& what) { return Of(what); }, event);
}

}  // namespace keel
