// SealedStores: makes sealed stores of those that another maker makes.
// Promises   as store/store_maker.h, and store/seal/sealed_store.h.
// Does not   seal anything in the stores that it keeps: who connects does.
// Lifetime   keeps the other maker by reference.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "store/host_port.h"
#include "store/seal/store_sealer.h"
#include "store/store_maker.h"

namespace keel {

class SealedStores : public StoreMaker {
 public:
  SealedStores(StoreMaker& stores, Seal seal, std::set<std::string> open_keys)
      : stores_(stores), sealer_(std::move(seal), std::move(open_keys)) {}

  void Prepare() override { stores_.Prepare(); }
  Result<std::unique_ptr<StoreServer>> Adopt(ListenSocket socket) override {
    return stores_.Adopt(std::move(socket));
  }
  Result<std::unique_ptr<Store>> Connect(const std::string& host, uint16_t port, Duration limit,
                                         const CancelToken& cancel) override {
    KEEL_TRY_ASSIGN(auto store, stores_.Connect(host, port, limit, cancel));
    return sealer_.Sealed(std::move(store), AddressText(host, port));
  }
  void WhenBroken(std::function<void(const Error& why)> on_broken) override {
    stores_.WhenBroken(std::move(on_broken));
  }

 private:
  StoreMaker& stores_;
  StoreSealer sealer_;
};

}  // namespace keel
