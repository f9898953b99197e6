// Puts, lists and removes objects of its own, then asks what is set.
#include "elastic/doctor/buckets.h"

#include <algorithm>
#include <future>

#include "base/clock.h"
#include "base/object_files.h"
#include "base/posix_files.h"
#include "base/within.h"
#include "elastic/launch/program_words.h"
#include "store/bucket_files.h"
#include "store/lease/object_probe.h"

namespace keel {
namespace {

constexpr Duration kBucketLimit = std::chrono::seconds(15);

Status Look(const BucketToTry& one, Random& random, BucketFacts& facts) {
  PosixFiles disk;
  BucketFiles files(disk);
  files.SetUnguarded(one.is_unguarded);
  KEEL_TRY_ASSIGN(const BucketPlace place, files.Bucket(one.place));
  KEEL_TRY(ProbeObjects(*place.bucket, PrefixOf(place), random,
                        "; a job saves there all the same if it is told --checkpoint-unguarded"));
  facts.clock_ahead_ns = place.bucket->StoreNanos() - RealClock().WallNanos();
  // A job ends uploads that dead ones have left.
  const auto unfinished = place.bucket->Unfinished(PrefixOf(place));
  if (!unfinished.ok()) return unfinished.error();
  const Result<BucketRules> rules = place.bucket->Rules();
  if (!rules.ok()) return Ok();
  facts.other_region = rules->other_region;
  facts.ends_unfinished = rules->ends_unfinished;
  facts.keeps_versions = rules->keeps_versions;
  return Ok();
}

BucketFacts LookAtBucket(const BucketToTry& one, Random random) {
  const auto looked = Within<BucketFacts>(kBucketLimit, [one, random]() mutable {
    BucketFacts facts{.place = one.place};
    const Status status = Look(one, random, facts);
    if (!status.ok()) facts.trouble = status.error().message;
    return facts;
  });
  if (looked) return *looked;
  return {.place = one.place,
          .trouble = "it does not answer within " + DurationText(kBucketLimit) +
                     "; can this host reach the store?"};
}

}  // namespace

std::vector<BucketToTry> BucketsOf(const LaunchConfig& config) {
  std::vector<BucketToTry> places = {
      {.place = config.doctor ? config.doctor->directory : ""},
      {.place = config.lease_directory},
  };
  const std::vector<std::string>& words = config.program.arguments;
  const bool is_unguarded = IsInWords(words, "checkpoint-unguarded");
  for (const char* name : {"--checkpoint-dir", "--checkpoint-mirror"}) {
    places.push_back({.place = ValueInWords(words, name), .is_unguarded = is_unguarded});
  }
  std::erase_if(places, [](const BucketToTry& one) { return !IsBucketPath(one.place); });
  // Of two that name one place, the one that asks more of it comes first, and stays.
  std::sort(places.begin(), places.end());
  const auto is_same = [](const BucketToTry& a, const BucketToTry& b) {
    return a.place == b.place;
  };
  places.erase(std::unique(places.begin(), places.end(), is_same), places.end());
  return places;
}

std::vector<BucketFacts> LookAtBuckets(const std::vector<BucketToTry>& places, Random random) {
  std::vector<std::future<BucketFacts>> looks;
  for (const BucketToTry& one : places) {
    looks.push_back(std::async(std::launch::async, [one, own = random.Fork(one.place)] {
      return LookAtBucket(one, own);
    }));
  }
  std::vector<BucketFacts> all;
  for (std::future<BucketFacts>& look : looks) all.push_back(look.get());
  return all;
}

}  // namespace keel
