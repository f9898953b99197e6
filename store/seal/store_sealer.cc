// One past for each name.
#include "store/seal/store_sealer.h"

#include <utility>

namespace keel {

std::unique_ptr<Store> StoreSealer::Sealed(std::unique_ptr<Store> store, const std::string& name) {
  std::shared_ptr<SealedPast> past;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<SealedPast>& known = pasts_[name];
    if (known == nullptr) known = std::make_shared<SealedPast>(seal_);
    past = known;
  }
  return std::make_unique<SealedStore>(std::move(store), std::move(past),
                                       SealedStore::Config{name, open_keys_});
}

}  // namespace keel
