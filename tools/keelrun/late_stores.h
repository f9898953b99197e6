// LateStores: stores of the store module, which loads while the launcher is at work already.
// Promises   a server's port is known, and connections to it wait, from Serve() on; it answers when
//            the module is there. What needs the module sooner waits for it.
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
#include <vector>

#include "base/log.h"
#include "store/store_maker.h"

namespace keel {

class LateStores : public StoreMaker {
 public:
  static Result<std::unique_ptr<LateStores>> Open(LogFormat format, LogLevel level);
  ~LateStores() override;

  Result<std::unique_ptr<StoreServer>> Adopt(ListenSocket socket) override;
  Result<std::unique_ptr<Store>> Connect(const std::string& host, uint16_t port,
                                         Duration limit) override;

 private:
  struct Early;
  class Server;
  LateStores(std::string path, LogFormat format, LogLevel level);
  void Load(const std::string& path, LogFormat format, LogLevel level);
  void AdoptEarly();

  std::mutex mutex_;
  std::condition_variable loaded_;
  std::optional<Result<StoreMaker*>> module_;   // nothing: it is still loading
  std::vector<std::shared_ptr<Early>> early_;   // servers that were asked for before
  std::thread loader_;
};

}  // namespace keel
