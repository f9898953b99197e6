// dlopen(), with errors in words.
#include "store/find_module.h"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include <array>

namespace keel {

Result<std::string> OwnPrefix() {
  std::array<char, PATH_MAX> own{};
  const ssize_t bytes = readlink("/proc/self/exe", own.data(), own.size() - 1);
  if (bytes <= 0) return Error{Code::kNotFound, "/proc/self/exe cannot be read: mount /proc"};
  const std::string program(own.data(), static_cast<size_t>(bytes));
  return program.substr(0, program.rfind("/bin/"));
}

Result<std::string> FindModule(const std::string& prefix, const std::string& file) {
  std::string tried;
  for (const std::string& folder :
       {std::string("/lib/"), std::string("/lib/evenkeel/"), std::string(KEEL_MODULE_DIR)}) {
    const std::string path = prefix + folder + file;
    if (access(path.c_str(), R_OK) == 0) return path;
    tried += (tried.empty() ? "" : ", ") + path;
  }
  return Error{Code::kNotFound, "there is no " + tried};
}

Result<void*> LoadModule(const std::string& path, const char* entry) {
  void* const module = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (module == nullptr) return Error{Code::kForeign, dlerror()};
  void* const found = dlsym(module, entry);
  if (found != nullptr) return found;
  return Error{Code::kForeign, path + " has no " + entry};
}

}  // namespace keel
