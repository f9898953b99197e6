// Decides which service to ask, what counts, and when to leave.
#include "elastic/notice/watch.h"

#include <algorithm>
#include <utility>

namespace keel {
namespace {

using std::chrono::seconds;

constexpr Duration kPause = seconds(5);           // after a failure
constexpr Duration kPauseLast = seconds(60);      // for a service that never answered
constexpr int kAttemptsUnasked = 3;               // for a service that nobody named
constexpr Duration kLongestNotice = std::chrono::hours(24);
constexpr Duration kGoodbye = seconds(5);
constexpr Duration kSaveLeast = std::chrono::milliseconds(100);

Duration Until(int64_t wall_end, int64_t wall_now) {
  // Both are within three centuries of 1970, or what they are compared with is smaller.
  return Duration(wall_end - wall_now);
}

}  // namespace

Duration TimeToSave(Duration left) {
  return std::max(left - std::min(kGoodbye, left / 5), kSaveLeast);
}

NoticeWatch::NoticeWatch(NoticePlan plan, TimePoint now, int64_t wall_nanos)
    : plan_(std::move(plan)) {
  asked_.at = now;
  if (!plan_.clouds.empty()) Choose(0);
  const Duration left = Until(plan_.known_end.value_or(wall_nanos), wall_nanos);
  if (plan_.known_end && left > Duration(0)) {
    // A host with little time from the start shall still make some use of it.
    known_ = End{};
    known_->text = plan_.known_end_text;
    known_->at = now + left;
    known_->lead = std::min(plan_.lead, left / 2);
  }
}

void NoticeWatch::Choose(size_t candidate) {
  asked_.candidate = candidate;
  asked_.service = MakeNoticeService(plan_.clouds[candidate]);
}

std::optional<HttpRequest> NoticeWatch::Next(TimePoint now) {
  if (left_ || asked_.in_flight || asked_.service == nullptr) return std::nullopt;
  if (now < asked_.at) return std::nullopt;
  asked_.in_flight = true;
  return asked_.service->Ask(now);
}

void NoticeWatch::OnReply(const Result<HttpReply>& reply, TimePoint now, int64_t wall_nanos) {
  asked_.in_flight = false;
  if (left_ || asked_.service == nullptr) return;
  const auto hear = [&]() -> Result<NoticeService::Heard> {
    if (!reply.ok()) return reply.error();
    return asked_.service->Hear(*reply, now);
  };
  const Result<NoticeService::Heard> heard = hear();
  if (!heard.ok()) {
    Fail(heard.error(), reply.ok(), now);
    return LeaveIfDue(now);
  }
  asked_.at = now + heard->pause;
  // Anything that answers may give a token, so a token alone does not count.
  if (heard->reply) {
    if (!std::exchange(asked_.found, true)) Tell(NoticeEvent::Kind::kFound, Name());
    if (asked_.outage_told || asked_.nonsense_told) Tell(NoticeEvent::Kind::kReached, Name());
    asked_.outage_told = asked_.nonsense_told = false;
    asked_.failures = 0;
    Take(*heard->reply, heard->is_whole, now, wall_nanos);
  }
  LeaveIfDue(now);
}

void NoticeWatch::Fail(const Error& error, bool has_answered, TimePoint now) {
  ++asked_.failures;
  asked_.at = now + kPause;
  if (asked_.found || (plan_.insists && plan_.clouds.size() == 1)) {
    return AskOn(error, has_answered, now);
  }
  const size_t candidates = plan_.clouds.size();
  const int attempts_max = kAttemptsUnasked * static_cast<int>(candidates);
  if (asked_.failures >= attempts_max) {
    return plan_.is_sure ? AskOn(error, has_answered, now) : GiveUp(error.message);
  }
  if (candidates == 1) return;
  Choose((asked_.candidate + 1) % candidates);
  if (asked_.candidate != 0) asked_.at = now;
}

void NoticeWatch::AskOn(const Error& error, bool has_answered, TimePoint now) {
  bool& told = has_answered && !asked_.found ? asked_.nonsense_told : asked_.outage_told;
  if (!std::exchange(told, true)) {
    Tell(NoticeEvent::Kind::kUnreachable, Name() + ": " + error.message);
  }
  // A service that has answered may be needed any moment, so its pauses do not grow.
  if (!asked_.found) asked_.at = now + std::min(kPause * asked_.failures, kPauseLast);
}

void NoticeWatch::GiveUp(const std::string& why) {
  Tell(NoticeEvent::Kind::kGaveUp, why);
  asked_.service.reset();
}

void NoticeWatch::Withdraw() {
  if (announced_) Tell(NoticeEvent::Kind::kWithdrawn, announced_->text);
  announced_.reset();
}

void NoticeWatch::Take(const NoticeReply& reply, bool is_whole, TimePoint now,
                       int64_t wall_nanos) {
  switch (reply.word) {
    case NoticeWord::kHint:
      if (is_whole) Withdraw();
      if (std::exchange(hint_, reply.text) != reply.text) {
        Tell(NoticeEvent::Kind::kHint, Name() + ": " + reply.text);
      }
      return;
    case NoticeWord::kNothing: return Withdraw();
    case NoticeWord::kEnd: return TakeEnd(reply, now, wall_nanos);
  }
}

void NoticeWatch::TakeEnd(const NoticeReply& reply, TimePoint now, int64_t wall_nanos) {
  if (announced_ && announced_->reply == reply) return;
  Duration left = asked_.service->usual_notice();
  std::string note;
  if (reply.at) {
    const Duration told = Until(*reply.at, wall_nanos);
    note = WhyNotBelieved(told);
    if (note.empty()) left = told;
  }
  announced_ = End{reply, Name() + " notice (" + reply.text + ")", now + left,
                   plan_.lead};
  Tell(NoticeEvent::Kind::kAnnounced, announced_->text, left);
  events_.back().note = std::move(note);
}

// Empty if the time makes sense. It comes from another clock than ours, and a wrong one must not
// make the host stay until it is too late.
std::string NoticeWatch::WhyNotBelieved(Duration told) const {
  const Duration most = asked_.service->longest_notice().value_or(kLongestNotice);
  const std::string usual = DurationText(asked_.service->usual_notice()) + " instead";
  if (told < Duration(0)) {
    return "the end it announces was " + DurationText(-told) +
           " ago by this machine's clock, which may be wrong; assuming " + usual;
  }
  if (told <= most) return "";
  return "the end it announces is " + DurationText(told) + " ahead by this machine's clock, but " +
         Name() + " gives no more than " + DurationText(most) + " of notice; assuming " + usual;
}

void NoticeWatch::OnTime(TimePoint now) { LeaveIfDue(now); }

void NoticeWatch::LeaveIfDue(TimePoint now) {
  for (const auto* end : {&announced_, &known_}) {
    if (left_ || !*end || (*end)->at - now > (*end)->lead) continue;
    left_ = true;
    Tell(NoticeEvent::Kind::kLeave, (*end)->text, std::max((*end)->at - now, Duration(0)));
  }
}

TimePoint NoticeWatch::NextWake() const {
  if (left_) return kNever;
  TimePoint wake = kNever;
  if (asked_.service != nullptr && !asked_.in_flight) wake = asked_.at;
  for (const auto* end : {&announced_, &known_}) {
    if (*end) wake = std::min(wake, (*end)->at - (*end)->lead);
  }
  return wake;
}

std::vector<NoticeEvent> NoticeWatch::TakeEvents() { return std::exchange(events_, {}); }

}  // namespace keel
