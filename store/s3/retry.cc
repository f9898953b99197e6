// A table of what stores say, then the rules for trying again.
#include "store/s3/retry.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace keel {
namespace {

using Kind = S3Verdict::Kind;

template <size_t n>
bool IsOneOf(const std::string& code, const std::string_view (&codes)[n]) {
  return std::find(std::begin(codes), std::end(codes), code) != std::end(codes);
}

constexpr std::string_view kOldKeys[] = {"ExpiredToken", "ExpiredTokenException",
                                         "TokenRefreshRequired", "InvalidToken", "RequestExpired"};
constexpr std::string_view kDamaged[] = {"BadDigest", "XAmzContentSHA256Mismatch",
                                         "XAmzContentChecksumMismatch", "IncompleteBody"};
constexpr std::string_view kPassing[] = {
    "RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable", "Throttling",
    "ThrottlingException", "RequestLimitExceeded", "OperationAborted",
    "ConditionalRequestConflict", "TemporaryRedirect"};
constexpr std::string_view kFull[] = {"QuotaExceeded", "XMinioStorageFull", "InsufficientStorage",
                                      "ServiceQuotaExceeded", "AccountQuotaExceeded"};
constexpr std::string_view kRefusals[] = {"NoSuchBucket", "AccessDenied", "InvalidAccessKeyId",
                                          "SignatureDoesNotMatch", "AllAccessDisabled"};

std::string ReasonOf(const S3Try& one) {
  if (one.end != HttpEnd::kAnswered || one.is_damaged) return one.words;
  return std::to_string(one.status) + (one.code.empty() ? "" : " " + one.code) +
         (one.words.empty() ? "" : ": " + one.words);
}

// A refusal that no further try changes.
Code CodeOfRefusal(const S3Try& one) {
  if (IsOneOf(one.code, kFull) || one.status == 507) return Code::kNoSpace;
  if (IsOneOf(one.code, kRefusals)) return Code::kInvalid;
  if (one.status == 404) return Code::kNotFound;
  if (one.status == 412) return Code::kExists;
  return Code::kInvalid;
}

bool MayPass(const S3Try& one) {
  if (one.status == 501 || one.status == 505 || one.status == 507) return false;
  return one.status >= 500 || one.status == 429 || one.status == 408 || one.status == 307 ||
         IsOneOf(one.code, kPassing);
}

// What a request that is given up leaves its caller to do.
Code CodeOfGivingUp(const S3Try& one) {
  switch (one.end) {
    case HttpEnd::kNotSent:
    case HttpEnd::kBroken:
      return Code::kPeerLost;
    case HttpEnd::kTimedOut:
      return Code::kTimeout;
    case HttpEnd::kCancelled:
      return Code::kCancelled;
    case HttpEnd::kHopeless:
      return Code::kInvalid;
    case HttpEnd::kAnswered:
      break;
  }
  if (one.is_damaged || IsOneOf(one.code, kDamaged)) return Code::kCorrupt;
  return one.status == 429 || one.status == 503 ? Code::kTimeout : Code::kIo;
}

Duration PauseFor(const S3Try& one, const S3Progress& progress, const S3RetryPolicy& policy) {
  Duration most = policy.pause_first;
  for (int i = 1; i < progress.tries && most < policy.pause_max; ++i) most *= 2;
  most = std::min(most, policy.pause_max);
  const Duration pause{static_cast<int64_t>(static_cast<double>(most.count()) * progress.jitter)};
  return std::max(pause, one.retry_after.value_or(Duration::zero()));
}

// Again after a pause, if tries and time are left.
S3Verdict Again(const S3Try& one, const S3Progress& progress, const S3RetryPolicy& policy,
                S3Verdict verdict) {
  verdict.kind = Kind::kAgain;
  const bool is_cured = verdict.renew || verdict.set_clock || verdict.move;
  if (!is_cured) verdict.pause = PauseFor(one, progress, policy);
  const bool is_last = progress.tries >= policy.tries_max || verdict.pause >= progress.left ||
                       (verdict.is_damage && progress.damaged + 1 >= policy.damaged_max);
  if (!is_last) return verdict;
  const bool can_settle =
      progress.effect == S3Effect::kOnce || progress.effect == S3Effect::kCompletes;
  const bool is_unsure = verdict.may_have_happened || progress.is_unsure;
  verdict.kind = can_settle && is_unsure ? Kind::kSettle : Kind::kGiveUp;
  verdict.code = CodeOfGivingUp(one);
  return verdict;
}

// A cure for what is wrong with the request's signature, once each.
bool FindCure(const S3Try& one, const S3Progress& progress, S3Verdict& verdict) {
  // The answer to HEAD has no body that could name the error.
  const bool is_mute = one.code.empty() && (one.status == 400 || one.status == 403);
  verdict.move = one.names_region && !progress.has_moved &&
                 (one.status == 301 || one.status == 307 || one.status == 400 ||
                  one.status == 403);
  if (verdict.move) return true;
  const bool is_skewed = one.code == "RequestTimeTooSkewed" || (is_mute && one.clock_differs) ||
                         (one.code == "AccessDenied" && one.clock_differs);
  verdict.set_clock = is_skewed && !progress.has_set_clock;
  if (verdict.set_clock) return true;
  const bool are_old = IsOneOf(one.code, kOldKeys);
  verdict.renew = (is_mute || one.status == 401 || are_old) && progress.can_renew &&
                  !progress.has_renewed;
  verdict.keys_have_ended = verdict.renew && are_old;
  return verdict.renew;
}

S3Verdict AfterRefusal(const S3Try& one, const S3Progress& progress, const S3RetryPolicy& policy,
                       S3Verdict verdict) {
  if (FindCure(one, progress, verdict)) return Again(one, progress, policy, verdict);
  verdict.is_damage = IsOneOf(one.code, kDamaged);
  // A server that failed may have done its work before, as one that begins with 200 and then fails.
  verdict.may_have_happened = one.status / 100 == 2 || (one.status >= 500 && one.status != 501);
  if (verdict.is_damage || MayPass(one)) return Again(one, progress, policy, verdict);
  // Whatever a try is refused for, one before it may have had the effect.
  const bool happens_once =
      progress.effect == S3Effect::kOnce || progress.effect == S3Effect::kCompletes;
  const bool is_own_effect = (progress.effect == S3Effect::kOnce && one.status == 412) ||
                             (happens_once && progress.is_unsure);
  verdict.kind = is_own_effect ? Kind::kSettle : Kind::kGiveUp;
  verdict.code = CodeOfRefusal(one);
  return verdict;
}

}  // namespace

S3Verdict DecideAfterTry(const S3Try& one, const S3Progress& progress,
                         const S3RetryPolicy& policy) {
  S3Verdict verdict;
  verdict.reason = ReasonOf(one);
  switch (one.end) {
    case HttpEnd::kCancelled:
    case HttpEnd::kHopeless:
      verdict.kind = Kind::kGiveUp;
      verdict.code = CodeOfGivingUp(one);
      return verdict;
    case HttpEnd::kNotSent:
      return Again(one, progress, policy, verdict);
    case HttpEnd::kBroken:
    case HttpEnd::kTimedOut:
      verdict.may_have_happened = true;
      return Again(one, progress, policy, verdict);
    case HttpEnd::kAnswered:
      break;
  }
  // An error may also stand in the body of an answer that began well, when its work took long.
  const bool is_good = one.status / 100 == 2 && one.code.empty();
  if (!is_good) return AfterRefusal(one, progress, policy, verdict);
  if (!one.is_damaged) return verdict;
  verdict.may_have_happened = true;
  return Again(one, progress, policy, verdict);
}

}  // namespace keel
