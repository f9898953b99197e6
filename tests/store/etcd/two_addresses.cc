// Stands before libc's getaddrinfo(), and asks that for the two numbers.
#include "tests/store/etcd/two_addresses.h"

#include <dlfcn.h>
#include <netdb.h>

#include <cstring>

extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  static const auto real =
      reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  const bool is_number = hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0;
  if (is_number || name == nullptr || std::strcmp(name, keel::kTwoAddresses) != 0) {
    return real(name, service, hints, found);
  }
  if (const int failure = real("127.0.0.2", service, hints, found); failure != 0) return failure;
  addrinfo* last = *found;
  while (last->ai_next != nullptr) last = last->ai_next;
  return real("127.0.0.1", service, hints, &last->ai_next);
}
