// Passes calls on to TcpStoreHost and TcpStore.
#include "store/tcp_store_maker.h"

#include "store/tcp_store.h"

namespace keel {
namespace {

class TcpServer : public StoreServer {
 public:
  explicit TcpServer(std::unique_ptr<TcpStoreHost> host) : host_(std::move(host)) {}
  uint16_t port() const override { return host_->port(); }

 private:
  const std::unique_ptr<TcpStoreHost> host_;
};

}  // namespace

Result<std::unique_ptr<StoreServer>> TcpStoreMaker::Adopt(ListenSocket socket) {
  KEEL_TRY_ASSIGN(std::unique_ptr<TcpStoreHost> host, TcpStoreHost::Adopt(std::move(socket)));
  return std::unique_ptr<StoreServer>(new TcpServer(std::move(host)));
}

Result<std::unique_ptr<Store>> TcpStoreMaker::Connect(const std::string& host, uint16_t port,
                                                      Duration limit, const CancelToken& cancel) {
  KEEL_TRY_ASSIGN(std::unique_ptr<TcpStore> store,
                  TcpStore::Connect({host, port}, {limit, limit}, cancel));
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace keel
