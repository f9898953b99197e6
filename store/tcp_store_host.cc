// The server of the board, on a listening socket that is made here, not by c10d.
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/process_setup.h"
#include "store/catch_torch.h"
#include "store/store_hail.h"
#include "store/tcp_store.h"
#include "store/torch_shim.h"

namespace keel {

static_assert(kHailMagic == c10d::detail::validationMagicNumber);
static_assert(kHailValidate == static_cast<uint8_t>(c10d::detail::QueryType::VALIDATE));
static_assert(kHailPing == static_cast<uint8_t>(c10d::detail::QueryType::PING));

struct TcpStoreHost::Server {
  c10::intrusive_ptr<c10d::TCPStore> store;  // c10d's server always comes with a client
  uint16_t port = 0;
};

Result<std::unique_ptr<TcpStoreHost>> TcpStoreHost::Open(const Where& where) {
  KEEL_TRY_ASSIGN(ListenSocket socket, ListenSocket::Listen(where.bind, where.port));
  return Adopt(std::move(socket));
}

Result<std::unique_ptr<TcpStoreHost>> TcpStoreHost::Adopt(ListenSocket socket) {
  IgnoreSigpipe();  // the server writes to clients that may have died a moment ago
  auto server = std::make_unique<Server>();
  server->port = socket.port();
  KEEL_TRY(CatchTorch("hosting the store on port " + std::to_string(socket.port()), [&] {
    c10d::TCPStoreOptions options;
    options.isServer = true;
    options.port = socket.port();
    options.masterListenFd = socket.Release();
    options.waitWorkers = false;
    const std::string& bind = socket.bind();
    const bool everywhere = bind.empty() || bind == "0.0.0.0" || bind == "::";
    server->store = c10::make_intrusive<c10d::TCPStore>(everywhere ? "127.0.0.1" : bind, options);
  }));
  return std::unique_ptr<TcpStoreHost>(new TcpStoreHost(std::move(server)));
}

TcpStoreHost::TcpStoreHost(std::unique_ptr<Server> server) : server_(std::move(server)) {}

TcpStoreHost::~TcpStoreHost() = default;

uint16_t TcpStoreHost::port() const { return server_->port; }

}  // namespace keel
