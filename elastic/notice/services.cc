// One class for each cloud.
#include "elastic/notice/services.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace keel {
namespace {

using std::chrono::seconds;

Error NotGiven(const std::string& what, int status) {
  return {Code::kForeign, what + " was answered with status " + std::to_string(status)};
}

// --- AWS: it tells nothing without a token, which is asked for first ---

constexpr Duration kTokenLife = seconds(21600);
constexpr Duration kTokenPause = seconds(60);   // after a renewal that failed
constexpr Duration kAwsPeriod = seconds(5);
constexpr Duration kAwsLimit = seconds(2);
constexpr int kPollsToHint = 6;      // between two questions about rebalancing

class AwsService : public NoticeService {
 public:
  HttpRequest Ask(TimePoint now) override {
    // While the old token lives, a renewal that fails does not keep us from asking.
    const bool renews = token_.empty() || now >= renew_at_;
    if (renews) {
      asked_ = Asked::kToken;
      renew_at_ = now + kTokenPause;
      const auto life = std::to_string(kTokenLife / seconds(1));
      return {"PUT", "/latest/api/token", {{"X-aws-ec2-metadata-token-ttl-seconds", life}},
              kAwsLimit};
    }
    if (asked_ == Asked::kToken) asked_ = Asked::kAction;
    const std::string path = asked_ == Asked::kAction ? "spot/instance-action"
                                                      : "events/recommendations/rebalance";
    return {"GET", "/latest/meta-data/" + path, {{"X-aws-ec2-metadata-token", token_}}, kAwsLimit};
  }

  Result<Heard> Hear(const HttpReply& reply, TimePoint now) override {
    if (asked_ == Asked::kToken) return HearToken(reply, now);
    if (reply.status == 401) {   // the token is no longer valid, whatever its age
      token_.clear();
      return NotGiven("the request with our token", reply.status);
    }
    if (asked_ == Asked::kAction) return HearAction(reply);
    asked_ = Asked::kAction;
    KEEL_TRY_ASSIGN(const NoticeReply hint, ReadAwsRebalance(reply.status, reply.body));
    Heard heard{std::nullopt, kAwsPeriod, false};   // of an interruption it says nothing
    if (hint.word == NoticeWord::kHint) heard.reply = hint;
    return heard;
  }

  Duration usual_notice() const override { return seconds(120); }
  std::optional<Duration> longest_notice() const override { return seconds(120); }

 private:
  enum class Asked { kToken, kAction, kRebalance };

  Result<Heard> HearToken(const HttpReply& reply, TimePoint now) {
    const std::string token(Trim(reply.body));
    if (reply.status != 200) return NotGiven("the request for a token", reply.status);
    if (!IsPlainWord(token)) return Error{Code::kCorrupt, "a token with unusable characters"};
    token_ = token;
    renew_at_ = now + kTokenLife / 2;
    asked_ = Asked::kAction;
    return Heard{};
  }

  Result<Heard> HearAction(const HttpReply& reply) {
    KEEL_TRY_ASSIGN(NoticeReply notice, ReadAwsAction(reply.status, reply.body));
    const bool hint_is_due = polls_++ % kPollsToHint == 0;
    if (hint_is_due) asked_ = Asked::kRebalance;
    return Heard{std::move(notice), hint_is_due ? Duration(0) : kAwsPeriod};
  }

  std::string token_;
  TimePoint renew_at_;
  Asked asked_ = Asked::kToken;
  int polls_ = 0;
};

// --- GCP: it answers a question once something has changed ---

constexpr Duration kGcpWait = seconds(20);
constexpr Duration kGcpPeriod = seconds(5);    // if it answers at once all the same
constexpr Duration kGcpLimit = seconds(5);

class GcpService : public NoticeService {
 public:
  HttpRequest Ask(TimePoint now) override {
    asked_at_ = now;
    waits_ = known_;
    std::string target = "/computeMetadata/v1/instance/preempted";
    // The first question is answered at once; the tag makes sure that no change in between is
    // missed.
    if (waits_) {
      target += "?wait_for_change=true&timeout_sec=" + std::to_string(kGcpWait / seconds(1));
      if (!etag_.empty()) target += "&last_etag=" + etag_;
    }
    return {"GET", target, {{"Metadata-Flavor", "Google"}},
            waits_ ? kGcpWait + kGcpLimit : kGcpLimit};
  }

  Result<Heard> Hear(const HttpReply& reply, TimePoint now) override {
    known_ = false;
    KEEL_TRY_ASSIGN(NoticeReply notice, ReadGcpPreempted(reply.status, reply.body));
    known_ = true;
    const bool is_tag = IsPlainWord(reply.etag) &&
                        std::all_of(reply.etag.begin(), reply.etag.end(), [](unsigned char c) {
                          return std::isalnum(c) != 0;
                        });
    etag_ = is_tag ? reply.etag : "";
    const Duration since = now - asked_at_;
    const Duration pause = waits_ && since < kGcpPeriod ? kGcpPeriod - since : Duration(0);
    return Heard{std::move(notice), pause};
  }

  Duration usual_notice() const override { return seconds(30); }

 private:
  bool known_ = false;    // the last question was answered
  bool waits_ = false;
  TimePoint asked_at_;
  std::string etag_;
};

// --- Azure: it has a list of events for all machines that belong together ---

constexpr Duration kAzurePeriod = seconds(2);
constexpr Duration kAzureLimit = seconds(10);
// A machine that asks for the first time may have to wait for two minutes.
constexpr Duration kAzureFirstLimit = seconds(130);

class AzureService : public NoticeService {
 public:
  HttpRequest Ask(TimePoint) override {
    asks_name_ = !own_name_;
    return {"GET",
            asks_name_ ? "/metadata/instance/compute/name?api-version=2020-06-01&format=text"
                       : "/metadata/scheduledevents?api-version=2020-07-01",
            {{"Metadata", "true"}}, asks_name_ || has_list_ ? kAzureLimit : kAzureFirstLimit};
  }

  Result<Heard> Hear(const HttpReply& reply, TimePoint) override {
    if (asks_name_) {
      const std::string name(Trim(reply.body));
      if (reply.status >= 500 || reply.status == 429) {
        return NotGiven("the request for our name", reply.status);
      }
      own_name_ = reply.status == 200 && IsPlainWord(name) ? name : "";
      return Heard{};
    }
    KEEL_TRY_ASSIGN(NoticeReply notice, ReadAzureEvents(reply.status, reply.body, *own_name_));
    has_list_ = true;
    return Heard{std::move(notice), kAzurePeriod};
  }

  Duration usual_notice() const override { return seconds(30); }

 private:
  std::optional<std::string> own_name_;   // empty: the service does not tell
  bool asks_name_ = false;
  bool has_list_ = false;   // it has answered with one
};

}  // namespace

std::string_view CloudName(Cloud cloud) {
  switch (cloud) {
    case Cloud::kAws: return "AWS";
    case Cloud::kGcp: return "GCP";
    case Cloud::kAzure: return "Azure";
  }
  return "unknown";
}

std::unique_ptr<NoticeService> MakeNoticeService(Cloud cloud) {
  switch (cloud) {
    case Cloud::kAws: return std::make_unique<AwsService>();
    case Cloud::kGcp: return std::make_unique<GcpService>();
    case Cloud::kAzure: return std::make_unique<AzureService>();
  }
  return nullptr;
}

}  // namespace keel
