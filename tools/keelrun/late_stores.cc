// One thread loads the module, then has it take over the sockets that wait.
#include "tools/keelrun/late_stores.h"

#include <dlfcn.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/posix_files.h"
#include "elastic/launch/find_torch.h"
#include "elastic/process/quiet_thread.h"
#include "store/find_module.h"
#include "store/numeric_names.h"
#include "store/store_module.h"

namespace keel {
namespace {

// Between two looks for somebody who wants a store that there is not.
constexpr Duration kGlance = std::chrono::milliseconds(50);

// In a build folder, and where it was installed from one, the module knows its LibTorch. A package
// has one for each minor version, since LibTorch's classes change from one to the next.
Result<StoreModule> FindStoreModule(const Environment& environment, const std::string& python) {
  KEEL_TRY_ASSIGN(const std::string prefix, OwnPrefix());
  Result<std::string> only = FindModule(prefix, kStoreModuleFile);
  if (only.ok()) return StoreModule{*std::move(only), "", std::nullopt};
  PosixFiles files;
  const std::vector<std::string> engines = EnginesOf(files, prefix);
  if (engines.empty()) {
    return Error{Code::kNotFound, "the store that workers meet at is missing: " +
                                      only.error().message +
                                      "; build and install Evenkeel with LibTorch"};
  }
  const TorchChoice choice =
      ChooseTorch(PlacesOfTorch(files, prefix, environment, python), engines);
  if (choice.verdict != TorchChoice::Verdict::kFound) {
    return StoreModule{"", "", Error{Code::kNotFound, choice.detail}};
  }
  LogDebug("torch-found", {{"where", choice.detail}});
  return StoreModule{prefix + "/torch" + choice.version + "/" + kStoreModuleFile, choice.folder,
                     std::nullopt};
}

// What is loaded under its name is what the module's need for that name means.
Status LoadTorch(const std::string& folder) {
  const std::string library = folder + "/lib/libtorch_cpu.so";
  if (dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr) return Ok();
  return Error{Code::kForeign, std::string("PyTorch cannot be loaded: ") + dlerror()};
}

Result<StoreMaker*> LoadStoreModule(const StoreModule& module, LogFormat format, LogLevel level) {
  if (module.trouble) return *module.trouble;
  if (!module.torch.empty()) KEEL_TRY(LoadTorch(module.torch));
  const std::string& path = module.path;
  const Result<void*> entry = LoadModule(path, kStoreModuleEntry);
  if (!entry.ok()) {
    const std::string& why = entry.error().message;
    Error error = entry.error().Doing("the store module cannot be loaded");
    // A package does not know where LibTorch is.
    const bool is_absent = why.find("cannot open shared object file") != std::string::npos;
    if (why.find("failed to map segment") != std::string::npos) {
      error.message += "; is there too little memory for it (`ulimit -v`)?";
    } else if (is_absent && (why.starts_with("libtorch") || why.starts_with("libc10"))) {
      error.message += "; say where LibTorch is: ln -s /path/to/torch " +
                       path.substr(0, path.rfind('/')) + "/torch";
    } else if (why.find("undefined symbol") != std::string::npos) {
      error.message += "; it was built for another LibTorch than that which it finds";
    }
    return error;
  }
  const char* problem = nullptr;
  StoreMaker* const maker =
      reinterpret_cast<StoreModuleEntry>(*entry)(kStoreModuleVersion, format, level, &problem);
  if (maker != nullptr) return maker;
  if (problem != nullptr) return Error{Code::kForeign, path + " cannot be used: " + problem};
  return Error{Code::kForeign,
               path + " belongs to another version of Evenkeel; reinstall both"};
}

}  // namespace

// Either a socket that waits, or the server that took it over.
struct LateStores::Early {
  explicit Early(ListenSocket taken) : socket(std::move(taken)), port(socket->port()) {}

  std::mutex mutex;
  std::optional<ListenSocket> socket;
  std::unique_ptr<StoreServer> server;
  const uint16_t port;
};

class LateStores::Server : public StoreServer {
 public:
  explicit Server(std::shared_ptr<Early> early) : early_(std::move(early)) {}
  ~Server() override {
    const std::lock_guard lock(early_->mutex);
    early_->socket.reset();
    early_->server.reset();
  }
  uint16_t port() const override { return early_->port; }

 private:
  const std::shared_ptr<Early> early_;
};

Result<std::unique_ptr<LateStores>> LateStores::Open(LogFormat format, LogLevel level,
                                                     const Environment& environment,
                                                     const std::string& python) {
  KEEL_TRY_ASSIGN(StoreModule module, FindStoreModule(environment, python));
  return std::unique_ptr<LateStores>(new LateStores(std::move(module), format, level));
}

// A module that is being loaded cannot be left alone.
LateStores::~LateStores() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
  if (loader_.joinable()) loader_.join();
}

void LateStores::Prepare() {
  const std::lock_guard lock(mutex_);
  if (!loader_.joinable()) loader_ = StartQuietThread("load-store", [this] { Load(); });
}

void LateStores::Load() {
  if (!NumericNamesActive()) {
    LogWarn("names-asked",
            {{"reason", "a getnameinfo() that is not Evenkeel's is in use, so a slow name service "
                        "can stall the store"}});
  }
  const Result<StoreMaker*> module = LoadStoreModule(found_, format_, level_);
  if (!module.ok()) LogError("no-store", {{"reason", module.error().message}});
  {
    const std::lock_guard lock(mutex_);
    module_ = module;
  }
  loaded_.notify_all();
  if (module.ok()) {
    AdoptEarly(**module);
  } else {
    AwaitVisitor(module.error());
  }
}

void LateStores::AdoptEarly(StoreMaker& module) {
  std::vector<std::shared_ptr<Early>> early;
  {
    const std::lock_guard lock(mutex_);
    early.swap(early_);
  }
  for (const auto& one : early) {
    const std::lock_guard lock(one->mutex);
    if (!one->socket) continue;   // not wanted any more
    ListenSocket socket = *std::exchange(one->socket, std::nullopt);
    auto server = module.Adopt(std::move(socket));
    if (server.ok()) {
      one->server = *std::move(server);
    } else {
      LogError("no-store", {{"port", one->port}, {"reason", server.error().message}});
      TellBroken(server.error().Doing("opening the store at port " + std::to_string(one->port)));
    }
  }
}

// A program that needs no store runs to its end without one. One that connects would wait for an
// answer for ever, so the sockets stay open to show who comes.
void LateStores::AwaitVisitor(const Error& why) {
  while (!AnyVisitor()) {
    std::unique_lock lock(mutex_);
    if (stopped_.wait_for(lock, kGlance, [this] { return stopping_ || broken_; })) return;
  }
  TellBroken(why);
}

bool LateStores::AnyVisitor() {
  std::vector<std::shared_ptr<Early>> early;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(early_, [](const auto& one) { return one.use_count() == 1; });   // server gone
    early = early_;
  }
  return std::any_of(early.begin(), early.end(), [](const auto& one) {
    const std::lock_guard lock(one->mutex);
    if (!one->socket) return false;
    pollfd waiting{one->socket->number(), POLLIN, 0};
    return poll(&waiting, 1, 0) > 0;
  });
}

void LateStores::TellBroken(const Error& why) {
  const std::lock_guard lock(mutex_);
  if (broken_) return;
  broken_ = why;
  if (on_broken_) on_broken_(why);
}

void LateStores::WhenBroken(std::function<void(const Error& why)> on_broken) {
  const std::lock_guard lock(mutex_);
  on_broken_ = std::move(on_broken);
  if (broken_ && on_broken_) on_broken_(*broken_);
}

std::unique_ptr<StoreServer> LateStores::KeepEarly(ListenSocket socket) {
  early_.push_back(std::make_shared<Early>(std::move(socket)));
  return std::make_unique<Server>(early_.back());
}

Result<std::unique_ptr<StoreServer>> LateStores::Adopt(ListenSocket socket) {
  {
    const std::lock_guard lock(mutex_);
    if (!module_ || !module_->ok()) return KeepEarly(std::move(socket));
  }
  return (**module_)->Adopt(std::move(socket));
}

Result<std::unique_ptr<Store>> LateStores::Connect(const std::string& host, uint16_t port,
                                                   Duration limit, const CancelToken& cancel) {
  Prepare();
  {
    std::unique_lock lock(mutex_);
    if (!loaded_.wait_for(lock, limit, [this] { return module_.has_value(); })) {
      return Error{Code::kTimeout, "the store module is still being loaded"};
    }
  }
  if (!module_->ok()) {
    TellBroken(module_->error());
    return module_->error();
  }
  return (**module_)->Connect(host, port, limit, cancel);
}

}  // namespace keel
