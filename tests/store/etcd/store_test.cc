// The contract of every Store, over a real etcd.
#include "store/etcd/etcd_store.h"

#include <optional>

#include "tests/harness/expect_ok.h"
#include "tests/store/etcd/cluster_test.h"
#include "tests/store/store_contract.h"

namespace keel {
namespace {

class EtcdBoard : public TestBoard {
 public:
  EtcdBoard() {
    if (WhyNoEtcd().empty()) cluster_.emplace(EtcdCluster::Spec{.members = 1, .is_quick = true});
  }
  std::string WhyAbsent() const override { return WhyNoEtcd(); }
  std::unique_ptr<Store> Client() override {
    // Under ThreadSanitizer, beside other work, the largest value takes longer than usual.
    auto store = EtcdStore::Open(
        {.access = cluster_->access(), .prefix = "keel/test/", .limit = kSafetyLimit});
    EXPECT_OK(store);
    return std::move(*store);
  }

 private:
  std::optional<EtcdCluster> cluster_;
};

INSTANTIATE_TEST_SUITE_P(Etcd, StoreContract, testing::Values(MakeBoard([] {
                           return std::make_unique<EtcdBoard>();
                         })));

}  // namespace
}  // namespace keel
