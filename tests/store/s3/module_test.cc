// The module as a program loads it.
#include "store/bucket_module.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/posix_files.h"
#include "store/bucket_files.h"
#include "tests/harness/expect_ok.h"
#include "tests/store/s3/stub.h"

namespace keel {
namespace {

using testing::HasSubstr;

class BucketModule : public testing::Test {
 protected:
  void SetUp() override {
    void* const module = dlopen(KEEL_S3_MODULE, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(module, nullptr) << dlerror();
    entry_ = reinterpret_cast<BucketModuleEntry>(dlsym(module, kBucketModuleEntry));
    ASSERT_NE(entry_, nullptr) << dlerror();
  }
  BucketOpener* Enter() { return entry_(kBucketModuleVersion, LogFormat::kText, LogLevel::kInfo); }

  BucketModuleEntry entry_ = nullptr;
};

void TakeForOurStore(const S3Stub& stub) {
  for (const auto& [name, value] : stub.environment()) setenv(name.c_str(), value.c_str(), 1);
  for (const char* name : {"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"}) {
    setenv(name, "/nonexistent/aws", 1);
  }
}

TEST_F(BucketModule, OpensABucketByTheEnvironment) {
  S3Stub stub;
  stub.SetObject("run/a", "one");
  TakeForOurStore(stub);
  BucketOpener* const opener = Enter();
  ASSERT_NE(opener, nullptr);
  auto objects = opener->Open("s3://bucket", /*is_unguarded=*/false);
  ASSERT_OK(objects);
  EXPECT_EQ((*objects)->name(), "s3://bucket");
  const auto listing = (*objects)->List("run/", Objects::Depth::kAll);
  ASSERT_OK(listing);
  EXPECT_EQ(listing->objects[0].key, "run/a");
  EXPECT_EQ((*objects)->Look("run/b").error().code, Code::kNotFound);
}

// As one job of a process may be told, and the next one not.
TEST_F(BucketModule, ItsFilesGoUnguardedForAsLongAsTheyAreTold) {
  S3Stub stub;
  stub.Behave({.knows_conditions = false});
  TakeForOurStore(stub);
  PosixFiles disk;
  BucketFiles files(disk);
  for (const bool is_unguarded : {false, true, false}) {
    files.SetUnguarded(is_unguarded);
    ASSERT_OK_AND_ASSIGN(const BucketPlace place, files.Bucket("s3://bucket/a"));
    EXPECT_EQ(place.bucket->is_guarded(), !is_unguarded);
    stub.SetObject("a", "of another");
    EXPECT_EQ(place.bucket->PutIfAbsent("a", "ours").ok(), !is_unguarded);
    EXPECT_EQ(stub.objects()["a"], is_unguarded ? "of another" : "ours");
  }
}

TEST_F(BucketModule, RefusesWhatIsNoBucket) {
  for (const char* url : {"bucket", "az://bucket", "s3://", "gs://bucket/prefix", "s3://bucket/prefix"}) {
    const auto objects = Enter()->Open(url, /*is_unguarded=*/false);
    ASSERT_FALSE(objects.ok()) << url;
    EXPECT_EQ(objects.error().code, Code::kInvalid);
    EXPECT_THAT(objects.error().message, HasSubstr(url));
  }
}

TEST_F(BucketModule, RefusesAnotherVersion) {
  EXPECT_EQ(entry_(kBucketModuleVersion + 1, LogFormat::kText, LogLevel::kInfo), nullptr);
}

}  // namespace
}  // namespace keel
