// LateStores: stores of the store module, which loads when the workers are started, not before.
// While it does, the dynamic linker's lock keeps this process from starting threads and children,
// for half a second.
// Promises   a server's port is known, and connections to it wait, from Serve() on; it answers when
//            the module is there. Loading begins with Prepare(), or with Connect(), which waits.
//            Where the module turns out not to load, the log says why, and WhenBroken() tells it as
//            soon as somebody wants one of its stores: a worker that connects, or Connect().
// Does not   disturb workers that need no store where the module does not load.
// Threads    any.
// Errors     of Open(): kNotFound: there is no module. Of Connect(): kTimeout, or why it is not
//            loaded.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/log.h"
#include "store/store_maker.h"

namespace keel {

struct StoreModule {
  std::string path;
  std::string torch;             // the folder of its PyTorch; empty: it finds that by itself
  std::optional<Error> trouble;  // there is no PyTorch for it
};

class LateStores : public StoreMaker {
 public:
  // `python`: what starts the workers, whose PyTorch serves the store as well.
  static Result<std::unique_ptr<LateStores>> Open(LogFormat format, LogLevel level,
                                                  const Environment& environment,
                                                  const std::string& python);
  ~LateStores() override;

  void Prepare() override;
  Result<std::unique_ptr<StoreServer>> Adopt(ListenSocket socket) override;
  Result<std::unique_ptr<Store>> Connect(const std::string& host, uint16_t port,
                                         Duration limit, const CancelToken& cancel) override;
  void WhenBroken(std::function<void(const Error& why)> on_broken) override;

 private:
  struct Early;
  class Server;
  LateStores(StoreModule found, LogFormat format, LogLevel level)
      : found_(std::move(found)), format_(format), level_(level) {}
  void Load();
  void AdoptEarly(StoreMaker& module);
  void AwaitVisitor(const Error& why);
  bool AnyVisitor();
  std::unique_ptr<StoreServer> KeepEarly(ListenSocket socket);
  void TellBroken(const Error& why);

  const StoreModule found_;
  const LogFormat format_;
  const LogLevel level_;
  std::mutex mutex_;
  std::condition_variable loaded_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::optional<Result<StoreMaker*>> module_;   // nothing: it is still loading
  std::vector<std::shared_ptr<Early>> early_;   // servers whose sockets no store has taken over
  std::optional<Error> broken_;                 // somebody needed a store, and there is none
  std::function<void(const Error& why)> on_broken_;
  std::thread loader_;
};

}  // namespace keel
