// Whether the system shall use large pages at a place, as it tells itself.
// Promises   what /proc/self/smaps says of the mapping that holds the place; false if none does.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

namespace keel {

inline bool HasLargePages() { return access("/sys/kernel/mm/transparent_hugepage", F_OK) == 0; }

inline bool WantsLargePagesAt(const void* place) {
  const auto wanted = reinterpret_cast<uintptr_t>(place);
  std::ifstream maps("/proc/self/smaps");
  bool is_within = false;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    uintptr_t begin = 0;
    uintptr_t end = 0;
    char dash = 0;
    if (words >> std::hex >> begin >> dash >> end && dash == '-') {
      is_within = begin <= wanted && wanted < end;
    } else if (is_within && line.rfind("VmFlags:", 0) == 0) {
      return (line + " ").find(" hg ") != std::string::npos;
    }
  }
  return false;
}

}  // namespace keel
