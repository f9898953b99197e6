// TcpStoreMaker: makes the stores of store/tcp_store.h.
// Threads    any.
#pragma once

#include "store/store_maker.h"

namespace keel {

class TcpStoreMaker : public StoreMaker {
 public:
  Result<std::unique_ptr<StoreServer>> Adopt(ListenSocket socket) override;
  Result<std::unique_ptr<Store>> Connect(const std::string& host, uint16_t port,
                                         Duration limit, const CancelToken& cancel) override;
};

}  // namespace keel
