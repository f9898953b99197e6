// What a lease in a bucket has beyond the contract: how long its holder has been quiet, and names.
#include "store/lease/object_lease.h"

#include <gtest/gtest.h>

#include "base/memory_objects.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

std::unique_ptr<ObjectLease> OpenIn(Objects& bucket, const LeaseOwner& owner) {
  Random random(EntropySeed());
  auto lease = ObjectLease::Make(bucket, random, "run/a/", owner);
  EXPECT_OK(lease);
  return std::move(*lease);
}

TEST(ObjectLease, TellsHowLongItsHolderHasBeenQuiet) {
  MemoryObjects bucket;
  const auto holder = OpenIn(bucket, {"job", "a"}), looker = OpenIn(bucket, {"job", "b"});
  ASSERT_OK(looker->Look());
  EXPECT_EQ(looker->quiet(), Duration::max());
  ASSERT_OK(holder->Claim(1, "text"));
  bucket.Pass(std::chrono::seconds(9));
  ASSERT_OK(looker->Look());
  EXPECT_GE(looker->quiet(), std::chrono::seconds(9)) << "a claim counts as a beat";
  ASSERT_OK(holder->Beat());
  bucket.Pass(std::chrono::seconds(2));
  ASSERT_OK(looker->Look());
  EXPECT_GE(looker->quiet(), std::chrono::seconds(2));
  EXPECT_LT(looker->quiet(), std::chrono::seconds(3));
}

TEST(ObjectLease, NamesEachClaim) {
  MemoryObjects bucket;
  const auto a = OpenIn(bucket, {"job", "a"}), b = OpenIn(bucket, {"job", "b"});
  ASSERT_OK(a->Claim(1, "text"));
  ASSERT_OK(b->Claim(2, "text"));
  ASSERT_OK_AND_ASSIGN(const std::string first, b->ClaimName(1));
  ASSERT_OK_AND_ASSIGN(const std::string second, a->ClaimName(2));
  EXPECT_EQ(first, a->OwnClaimName());
  EXPECT_EQ(second, b->OwnClaimName());
  EXPECT_NE(first, second);
  EXPECT_EQ(a->ClaimName(3).error().code, Code::kNotFound);
}

// What a holder asks the store while nothing happens is billed.
TEST(ObjectLease, ABeatAsksTwice) {
  MemoryObjects bucket;
  const auto lease = OpenIn(bucket, {"job", "a"});
  ASSERT_OK(lease->Claim(1, "text"));
  const size_t before = bucket.requests().size();
  ASSERT_OK(lease->Beat());
  EXPECT_EQ(bucket.requests().size() - before, 2u);
}

TEST(ObjectLease, ADamagedClaimKeepsNobodyFromTheNextTerm) {
  MemoryObjects bucket;
  const auto lease = OpenIn(bucket, {"job", "a"});
  ASSERT_OK(bucket.Replace("run/a/job.lease/term-4", "garbage"));
  ASSERT_OK_AND_ASSIGN(const LeaseSight sight, lease->Look());
  EXPECT_EQ(sight.term, 4);
  EXPECT_NE(sight.damage, "");
  EXPECT_OK(lease->Claim(5, "text"));
  EXPECT_OK(lease->Beat());
}

// A put that had no effect is no claim of somebody else.
class ReadOnlyObjects : public MemoryObjects {
 public:
  Status PutIfAbsent(const std::string& key, std::string_view) override {
    return Error{Code::kInvalid, key + " may not be written"};
  }
};

TEST(ObjectLease, AClaimThatCannotBePutSaysWhy) {
  ReadOnlyObjects bucket;
  const auto lease = OpenIn(bucket, {"job", "a"});
  EXPECT_EQ(lease->Claim(1, "text").error().code, Code::kInvalid);
}

}  // namespace
}  // namespace keel
