// NoticeWatch: turns replies and the time into events: this machine will end, leave now.
// Promises   pure. A host leaves only once: for a notice that its own cloud gave whole, or for an
//            end that was known from the start. It leaves only when no more than `lead` is left; a
//            notice that is withdrawn before changes nothing. A service that fails, or does not
//            exist, is asked again with pauses, reported at most once per outage, and ends
//            nothing; for one that has never answered sensibly, silence and nonsense are reported
//            once each.
// Does not   take a leave back. Believe a time that no such service could mean: clocks differ, and
//            then the usual notice is assumed.
// Threads    one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "elastic/notice/services.h"
#include "elastic/protocol/limits.h"
#include "elastic/report/notice_event.h"

namespace keel {

struct NoticePlan {
  std::vector<Cloud> clouds = {};   // none: nobody is asked; several: the first that answers as one
  bool insists = false;             // it was named: report if it does not answer, and keep asking
  Duration lead = kNoticeLead;
  std::optional<int64_t> known_end = {};   // nanoseconds since 1970
  std::string known_end_text = {};
  // The machine says itself whose it is: its service may be slow at first, and is asked for ever.
  bool is_sure = false;
  bool operator==(const NoticePlan&) const = default;
};

class NoticeWatch {
 public:
  NoticeWatch(NoticePlan plan, TimePoint now, int64_t wall_nanos);

  // What to ask now, if anything. OnReply() must then be told the outcome.
  std::optional<HttpRequest> Next(TimePoint now);
  void OnReply(const Result<HttpReply>& reply, TimePoint now, int64_t wall_nanos);
  void OnTime(TimePoint now);
  TimePoint NextWake() const;
  std::vector<NoticeEvent> TakeEvents();

 private:
  struct End {
    NoticeReply reply;
    std::string text;
    TimePoint at;
    Duration lead{0};
  };

  void Choose(size_t candidate);
  void Fail(const Error& error, bool has_answered, TimePoint now);
  void AskOn(const Error& error, bool has_answered, TimePoint now);
  std::string WhyNotBelieved(Duration told) const;
  void GiveUp(const std::string& why);
  void Take(const NoticeReply& reply, bool is_whole, TimePoint now, int64_t wall_nanos);
  void Withdraw();
  void TakeEnd(const NoticeReply& reply, TimePoint now, int64_t wall_nanos);
  void LeaveIfDue(TimePoint now);
  void Tell(NoticeEvent::Kind kind, std::string text, Duration left = Duration(0)) {
    events_.push_back({kind, std::move(text), left});
  }
  std::string Name() const { return std::string(CloudName(plan_.clouds[asked_.candidate])); }

  // The service that is asked, and how that goes.
  struct Asked {
    size_t candidate = 0;
    std::unique_ptr<NoticeService> service;   // null: nobody is asked
    bool in_flight = false;
    TimePoint at;               // when to ask again
    bool found = false;         // the service has answered, ever
    bool outage_told = false;
    bool nonsense_told = false;   // of one that did not answer at first
    int failures = 0;           // in a row; of all candidates until one is found
  };

  const NoticePlan plan_;
  Asked asked_;
  std::string hint_;          // the last one
  std::optional<End> announced_;
  std::optional<End> known_;
  bool left_ = false;
  std::vector<NoticeEvent> events_;
};

// How much of it workers get for saving: the host needs the rest to say goodbye.
Duration TimeToSave(Duration left);

}  // namespace keel
