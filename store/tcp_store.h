// TcpStore: the board on c10d::TCPStore, hosted by one process and reached over TCP by all.
// Promises   the contract of store/store.h over the network; an operation on a store whose host is
//            gone, frozen or not a store at all ends within the limit; names are looked up once,
//            in Connect().
// Does not   reconnect: after kPeerLost or kTimeout make another TcpStore (a late answer could be
//            taken for the next one's). A Wait() that merely ran into its limit does not count.
// Threads    as store/store.h says.
// Errors     as store/store.h says; TcpStoreHost also gives kExists (the port is taken).
// Traps      of c10d that it hides: Set() is not acknowledged, receiving has no time limit, Get()
//            waits, and the compare-and-set of a missing key answers as if the key held what was
//            expected.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "store/listen_socket.h"
#include "store/store.h"

namespace keel {

struct TcpStoreAddress {
  std::string host = "127.0.0.1";  // a name or a number
  uint16_t port = 0;
};

// A server that keeps the board for as long as this object lives.
class TcpStoreHost {
 public:
  struct Where {
    std::string bind = "";  // numeric address to listen on; empty: all of this host's
    uint16_t port = 0;      // 0: any free one
  };
  static Result<std::unique_ptr<TcpStoreHost>> Open(const Where& where);
  // Also serves clients that have connected since the socket began to listen.
  static Result<std::unique_ptr<TcpStoreHost>> Adopt(ListenSocket socket);
  ~TcpStoreHost();

  uint16_t port() const;

 private:
  struct Server;
  explicit TcpStoreHost(std::unique_ptr<Server> server);

  const std::unique_ptr<Server> server_;
};

class TcpStore : public Store {
 public:
  struct Limits {
    Duration connect = std::chrono::seconds(60);    // until the store answers
    Duration operation = std::chrono::seconds(30);  // for each operation; Wait() has its own
  };
  static Result<std::unique_ptr<TcpStore>> Connect(
      const TcpStoreAddress& address, const Limits& limits,
      const CancelToken& cancel = CancelToken::Never());
  ~TcpStore() override;

  Status Set(const std::string& key, const std::string& value) override;
  Result<std::optional<std::string>> Get(const std::string& key) override;
  Result<bool> Has(const std::string& key) override;
  Result<std::vector<std::optional<std::string>>> GetMany(
      const std::vector<std::string>& keys) override;
  Result<int64_t> Add(const std::string& key, int64_t delta) override;
  Result<Outcome> CompareSet(const std::string& key, const std::optional<std::string>& expected,
                             const std::string& desired) override;
  Result<bool> Delete(const std::string& key) override;
  Status Wait(const std::vector<std::string>& keys, Duration limit,
              const CancelToken& cancel = CancelToken::Never()) override;
  Result<std::unique_ptr<Store>> Clone() override;

  // Its host is a number, not a name.
  const TcpStoreAddress& address() const { return address_; }

 private:
  struct Connection;
  friend struct TorchStoreAccess;

  TcpStore(TcpStoreAddress address, Limits limits, std::unique_ptr<Connection> connection);
  Status Usable() const;
  template <class F>
  auto Operate(const std::string& doing, F&& operation);
  Status AppendMany(const std::vector<std::string>& keys,
                    std::vector<std::optional<std::string>>& values);
  bool WaitInC10d(const std::vector<std::string>& keys, Duration limit);
  bool AskUntil(const std::vector<std::string>& keys, Duration limit, const CancelToken& cancel);
  std::vector<std::string> Missing(const std::vector<std::string>& keys);

  const TcpStoreAddress address_;
  const Limits limits_;
  const std::unique_ptr<Connection> connection_;
};

}  // namespace keel
