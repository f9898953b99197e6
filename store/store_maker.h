// StoreMaker: hosts stores and connects to them, whatever their kind, so that elastic/ need not
// know of c10d.
// Promises   a store made here behaves as store/store.h says. A maker that learns only after
//            Serve() that it can make none says so through WhenBroken().
// Threads    any.
// Errors     of Serve(): kExists (the port is taken); of Connect(): kTimeout names the last reason.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "store/cancel.h"
#include "store/listen_socket.h"
#include "store/store.h"

namespace keel {

// Keeps a store for as long as this object lives.
class StoreServer {
 public:
  virtual ~StoreServer() = default;
  virtual uint16_t port() const = 0;
};

class StoreMaker {
 public:
  virtual ~StoreMaker() = default;

  // Urgent work is done: the maker may now do what slows the whole process down.
  virtual void Prepare() {}
  // Where the ports come from that nobody else chooses. Before the first Serve(), if at all.
  void PickFrom(const PortRange& ports) { ports_ = ports; }
  const PortRange& ports() const { return ports_; }
  // `bind`: a numeric address; empty: all of this host's. Port 0: any free one of ports().
  Result<std::unique_ptr<StoreServer>> Serve(const std::string& bind, uint16_t port) {
    KEEL_TRY_ASSIGN(ListenSocket socket, port == 0 ? ListenSocket::ListenWithin(bind, ports_)
                                                   : ListenSocket::Listen(bind, port));
    return Adopt(std::move(socket));
  }
  virtual Result<std::unique_ptr<StoreServer>> Adopt(ListenSocket socket) = 0;
  // Connects within `limit`; each operation of the store ends within that time, too. While nobody
  // listens there, `cancel` ends the attempt at once.
  virtual Result<std::unique_ptr<Store>> Connect(const std::string& host, uint16_t port,
                                                 Duration limit, const CancelToken& cancel) = 0;
  Result<std::unique_ptr<Store>> Connect(const std::string& host, uint16_t port, Duration limit) {
    return Connect(host, port, limit, CancelToken::Never());
  }

  // `on_broken` is called once, from any thread, when somebody needs a store that cannot be made,
  // now or later. It must neither block nor call the maker. An empty function takes it back: once
  // this has returned, the former one is not called any more.
  virtual void WhenBroken(std::function<void(const Error& why)> on_broken) { (void)on_broken; }

 private:
  PortRange ports_;
};

}  // namespace keel
