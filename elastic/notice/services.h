// NoticeServices: how to ask each cloud's metadata service whether this machine ends.
// Promises   one question at a time, each with a limit. Only the time passed in and the replies
//            decide what is asked next, and when.
// Does not   send anything (elastic/notice/http_call.h), or act (elastic/notice/watch.h).
//            Acknowledge a notice: that would only bring the end nearer.
// Threads    one. Errors: those of elastic/notice/formats.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "elastic/notice/formats.h"

namespace keel {

enum class Cloud { kAws, kGcp, kAzure };
std::string_view CloudName(Cloud cloud);

struct HttpRequest {
  std::string method = "GET";
  std::string target = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  Duration limit{0};   // for everything, from the connection to the last byte
};
struct HttpReply {
  int status = 0;
  std::string body = {};
  std::string etag = {};
};

class NoticeService {
 public:
  virtual ~NoticeService() = default;

  virtual HttpRequest Ask(TimePoint now) = 0;
  struct Heard {
    std::optional<NoticeReply> reply = {};   // empty: it was about something else
    Duration pause{0};                       // before the next question
    bool is_whole = true;                    // it has all that the service announces now
  };
  // The reply to the last question.
  virtual Result<Heard> Hear(const HttpReply& reply, TimePoint now) = 0;

  // How long before the end a notice comes if it does not say so itself.
  virtual Duration usual_notice() const = 0;
  // No notice comes earlier than this: one that says more uses a clock that differs from ours.
  virtual std::optional<Duration> longest_notice() const { return std::nullopt; }
};

std::unique_ptr<NoticeService> MakeNoticeService(Cloud cloud);

}  // namespace keel
