// A lease keeps the contract in a directory, on a real disk and on one in memory, and in a bucket.
#include "base/memory_files.h"
#include "base/memory_objects.h"
#include "base/posix_files.h"
#include "store/lease/dir_lease.h"
#include "store/lease/object_lease.h"
#include "tests/store/lease/lease_contract.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

std::unique_ptr<Lease> OpenIn(Files& files, const std::string& dir, const LeaseOwner& owner) {
  Random random(EntropySeed());
  auto lease = DirLease::Open(files, random, dir, owner);
  EXPECT_OK(lease);
  return std::move(*lease);
}

struct PosixPlace : LeasePlace {
  std::unique_ptr<Lease> Open(const LeaseOwner& owner) override {
    return OpenIn(files, dir.path(), owner);
  }
  TempDir dir;
  PosixFiles files;
};

struct MemoryPlace : LeasePlace {
  MemoryPlace() { EXPECT_OK(files.MakeDir("/shared")); }
  std::unique_ptr<Lease> Open(const LeaseOwner& owner) override {
    return OpenIn(files, "/shared", owner);
  }
  MemoryFiles files;
};

struct MemoryBucket : LeasePlace {
  std::unique_ptr<Lease> Open(const LeaseOwner& owner) override {
    Random random(EntropySeed());
    auto lease = ObjectLease::Make(bucket, random, "run/a/", owner);
    EXPECT_OK(lease);
    return std::move(*lease);
  }
  MemoryObjects bucket;
};

template <class Place>
std::unique_ptr<LeasePlace> Make() {
  return std::make_unique<Place>();
}

INSTANTIATE_TEST_SUITE_P(Made, LeaseContract,
                         testing::Values(LeaseMaker{"Posix", Make<PosixPlace>},
                                         LeaseMaker{"Memory", Make<MemoryPlace>},
                                         LeaseMaker{"Bucket", Make<MemoryBucket>}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace keel
