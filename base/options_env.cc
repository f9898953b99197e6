// setenv() or unsetenv() for each of them.
#include "base/options_env.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace keel {

Status SetOwnEnvironment(const Environment& changes) {
  for (const auto& [name, value] : changes) {
    if (setenv(name.c_str(), value.c_str(), /*overwrite=*/1) != 0) {
      return Error{Code::kInvalid, "setting the environment variable '" + name +
                                       "': " + std::strerror(errno)};
    }
  }
  return Ok();
}

void ForgetOwnEnvironment(const std::vector<std::string>& names) {
  for (const std::string& name : names) unsetenv(name.c_str());
}

}  // namespace keel
