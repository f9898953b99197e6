// The module as a program loads it.
#include "store/bucket_module.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

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

TEST_F(BucketModule, OpensABucketByTheEnvironment) {
  S3Stub stub;
  stub.SetObject("run/a", "one");
  for (const auto& [name, value] : stub.environment()) setenv(name.c_str(), value.c_str(), 1);
  for (const char* name : {"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"}) {
    setenv(name, "/nonexistent/aws", 1);
  }
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
