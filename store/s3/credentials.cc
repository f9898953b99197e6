// Keeps what was found, and asks again in time.
#include "store/s3/credentials.h"

#include <initializer_list>
#include <limits>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "store/s3/key_sources.h"
#include "store/s3/times.h"

namespace keel {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kRenewBefore = 300 * kSecond;
constexpr int64_t kBetweenTries = 30 * kSecond;
// Before that, a place that does not answer holds up nobody for long: whoever asks may be the
// holder of a lease, which must beat.
constexpr int64_t kPatientBefore = 60 * kSecond;
constexpr KeyPatience kHasty{1, std::chrono::seconds(3), std::chrono::seconds(8)};

// What the first place gives that is set up, or only `given`, once that has given some;
// `otherwise`: what to say where none is.
Result<S3Credentials> FirstFound(const KeyPlaces& places, KeyPlace& given,
                                 std::initializer_list<KeyPlace> all,
                                 const std::string& otherwise) {
  for (const KeyPlace place : all) {
    if (given != nullptr && place != given) continue;
    KEEL_TRY_ASSIGN(std::optional<S3Credentials> keys, place(places));
    if (!keys) continue;
    given = place;
    return std::move(*keys);
  }
  return Error{Code::kInvalid, otherwise};
}

Result<S3Credentials> FindGoogles(const KeyPlaces& places, KeyPlace& given) {
  return FirstFound(places, given, {GoogleKeysOfEnvironment, GoogleTokenOfMachine},
                    "no credentials of Google's were found: this is no machine of theirs with a "
                    "service account, and GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY (HMAC keys: "
                    "`gcloud storage hmac create ACCOUNT`) are not set");
}

// When they end by the wall clock; the end of time where nobody said.
int64_t KeysEndNs(const S3Credentials& keys) {
  return keys.ends_at_ns == 0 ? std::numeric_limits<int64_t>::max() : keys.ends_at_ns;
}

}  // namespace

S3KeyRing::S3KeyRing(const S3Dialect& dialect, const Environment& environment,
                     const AwsProfile& profile, Files& files, Clock& clock,
                     HttpTransport& transport)
    : dialect_(dialect),
      environment_(environment),
      profile_(profile),
      files_(files),
      clock_(clock),
      transport_(transport) {}

Result<S3Credentials> S3KeyRing::Get(const CancelToken& cancel) {
  std::unique_lock lock(mutex_);
  bool is_early = false;   // what is held has not ended
  for (;; changed_.wait(lock)) {
    const int64_t now = clock_.WallNanos();
    is_early = held_ && now < KeysEndNs(*held_);
    const bool is_soon = is_early && now >= KeysEndNs(*held_) - kRenewBefore;
    // Keys that are given out shortly before their end are not asked for at every request.
    if (is_early && !are_refused_ && (!is_soon || is_finding_ || now < next_try_ns_)) return *held_;
    if (cancel.cancelled()) return Error{Code::kCancelled, "it was cancelled"};
    if (!is_finding_) break;
  }
  is_finding_ = true;
  const bool is_patient = !is_early || KeysEndNs(*held_) - clock_.WallNanos() < kPatientBefore;
  lock.unlock();
  Result<S3Credentials> found = Find(is_patient, cancel);
  lock.lock();
  is_finding_ = false;
  changed_.notify_all();
  // Whoever waits asks for itself then.
  if (!found.ok() && cancel.cancelled()) return Error{Code::kCancelled, "it was cancelled"};
  const int64_t now = clock_.WallNanos();
  next_try_ns_ = now + kBetweenTries;
  has_failed_ = !found.ok();
  are_refused_ = false;
  if (found.ok()) {
    held_ = *found;
    return found;
  }
  if (!held_ || now >= KeysEndNs(*held_)) return found;
  const std::string end = held_->ends_at_ns == 0 ? "unknown" : UtcText(held_->ends_at_ns);
  LogWarn("s3-keys-not-renewed", {{"reason", found.error().message}, {"end", end}});
  return *held_;
}

bool S3KeyRing::can_renew() {
  const std::lock_guard lock(mutex_);
  return held_ && (!held_->token.empty() || held_->ends_at_ns != 0);
}

void S3KeyRing::Renew(const S3Credentials& old, bool have_ended) {
  const std::lock_guard lock(mutex_);
  if (!held_ || held_->key_id != old.key_id || held_->token != old.token) return;
  if (have_ended) held_->ends_at_ns = 1;   // long ago
  // Of a burst of refusals not every one asks a service that has just failed.
  const bool is_in_vain = has_failed_ && clock_.WallNanos() < next_try_ns_;
  are_refused_ = are_refused_ || !is_in_vain;
}

void S3KeyRing::Wake() {
  {
    // A waiter that has looked at its token already is asleep before this lock is had.
    const std::lock_guard lock(mutex_);
  }
  changed_.notify_all();
}

Result<S3Credentials> S3KeyRing::Find(bool is_patient, const CancelToken& cancel) {
  const KeyPatience patience = is_patient ? KeyPatience() : kHasty;
  const KeyPlaces places{environment_, profile_, files_, transport_, clock_, patience,
                         place_ != nullptr, cancel};
  if (&dialect_ == &kGoogleDialect) return FindGoogles(places, place_);
  return FirstFound(
      places, place_,
      {KeysOfEnvironment, KeysOfWebIdentity, KeysOfProfile, KeysOfContainer, KeysOfInstance},
      "no AWS credentials were found, neither in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, nor "
      "under the profile " + Shown(profile_.name) +
          " in ~/.aws, nor from a role of this container or machine; set one of these");
}

Result<S3Credentials> KeysOfJson(const std::string& text, const std::string& from) {
  const Result<Json> json = ParseJson(text);
  // The parser's own words might quote a secret.
  if (!json.ok()) return Error{Code::kInvalid, from + " gave no JSON"};
  const auto field = [&](const char* name) { return FieldOr<std::string>(*json, name, ""); };
  S3Credentials keys;
  const Result<std::string> id = field("AccessKeyId");
  const Result<std::string> secret = field("SecretAccessKey");
  const Result<std::string> token = field("Token");
  const Result<std::string> session = field("SessionToken");
  const Result<std::string> ends = field("Expiration");
  if (!json->is_object() || !id.ok() || !secret.ok() || !token.ok() || !session.ok() ||
      !ends.ok() || id->empty() || secret->empty()) {
    return Error{Code::kInvalid, from + " gave no AccessKeyId and SecretAccessKey"};
  }
  keys.key_id = *id;
  keys.secret = *secret;
  keys.token = token->empty() ? *session : *token;
  if (ends->empty()) return keys;
  std::string when = *ends;
  if (when.ends_with("+00:00")) when.replace(when.size() - 6, 6, "Z");
  const std::optional<int64_t> at = ParseIsoTime(when);
  if (!at) return Error{Code::kInvalid, from + " gave an Expiration that is no time in UTC"};
  keys.ends_at_ns = *at;
  return keys;
}

}  // namespace keel
