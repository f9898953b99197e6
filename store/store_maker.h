// StoreMaker: hosts stores and connects to them, whatever kind they are of, so that elastic/ need
// not know of c10d.
// Promises   a store that is made here answers as store/store.h says. Where a maker learns only
//            after Serve() that it can make none, it says so through WhenBroken().
// Threads    any.
// Errors     of Serve(): kExists (the port is taken); of Connect(): kTimeout names the last reason.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

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

  // What is urgent has been done: the maker may now do what slows the whole process down.
  virtual void Prepare() {}
  // On all addresses of this host. Port 0: any free one.
  Result<std::unique_ptr<StoreServer>> Serve(uint16_t port) {
    KEEL_TRY_ASSIGN(ListenSocket socket, ListenSocket::Listen("", port));
    return Adopt(std::move(socket));
  }
  virtual Result<std::unique_ptr<StoreServer>> Adopt(ListenSocket socket) = 0;
  // Within `limit`; a single operation of the store ends within that time, too.
  virtual Result<std::unique_ptr<Store>> Connect(const std::string& host, uint16_t port,
                                                 Duration limit) = 0;

  // `on_broken` is called once, from any thread, when somebody needs a store that cannot be made,
  // now or later: it must neither block nor call the maker. An empty one takes it back: once this
  // has returned, the former one is not called any more.
  virtual void WhenBroken(std::function<void(const Error& why)> on_broken) { (void)on_broken; }
};

}  // namespace keel
