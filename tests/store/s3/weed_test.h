// The fixture of tests over a real SeaweedFS: one server for all of them, a bucket for each. In a
// header, since they all skip or none does, so that CTest may run them in one process.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "tests/harness/expect_ok.h"
#include "tests/store/s3/weed.h"

namespace keel {

class Seaweed : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (WhyNoWeed().empty()) server_ = std::make_unique<WeedServer>();
  }
  static void TearDownTestSuite() { server_.reset(); }
  void SetUp() override {
    const std::string why = WhyNoWeed();
    if (!why.empty()) GTEST_SKIP() << "there is no SeaweedFS: " << why;
    // A bucket for each test.
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::string bucket = "b-" + name.substr(0, 50);
    std::transform(bucket.begin(), bucket.end(), bucket.begin(), ::tolower);
    bucket_ = bucket;
    objects_ = server_->Open(bucket_);
  }

  inline static std::unique_ptr<WeedServer> server_;
  std::string bucket_;
  std::unique_ptr<S3Objects> objects_;
  PosixFiles files_;
};

}  // namespace keel
