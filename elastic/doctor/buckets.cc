// Puts, lists and removes objects of its own, then asks what is set.
#include "elastic/doctor/buckets.h"

#include <algorithm>
#include <future>

#include "base/clock.h"
#include "base/object_files.h"
#include "base/within.h"
#include "elastic/launch/program_words.h"
#include "store/bucket_files.h"
#include "store/lease/object_probe.h"

namespace keel {
namespace {

constexpr Duration kBucketLimit = std::chrono::seconds(15);

Status Look(const std::string& path, Random& random, BucketFacts& facts) {
  KEEL_TRY_ASSIGN(const BucketPlace place, OwnBuckets().Bucket(path));
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

BucketFacts LookAtBucket(const std::string& place, Random random) {
  const auto looked = Within<BucketFacts>(kBucketLimit, [place, random]() mutable {
    BucketFacts facts{.place = place};
    const Status status = Look(place, random, facts);
    if (!status.ok()) facts.trouble = status.error().message;
    return facts;
  });
  if (looked) return *looked;
  return {.place = place,
          .trouble = "it does not answer within " + DurationText(kBucketLimit) +
                     "; can this host reach the store?"};
}

}  // namespace

std::vector<std::string> BucketsOf(const LaunchConfig& config) {
  std::vector<std::string> places = {config.doctor ? config.doctor->directory : "",
                                     config.lease_directory};
  for (const char* name : {"--checkpoint-dir", "--checkpoint-mirror"}) {
    places.push_back(ValueInWords(config.program.arguments, name));
  }
  std::erase_if(places, [](const std::string& place) { return !IsBucketPath(place); });
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

std::vector<BucketFacts> LookAtBuckets(const std::vector<std::string>& places, Random random) {
  std::vector<std::future<BucketFacts>> looks;
  for (const std::string& place : places) {
    looks.push_back(std::async(std::launch::async, [place, own = random.Fork(place)] {
      return LookAtBucket(place, own);
    }));
  }
  std::vector<BucketFacts> all;
  for (std::future<BucketFacts>& look : looks) all.push_back(look.get());
  return all;
}

}  // namespace keel
