// What follows each way in which a try can end.
#include "store/s3/retry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keel {
namespace {

using testing::HasSubstr;
using Kind = S3Verdict::Kind;
using std::chrono::milliseconds;
using std::chrono::seconds;

const S3RetryPolicy kPolicy;

S3Progress Early(S3Effect effect = S3Effect::kNone) {
  S3Progress progress;
  progress.effect = effect;
  progress.left = seconds(60);
  return progress;
}
S3Progress Late(S3Effect effect, bool is_unsure = false) {
  S3Progress progress = Early(effect);
  progress.tries = kPolicy.tries_max;
  progress.is_unsure = is_unsure;
  return progress;
}
S3Try Status(int status, const std::string& code = "") { return {.status = status, .code = code}; }
S3Try Ended(HttpEnd end) { return {.end = end, .words = "h: the words"}; }

TEST(S3Retry, AGoodAnswerIsDone) {
  EXPECT_EQ(DecideAfterTry(Status(200), Early(), kPolicy).kind, Kind::kDone);
  EXPECT_EQ(DecideAfterTry(Status(204), Early(), kPolicy).kind, Kind::kDone);
}

TEST(S3Retry, WhatPassesIsTriedAgain) {
  for (const S3Try& one :
       {Status(500, "InternalError"), Status(503, "SlowDown"), Status(429), Status(408),
        Status(409, "ConditionalRequestConflict"), Status(400, "RequestTimeout"), Status(307),
        Status(200, "InternalError"), Ended(HttpEnd::kNotSent), Ended(HttpEnd::kBroken),
        Ended(HttpEnd::kTimedOut)}) {
    EXPECT_EQ(DecideAfterTry(one, Early(), kPolicy).kind, Kind::kAgain) << one.status << one.code;
    EXPECT_EQ(DecideAfterTry(one, Late(S3Effect::kSame), kPolicy).kind, Kind::kGiveUp);
  }
}

TEST(S3Retry, WhatStaysIsNot) {
  const std::pair<S3Try, Code> kCases[] = {
      {Status(404, "NoSuchKey"), Code::kNotFound}, {Status(404), Code::kNotFound},
      {Status(404, "NoSuchBucket"), Code::kInvalid}, {Status(403, "AccessDenied"), Code::kInvalid},
      {Status(400, "InvalidArgument"), Code::kInvalid}, {Status(501), Code::kInvalid},
      {Status(403, "QuotaExceeded"), Code::kNoSpace}, {Status(507), Code::kNoSpace},
      {Status(412), Code::kExists}, {Ended(HttpEnd::kHopeless), Code::kInvalid},
      {Ended(HttpEnd::kCancelled), Code::kCancelled}};
  for (const auto& [one, code] : kCases) {
    const S3Verdict verdict = DecideAfterTry(one, Early(), kPolicy);
    EXPECT_EQ(verdict.kind, Kind::kGiveUp) << one.status << one.code;
    EXPECT_EQ(verdict.code, code) << one.status << one.code;
  }
}

TEST(S3Retry, GivingUpSaysHowToReact) {
  const std::pair<S3Try, Code> kCases[] = {
      {Ended(HttpEnd::kNotSent), Code::kPeerLost}, {Ended(HttpEnd::kBroken), Code::kPeerLost},
      {Ended(HttpEnd::kTimedOut), Code::kTimeout}, {Status(503, "SlowDown"), Code::kTimeout},
      {Status(500), Code::kIo}, {Status(400, "BadDigest"), Code::kCorrupt}};
  for (const auto& [one, code] : kCases) {
    EXPECT_EQ(DecideAfterTry(one, Late(S3Effect::kNone), kPolicy).code, code) << one.status;
  }
  EXPECT_THAT(DecideAfterTry(Ended(HttpEnd::kBroken), Early(), kPolicy).reason, "h: the words");
  EXPECT_THAT(DecideAfterTry(Status(503, "SlowDown"), Early(), kPolicy).reason,
              HasSubstr("503 SlowDown"));
}

TEST(S3Retry, PausesGrowToTheirBoundAndObeyTheStore) {
  S3Progress progress = Early();
  std::vector<Duration> pauses;
  for (progress.tries = 1; progress.tries < kPolicy.tries_max; ++progress.tries) {
    pauses.push_back(DecideAfterTry(Status(503), progress, kPolicy).pause);
  }
  EXPECT_THAT(pauses, testing::ElementsAre(milliseconds(100), milliseconds(200), milliseconds(400),
                                           milliseconds(800), milliseconds(1600),
                                           milliseconds(3200), milliseconds(5000)));
  progress.tries = 1;
  progress.jitter = 0.5;
  EXPECT_EQ(DecideAfterTry(Status(503), progress, kPolicy).pause, milliseconds(50));
  S3Try slow = Status(503);
  slow.retry_after = seconds(7);
  EXPECT_EQ(DecideAfterTry(slow, progress, kPolicy).pause, seconds(7));
  progress.left = seconds(7);
  EXPECT_EQ(DecideAfterTry(slow, progress, kPolicy).kind, Kind::kGiveUp);
}

TEST(S3Retry, ExpiredKeysAreFetchedAnewOnce) {
  S3Progress progress = Early();
  EXPECT_EQ(DecideAfterTry(Status(403, "ExpiredToken"), progress, kPolicy).kind, Kind::kGiveUp);
  progress.can_renew = true;
  for (const S3Try& one : {Status(403, "ExpiredToken"), Status(400, "ExpiredToken"), Status(403)}) {
    const S3Verdict verdict = DecideAfterTry(one, progress, kPolicy);
    EXPECT_EQ(verdict.kind, Kind::kAgain);
    EXPECT_TRUE(verdict.renew);
    EXPECT_EQ(verdict.pause, Duration::zero());
  }
  progress.has_renewed = true;
  EXPECT_EQ(DecideAfterTry(Status(403, "ExpiredToken"), progress, kPolicy).kind, Kind::kGiveUp);
}

TEST(S3Retry, AWrongClockIsSetOnce) {
  S3Progress progress = Early();
  const S3Verdict verdict = DecideAfterTry(Status(403, "RequestTimeTooSkewed"), progress, kPolicy);
  EXPECT_EQ(verdict.kind, Kind::kAgain);
  EXPECT_TRUE(verdict.set_clock);
  S3Try mute = Status(403);
  EXPECT_FALSE(DecideAfterTry(mute, progress, kPolicy).set_clock);
  mute.clock_differs = true;
  EXPECT_TRUE(DecideAfterTry(mute, progress, kPolicy).set_clock);
  progress.has_set_clock = true;
  EXPECT_EQ(DecideAfterTry(Status(403, "RequestTimeTooSkewed"), progress, kPolicy).kind,
            Kind::kGiveUp);
}

TEST(S3Retry, AnotherRegionIsAskedOnce) {
  S3Try elsewhere = Status(301, "PermanentRedirect");
  elsewhere.names_region = true;
  S3Progress progress = Early();
  EXPECT_TRUE(DecideAfterTry(elsewhere, progress, kPolicy).move);
  progress.has_moved = true;
  EXPECT_EQ(DecideAfterTry(elsewhere, progress, kPolicy).kind, Kind::kGiveUp);
}

TEST(S3Retry, DamageIsTriedThreeTimes) {
  S3Progress progress = Early();
  EXPECT_EQ(DecideAfterTry(Status(400, "BadDigest"), progress, kPolicy).kind, Kind::kAgain);
  progress.damaged = 2;
  EXPECT_EQ(DecideAfterTry(Status(400, "BadDigest"), progress, kPolicy).kind, Kind::kGiveUp);
}

TEST(S3Retry, APutOfWhatIsThereIsSettled) {
  EXPECT_EQ(DecideAfterTry(Status(412), Early(S3Effect::kOnce), kPolicy).kind, Kind::kSettle);
  // Nobody knows whether the last try made it.
  EXPECT_EQ(DecideAfterTry(Ended(HttpEnd::kTimedOut), Late(S3Effect::kOnce), kPolicy).kind,
            Kind::kSettle);
  EXPECT_EQ(DecideAfterTry(Status(503), Late(S3Effect::kOnce), kPolicy).kind, Kind::kSettle);
  // An earlier one may have.
  EXPECT_EQ(DecideAfterTry(Ended(HttpEnd::kNotSent), Late(S3Effect::kOnce, true), kPolicy).kind,
            Kind::kSettle);
  EXPECT_EQ(DecideAfterTry(Ended(HttpEnd::kNotSent), Late(S3Effect::kOnce), kPolicy).kind,
            Kind::kGiveUp);
}

TEST(S3Retry, AnEndOfAnUploadIsSettledOnlyIfAnEarlierTryMayHaveDoneIt) {
  S3Progress progress = Early(S3Effect::kCompletes);
  EXPECT_EQ(DecideAfterTry(Status(404, "NoSuchUpload"), progress, kPolicy).kind, Kind::kGiveUp);
  progress.is_unsure = true;
  EXPECT_EQ(DecideAfterTry(Status(404, "NoSuchUpload"), progress, kPolicy).kind, Kind::kSettle);
}

TEST(S3Retry, ARegionThatATemporaryRedirectNamesIsAskedOnce) {
  S3Try elsewhere = Status(307, "TemporaryRedirect");
  S3Progress progress = Early();
  EXPECT_FALSE(DecideAfterTry(elsewhere, progress, kPolicy).move);
  elsewhere.names_region = true;
  const S3Verdict verdict = DecideAfterTry(elsewhere, progress, kPolicy);
  EXPECT_TRUE(verdict.move);
  EXPECT_EQ(verdict.pause, Duration::zero());
  progress.has_moved = true;
  const S3Verdict again = DecideAfterTry(elsewhere, progress, kPolicy);
  EXPECT_FALSE(again.move);
  EXPECT_EQ(again.kind, Kind::kAgain);
}

TEST(S3Retry, OnlyAStoreThatNamesTheKeysSaysThatTheyHaveEnded) {
  S3Progress progress = Early();
  progress.can_renew = true;
  EXPECT_TRUE(DecideAfterTry(Status(403, "ExpiredToken"), progress, kPolicy).keys_have_ended);
  for (const S3Try& one : {Status(400), Status(403), Status(401, "AuthenticationRequired")}) {
    const S3Verdict verdict = DecideAfterTry(one, progress, kPolicy);
    EXPECT_TRUE(verdict.renew) << one.status;
    EXPECT_FALSE(verdict.keys_have_ended) << one.status;
  }
}

}  // namespace
}  // namespace keel
