// The judge of times: a table of what holders and lookers may do, and when.
#include "store/lease/lease_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/random.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

TimePoint At(Duration since_start) { return TimePoint{since_start}; }

const Error kAway{Code::kIo, "it is away"};
const Error kOver{Code::kStaleEpoch, "term 2 is claimed"};

TEST(JudgeHolder, MayFormOnlyWhileItsLastBeatIsYoung) {
  LeaseHolding holding = AfterBeat({}, At(10s), Ok());
  EXPECT_TRUE(JudgeHolder(holding, At(10s)).may_form);
  EXPECT_TRUE(JudgeHolder(holding, At(15s - 1ns)).may_form);
  EXPECT_FALSE(JudgeHolder(holding, At(15s)).may_form);
  EXPECT_EQ(JudgeHolder(holding, At(15s)).detail, "no beat of its lease succeeded for 5 s");
  EXPECT_EQ(JudgeHolder(holding, At(11s)).beat_at, At(12s));

  holding = AfterBeat(holding, At(12s), kAway);
  EXPECT_TRUE(JudgeHolder(holding, At(14s)).may_form);
  EXPECT_EQ(JudgeHolder(holding, At(14s)).beat_at, At(12s + kLeaseBeatRetry));
  EXPECT_FALSE(JudgeHolder(holding, At(16s)).may_form);
  EXPECT_EQ(JudgeHolder(holding, At(16s)).detail,
            "no beat of its lease succeeded for 6 s: it is away");

  // A call that took long counts from its beginning, and its success makes up for all failures.
  holding = AfterBeat(holding, At(14s), Ok());
  EXPECT_TRUE(JudgeHolder(holding, At(18s)).may_form);
  EXPECT_FALSE(JudgeHolder(holding, At(19s)).may_form);
}

TEST(JudgeHolder, WithoutAClaimItMayNotForm) {
  EXPECT_FALSE(JudgeHolder({}, At(0s)).may_form);
  const HolderVerdict verdict = JudgeHolder(AfterBeat({}, At(1s), kAway), At(1s));
  EXPECT_FALSE(verdict.may_form);
  EXPECT_FALSE(verdict.is_lost);
  EXPECT_EQ(verdict.detail, "it has no lease: it is away");
}

TEST(JudgeHolder, AHigherTermEndsItAtOnce) {
  const LeaseHolding holding = AfterBeat(AfterBeat({}, At(10s), Ok()), At(12s), kOver);
  const HolderVerdict verdict = JudgeHolder(holding, At(12s));
  EXPECT_FALSE(verdict.may_form);
  EXPECT_TRUE(verdict.is_lost);
  EXPECT_EQ(verdict.beat_at, kNever);
  EXPECT_EQ(verdict.detail, "its lease is lost: term 2 is claimed");
}

LeaseSight Sight(int64_t term, const std::string& beat) {
  LeaseSight sight;
  sight.term = term;
  sight.run = "run";
  sight.text = "a";
  sight.beat = beat;
  return sight;
}

LookerVerdict Judge(const LeaseWatch& watch, Duration now) {
  return JudgeLooker(watch, "run", At(now));
}

TEST(JudgeLooker, ClaimsWhatNobodyHoldsOrSomebodyReleased) {
  EXPECT_FALSE(Judge({}, 5s).may_claim);
  EXPECT_EQ(Judge({}, 5s).reason, LookerReason::kNotSeen);
  EXPECT_EQ(Judge({}, 5s).look_at, At(5s));
  const LookerVerdict first = Judge(AfterLook({}, LeaseSight{}, At(1s), At(1s)), 1s);
  EXPECT_TRUE(first.may_claim);
  EXPECT_EQ(first.term, 1);
  EXPECT_EQ(first.reason, LookerReason::kFree);
  LeaseSight released = Sight(4, "x");
  released.released = true;
  const LookerVerdict next = Judge(AfterLook({}, released, At(1s), At(1s)), 1s);
  EXPECT_TRUE(next.may_claim);
  EXPECT_EQ(next.term, 5);
  EXPECT_EQ(next.reason, LookerReason::kReleased);
}

TEST(JudgeLooker, ClaimsOnceTheBeatStoodStill) {
  LeaseWatch watch = AfterLook({}, Sight(4, "x"), At(10s), At(11s));
  EXPECT_EQ(Judge(watch, 12s).reason, LookerReason::kHeld);
  EXPECT_EQ(Judge(watch, 12s).detail, "term 4 is held, its beat rose 1 s ago");
  EXPECT_EQ(Judge(watch, 12s).look_at, At(14s));
  EXPECT_EQ(Judge(watch, 17s).look_at, At(18s));
  // The first look may have seen a beat that was written just before it ended, and the last one
  // nothing later than its beginning.
  watch = AfterLook(watch, Sight(4, "x"), At(18s - 1ns), At(30s));
  EXPECT_FALSE(Judge(watch, 30s).may_claim);
  watch = AfterLook(watch, Sight(4, "x"), At(18s), At(18s));
  EXPECT_TRUE(Judge(watch, 18s).may_claim);
  EXPECT_EQ(Judge(watch, 18s).term, 5);
  EXPECT_EQ(Judge(watch, 18s).reason, LookerReason::kStoodStill);
  EXPECT_EQ(Judge(watch, 18s).detail, "the beat of term 4 stood still for 7 s");
}

TEST(JudgeLooker, ABeatOrAnotherTermBeginsAnew) {
  LeaseWatch watch = AfterLook({}, Sight(4, "x"), At(0s), At(0s));
  watch = AfterLook(watch, Sight(4, "y"), At(10s), At(10s));
  EXPECT_FALSE(Judge(watch, 10s).may_claim);
  watch = AfterLook(watch, Sight(5, "y"), At(20s), At(20s));
  EXPECT_FALSE(Judge(watch, 20s).may_claim);
  watch = AfterLook(watch, Sight(5, "y"), At(27s), At(27s));
  EXPECT_TRUE(Judge(watch, 27s).may_claim);
}

TEST(JudgeLooker, TimeWithoutALookShowsNothing) {
  // All looks failed since, or this process was suspended.
  const LeaseWatch watch = AfterLook({}, Sight(4, "x"), At(0s), At(0s));
  EXPECT_FALSE(Judge(watch, 100s).may_claim);
  EXPECT_LE(Judge(watch, 100s).look_at, At(100s));
  EXPECT_FALSE(Judge(AfterLook(watch, Sight(4, "y"), At(100s), At(100s)), 100s).may_claim);
}

TEST(JudgeLooker, AnotherRunIsNamedUntilItStandsStill) {
  LeaseSight sight = Sight(4, "x");
  sight.run = "other";
  sight.text = "10.0.0.7:29400";
  LeaseWatch watch = AfterLook({}, sight, At(0s), At(0s));
  EXPECT_EQ(Judge(watch, 0s).reason, LookerReason::kHeldByAnotherRun);
  EXPECT_EQ(Judge(watch, 0s).detail,
            "another run of this job holds term 4 of the lease, and says '10.0.0.7:29400': stop "
            "that run first, or give this job another name");
  watch = AfterLook(watch, sight, At(7s), At(7s));
  EXPECT_TRUE(Judge(watch, 7s).may_claim);
}

TEST(JudgeHolder, IsAloneOnceNoFormerHolderMayForm) {
  const auto alone_from = [](const LeaseWatch& watch, const LeaseGrant& grant) {
    const LeaseHolding holding = AfterClaim(watch, grant, At(20s), At(21s));
    EXPECT_TRUE(JudgeHolder(holding, At(21s)).may_form);
    EXPECT_EQ(JudgeHolder(holding, At(21s)).is_alone, holding.alone_from <= At(21s));
    return holding.alone_from.since_start;
  };
  LeaseWatch still = AfterLook({}, Sight(4, "x"), At(5s), At(6s));
  still = AfterLook(still, Sight(4, "x"), At(13s), At(14s));
  EXPECT_EQ(alone_from(still, {4, "x"}), 21s);
  EXPECT_EQ(alone_from(still, {4, "y"}), 28s) << "it beat before the claim was in place";
  EXPECT_EQ(alone_from(still, {5, "x"}), 28s) << "another term";
  EXPECT_EQ(alone_from({}, {4, "x"}), 28s) << "it was never watched";
  EXPECT_EQ(alone_from({}, {}), 21s) << "there was no former one";
  const LeaseWatch once = AfterLook({}, Sight(4, "x"), At(13s), At(14s));
  EXPECT_EQ(alone_from(once, {4, "x"}), 28s) << "it was not watched for long";
  LeaseSight released = Sight(4, "x");
  released.released = true;
  EXPECT_EQ(alone_from(AfterLook({}, released, At(13s), At(14s)), {4, "x"}), 21s);
  // Its own beats must be young all the same.
  LeaseHolding holding = AfterClaim({}, LeaseGrant{4, "x"}, At(20s), At(21s));
  EXPECT_FALSE(JudgeHolder(holding, At(28s)).is_alone);
  holding = AfterBeat(holding, At(26s), Ok());
  EXPECT_FALSE(JudgeHolder(holding, At(28s - 1ns)).is_alone);
  EXPECT_TRUE(JudgeHolder(holding, At(28s)).is_alone);
  EXPECT_FALSE(JudgeHolder(AfterClaim({}, kAway, At(20s), At(21s)), At(21s)).may_form);
}

// A beat is in place at some time after its call began, and the look for a higher term follows.
struct SomeBeat {
  Duration began, placed, looked, ended;
  bool arrives, is_answered;
};

Duration Seconds(Random& random, double most) {
  return Duration(static_cast<int64_t>(1e9 * most * random.Double()));
}

// What a holder does until it dies: calls take up to some seconds, and many fail.
std::vector<SomeBeat> SomeBeats(Random& random) {
  std::vector<SomeBeat> beats = {{0s, 0s, 0s, 0s, true, true}};
  const Duration dies = Seconds(random, 60);
  const double arrive = random.Double();
  for (Duration at = 2s; at < dies;) {
    SomeBeat beat{at, at + Seconds(random, 1), at, at, random.Chance(arrive), random.Chance(.9)};
    beat.looked = beat.placed + Seconds(random, 1);
    beat.ended = beat.looked + Seconds(random, 1);
    const bool ok = beat.arrives && beat.is_answered;
    const LeaseHolding holding = AfterBeat({}, At(at), ok ? Ok() : Status(kAway));
    at = std::max(beat.ended, JudgeHolder(holding, At(beat.ended)).beat_at.since_start);
    beats.push_back(beat);
  }
  return beats;
}

std::string BeatAt(const std::vector<SomeBeat>& beats, Duration now) {
  std::string seen;
  for (const SomeBeat& beat : beats) {
    if (beat.arrives && beat.placed <= now) seen = std::to_string(beat.began.count());
  }
  return seen;
}

// Whether the holder may form at that time, where a higher term was in place from `claimed` on.
bool MayFormAt(const std::vector<SomeBeat>& beats, Duration claimed, Duration now) {
  LeaseHolding holding;
  for (const SomeBeat& beat : beats) {
    if (beat.ended > now) break;
    const bool ok = beat.arrives && beat.is_answered;
    const Status found = beat.looked >= claimed ? Status(kOver) : Ok();
    holding = AfterBeat(holding, At(beat.began), ok ? found : Status(kAway));
    if (ok && !found.ok()) return false;
  }
  return JudgeHolder(holding, At(now)).may_form;
}

struct SomeClaim {
  Duration placed;
  Duration alone;      // from then on its claimant takes itself for the only one
  bool waits = false;
};

// By a looker whose clock is faster or slower by up to 1 %, and who stands still now and then.
SomeClaim ClaimFrom(const std::vector<SomeBeat>& beats, Random& random) {
  const double rate = .99 + .02 * random.Double();
  const auto own = [&](Duration time) {
    return At(Duration(static_cast<int64_t>(rate * static_cast<double>(time.count()))));
  };
  LeaseWatch watch;
  Duration now = Seconds(random, 2);
  for (;;) {
    const Duration began = now, sees = began + Seconds(random, 1);
    now = sees + Seconds(random, 1);
    watch = AfterLook(watch, Sight(1, BeatAt(beats, sees)), own(began), own(now));
    if (JudgeLooker(watch, "run", own(now)).may_claim) break;
    now += Seconds(random, random.Chance(.1) ? 20 : 2);
  }
  const Duration began = now, placed = began + Seconds(random, 1);
  const Duration read = placed + Seconds(random, 1), ended = read + Seconds(random, 1);
  const LeaseGrant grant{1, BeatAt(beats, read)};
  const TimePoint alone = AfterClaim(watch, grant, own(began), own(ended)).alone_from;
  const double since_start = static_cast<double>(alone.since_start.count()) / rate;
  return {placed, Duration(static_cast<int64_t>(since_start)) + 1ns, alone > own(ended)};
}

TEST(LeaseTimes, NoTwoAreAlone) {
  Random random(1);
  int waits = 0, alive = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::vector<SomeBeat> beats = SomeBeats(random);
    const SomeClaim claim = ClaimFrom(beats, random);
    for (const Duration later : {0s, 1s, 3s, 6s}) {
      ASSERT_FALSE(MayFormAt(beats, claim.placed, claim.alone + later)) << "round " << round;
    }
    waits += claim.waits;
    alive += beats.back().began > claim.placed;
  }
  // Some of these holders had just had bad luck for seven seconds, and some had beaten again.
  std::printf("%d holders were alive, %d claimants waited\n", alive, waits);
  EXPECT_GT(alive, 100);
  EXPECT_GT(waits, 10);
}

}  // namespace
}  // namespace keel
