// NoticeFormats: reads from a reply of a cloud's metadata service whether this machine is about to
// end.
// Promises   pure. Garbage is an error, never a notice: a reply that is not whole and as
//            documented ends nobody's work.
// Does not   ask (elastic/notice/services.h), or judge how urgent it is (elastic/notice/watch.h).
// Threads    any. Errors: kCorrupt: the reply makes no sense; kForeign: a status that is not
//            expected, including redirections.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace keel {

enum class NoticeWord {
  kNothing,   // the machine stays
  kHint,      // it may go sooner or later: this is only logged
  kEnd,       // it goes
};
struct NoticeReply {
  NoticeWord word = NoticeWord::kNothing;
  std::string text = {};             // what happens, for people: "spot interruption: terminate"
  std::optional<int64_t> at = {};    // nanoseconds since 1970; empty: it was not told
  bool operator==(const NoticeReply&) const = default;
};

// /latest/meta-data/spot/instance-action
Result<NoticeReply> ReadAwsAction(int status, const std::string& body);
// /latest/meta-data/events/recommendations/rebalance
Result<NoticeReply> ReadAwsRebalance(int status, const std::string& body);
// /computeMetadata/v1/instance/preempted
Result<NoticeReply> ReadGcpPreempted(int status, const std::string& body);
// /metadata/scheduledevents. Machines of one set are told each other's events: events that name
// other machines than `own_name` do not count, unless it is empty.
Result<NoticeReply> ReadAzureEvents(int status, const std::string& body,
                                    const std::string& own_name);

// Whether it may be sent back in a header, or shown: it is one printable word.
bool IsPlainWord(const std::string& text);

// "2026-03-01T12:00:00Z", with or without a fraction.
Result<int64_t> ParseIsoTime(const std::string& text);
// "Sun, 01 Mar 2026 12:00:00 GMT"
Result<int64_t> ParseHttpTime(const std::string& text);

}  // namespace keel
