// LateStores: stores of the store module, which loads when the workers are started, not before.
// While it does, the dynamic linker's lock keeps this process from starting threads and children,
// for half a second.
// Promises   a server's port is known, and connections to it wait, from Serve() on; it answers when
//            the module is there. Loading begins with Prepare(), or with Connect(), which waits.
// Does not   fail when the module turns out not to load after it was found: the servers close, what
//            connects is refused, and the log says why.
// Threads    any.
// Errors     of Open(): kNotFound: there is no module. Of Connect(): kTimeout, or why it is not
//            loaded.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "store/store_maker.h"

namespace keel {

class LateStores : public StoreMaker {
 public:
  static Result<std::unique_ptr<LateStores>> Open(LogFormat format, LogLevel level);
  ~LateStores() override;

  void Prepare() override;
  Result<std::unique_ptr<StoreServer>> Adopt(ListenSocket socket) override;
  Result<std::unique_ptr<Store>> Connect(const std::string& host, uint16_t port,
                                         Duration limit) override;

 private:
  struct Early;
  class Server;
  LateStores(std::string path, LogFormat format, LogLevel level)
      : path_(std::move(path)), format_(format), level_(level) {}
  void Load();
  void AdoptEarly();

  const std::string path_;
  const LogFormat format_;
  const LogLevel level_;
  std::mutex mutex_;
  std::condition_variable loaded_;
  std::optional<Result<StoreMaker*>> module_;   // nothing: it is still loading
  std::vector<std::shared_ptr<Early>> early_;   // servers that were asked for before
  std::thread loader_;
};

}  // namespace keel
