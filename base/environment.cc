// Reads the process's environment block once, whole.
#include "base/environment.h"

#include <unistd.h>

#include <string_view>

namespace keel {

Environment OwnEnvironment() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    // The first of two entries with one name is the one that getenv() finds.
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

std::string VariableOf(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

Environment With(Environment base, const Environment& changes) {
  for (const auto& [name, value] : changes) base[name] = value;
  return base;
}

}  // namespace keel
