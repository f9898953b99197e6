// With LibTorch: c10d's TCPStore.
#include "store/tcp_store_maker.h"
#include "store/torch_log.h"
#include "tools/keelrun/stores.h"

namespace keel {

Result<std::unique_ptr<StoreMaker>> MakeStores() {
  RouteTorchLog();
  return std::unique_ptr<StoreMaker>(new TcpStoreMaker());
}

}  // namespace keel
