// The fixture of tests over a real cluster: three members with etcd's own timing, unless a test
// asks for others.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "store/etcd/etcd_store.h"
#include "tests/harness/expect_ok.h"
#include "tests/store/etcd/cluster.h"

namespace keel {

inline constexpr const char* kTestPrefix = "keel/test/";
// Against hanging.
inline constexpr Duration kSafetyLimit = std::chrono::seconds(60);

class EtcdClusterTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = WhyNoEtcd();
    if (!why.empty()) GTEST_SKIP() << "there is no cluster: " << why;
  }

  void Start(const EtcdCluster::Spec& spec = {}) { cluster_.emplace(spec); }

  // A store of the whole cluster, which has `limit` for each operation.
  std::unique_ptr<EtcdStore> Open(Duration limit = kSafetyLimit) {
    EtcdStoreOptions options = Options();
    options.limit = limit;
    return Open(std::move(options));
  }
  static std::unique_ptr<EtcdStore> Open(EtcdStoreOptions options) {
    auto store = EtcdStore::Open(std::move(options));
    EXPECT_OK(store);
    return store.ok() ? std::move(*store) : nullptr;
  }
  EtcdStoreOptions Options() const {
    return {.access = cluster_->access(), .prefix = kTestPrefix, .limit = kSafetyLimit};
  }

  std::optional<EtcdCluster> cluster_;
};

}  // namespace keel
