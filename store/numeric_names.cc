// A getnameinfo() that never asks the name service; see the header. Built as a shared object and
// preloaded, the same file serves programs that are not ours.
#include "store/numeric_names.h"

#include <dlfcn.h>
#include <netdb.h>
#include <sys/socket.h>

extern "C" __attribute__((visibility("default"))) int getnameinfo(
    const sockaddr* address, socklen_t address_bytes, char* host, socklen_t host_bytes,
    char* service, socklen_t service_bytes, int flags) {
  using Original = int (*)(const sockaddr*, socklen_t, char*, socklen_t, char*, socklen_t, int);
  static const auto original = reinterpret_cast<Original>(dlsym(RTLD_NEXT, "getnameinfo"));
  if (original == nullptr) return EAI_SYSTEM;
  // NI_NAMEREQD would turn a number into an error; without a name service no name can be required.
  const int numeric = (flags & ~NI_NAMEREQD) | NI_NUMERICHOST | NI_NUMERICSERV;
  return original(address, address_bytes, host, host_bytes, service, service_bytes, numeric);
}

// Tells a getnameinfo() of this file from one of anybody else, where this file is in the program or
// preloaded, and whoever asks has it, too.
extern "C" __attribute__((visibility("default"))) void keel_numeric_names() {}

namespace keel {

bool NumericNamesActive() {
  // A library that has this file, too, as the store's module and that of the Python package, is not
  // the one that answers.
  return dlsym(RTLD_DEFAULT, "getnameinfo") == reinterpret_cast<void*>(&::getnameinfo) ||
         dlsym(RTLD_DEFAULT, "keel_numeric_names") != nullptr;
}

}  // namespace keel
