// Reads the status first, then JSON or a word, then times.
#include "elastic/notice/formats.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/text.h"

namespace keel {
namespace {

constexpr size_t kWordMax = 1024;

Error NoSense(const std::string& what, const std::string& body) {
  return {Code::kCorrupt, what + " that makes no sense: " + Shown(body)};
}

Error OddStatus(const std::string& what, int status) {
  return {Code::kForeign, what + " with status " + std::to_string(status)};
}

bool SameWord(const std::string& a, const std::string& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

// Takes a number of exactly this many digits off the front.
std::optional<int> TakeDigits(std::string_view& text, size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int number = 0;
  for (const char c : text.substr(0, digits)) {
    if (c < '0' || c > '9') return std::nullopt;
    number = 10 * number + (c - '0');
  }
  text.remove_prefix(digits);
  return number;
}

bool TakeText(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

struct ClockTime {
  int hour = 0, minute = 0, second = 0;
};
std::optional<ClockTime> TakeClock(std::string_view& text) {
  const auto hour = TakeDigits(text, 2);
  if (!hour || !TakeText(text, ":")) return std::nullopt;
  const auto minute = TakeDigits(text, 2);
  if (!minute || !TakeText(text, ":")) return std::nullopt;
  const auto second = TakeDigits(text, 2);
  if (!second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  return ClockTime{*hour, *minute, *second};
}

Result<int64_t> Nanos(int year, int month, int day, const ClockTime& clock,
                      const std::string& text) {
  const std::chrono::year_month_day date(std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  // Beyond these years nanoseconds do not fit, or nobody can mean it.
  if (!date.ok() || year < 1970 || year > 2200) return NoSense("a time", text);
  const auto when = std::chrono::sys_days(date).time_since_epoch() +
                    std::chrono::hours(clock.hour) + std::chrono::minutes(clock.minute) +
                    std::chrono::seconds(clock.second);
  return std::chrono::nanoseconds(when).count();
}

// --- Azure ---

bool NamesUs(const std::vector<std::string>& names, const std::string& own_name) {
  if (names.empty() || own_name.empty()) return true;
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return SameWord(name, own_name); });
}

// The reply for one event; empty: it is over, or another machine's.
Result<NoticeReply> ReadAzureEvent(const Json& event, const std::string& own_name) {
  KEEL_TRY_ASSIGN(const std::string type, Field<std::string>(event, "EventType"));
  KEEL_TRY_ASSIGN(const std::string status,
                  FieldOr<std::string>(event, "EventStatus", "Scheduled"));
  KEEL_TRY_ASSIGN(const std::string before, FieldOr<std::string>(event, "NotBefore", ""));
  KEEL_TRY_ASSIGN(const auto names,
                  FieldOr<std::vector<std::string>>(event, "Resources", {}));
  if (status == "Completed" || status == "Canceled" || !NamesUs(names, own_name)) {
    return NoticeReply();
  }
  if (!IsPlainWord(type)) return NoSense("an event type", type);
  NoticeReply reply;
  reply.text = "scheduled event: " + type;
  // These end every process here; others (Freeze) only hold them up for seconds.
  const bool ends = type == "Preempt" || type == "Terminate" || type == "Reboot" ||
                    type == "Redeploy";
  reply.word = ends ? NoticeWord::kEnd : NoticeWord::kHint;
  // It is empty for an event that has begun.
  if (!before.empty()) {
    KEEL_TRY_ASSIGN(reply.at, ParseHttpTime(before));
  }
  return reply;
}

// An end is worse than a hint, and a hint than nothing. Of two ends the earlier is worse; an end
// without a time is now.
bool IsWorse(const NoticeReply& a, const NoticeReply& b) {
  if (a.word != b.word) return a.word > b.word;
  return a.word == NoticeWord::kEnd && a.at.value_or(0) < b.at.value_or(0);
}

}  // namespace

bool IsPlainWord(const std::string& text) {
  return !text.empty() && text.size() <= kWordMax &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

Result<int64_t> ParseIsoTime(const std::string& text) {
  std::string_view rest = text;
  const auto year = TakeDigits(rest, 4);
  if (!year || !TakeText(rest, "-")) return NoSense("a time", text);
  const auto month = TakeDigits(rest, 2);
  if (!month || !TakeText(rest, "-")) return NoSense("a time", text);
  const auto day = TakeDigits(rest, 2);
  if (!day || !TakeText(rest, "T")) return NoSense("a time", text);
  const auto clock = TakeClock(rest);
  if (!clock) return NoSense("a time", text);
  if (TakeText(rest, ".")) {
    const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (digits == 0) return NoSense("a time", text);
    rest.remove_prefix(digits);
  }
  if (rest != "Z") return NoSense("a time", text);
  return Nanos(*year, *month, *day, *clock, text);
}

Result<int64_t> ParseHttpTime(const std::string& text) {
  static constexpr std::array<std::string_view, 12> kMonths = {
      "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::string_view rest = text;
  const size_t comma = rest.find(", ");
  if (comma != 3) return NoSense("a time", text);
  rest.remove_prefix(5);
  const auto day = TakeDigits(rest, 2);
  if (!day || !TakeText(rest, " ")) return NoSense("a time", text);
  const auto month = std::find(kMonths.begin(), kMonths.end(), rest.substr(0, 3));
  if (month == kMonths.end()) return NoSense("a time", text);
  rest.remove_prefix(3);
  if (!TakeText(rest, " ")) return NoSense("a time", text);
  const auto year = TakeDigits(rest, 4);
  if (!year || !TakeText(rest, " ")) return NoSense("a time", text);
  const auto clock = TakeClock(rest);
  if (!clock || rest != " GMT") return NoSense("a time", text);
  return Nanos(*year, static_cast<int>(month - kMonths.begin()) + 1, *day, *clock, text);
}

Result<NoticeReply> ReadAwsAction(int status, const std::string& body) {
  if (status == 404) return NoticeReply();
  if (status != 200) return OddStatus("an answer about spot/instance-action", status);
  const auto json = ParseJson(body);
  if (!json.ok() || !json->is_object()) return NoSense("an action", body);
  const auto action = Field<std::string>(*json, "action");
  const auto time = FieldOr<std::string>(*json, "time", "");
  if (!action.ok() || !time.ok()) return NoSense("an action", body);
  if (*action != "terminate" && *action != "stop" && *action != "hibernate") {
    return NoSense("an action", body);
  }
  NoticeReply reply{NoticeWord::kEnd, "spot interruption: " + *action, std::nullopt};
  if (!time->empty()) {
    KEEL_TRY_ASSIGN(reply.at, ParseIsoTime(*time));
  }
  return reply;
}

Result<NoticeReply> ReadAwsRebalance(int status, const std::string& body) {
  if (status == 404) return NoticeReply();
  if (status != 200) return OddStatus("an answer about rebalance", status);
  const auto json = ParseJson(body);
  if (!json.ok() || !json->is_object()) return NoSense("a recommendation", body);
  const auto time = Field<std::string>(*json, "noticeTime");
  if (!time.ok() || !IsPlainWord(*time)) return NoSense("a recommendation", body);
  return NoticeReply{NoticeWord::kHint, "rebalance recommended at " + *time, std::nullopt};
}

Result<NoticeReply> ReadGcpPreempted(int status, const std::string& body) {
  if (status != 200) return OddStatus("an answer about instance/preempted", status);
  const std::string word(Trim(body));
  if (SameWord(word, "FALSE")) return NoticeReply();
  if (!SameWord(word, "TRUE")) return NoSense("an answer about instance/preempted", body);
  return NoticeReply{NoticeWord::kEnd, "preempted", std::nullopt};
}

Result<NoticeReply> ReadAzureEvents(int status, const std::string& body,
                                    const std::string& own_name) {
  if (status != 200) return OddStatus("an answer about scheduledevents", status);
  const auto json = ParseJson(body);
  if (!json.ok() || !json->is_object()) return NoSense("a list of events", body);
  const auto events = ArrayField(*json, "Events");
  if (!events.ok()) return NoSense("a list of events", body);
  NoticeReply worst;
  for (const Json& event : **events) {
    const auto reply = event.is_object() ? ReadAzureEvent(event, own_name)
                                         : NoSense("an event", body);
    if (!reply.ok()) return NoSense("a list of events", body);
    if (IsWorse(*reply, worst)) worst = *reply;
  }
  return worst;
}

}  // namespace keel
