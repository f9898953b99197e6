// What tests of the rules for forming epochs begin with.
#pragma once

#include <string>

#include "elastic/protocol/records.h"

namespace keel {

// Epoch "e3" of hosts "abc", each named by one letter, has number 3; the first of them formed it.
inline CountedEpoch LetterEpoch(int number, const std::string& hosts) {
  CountedEpoch epoch{number, "e" + std::to_string(number), hosts.substr(0, 1), {}};
  for (const char host : hosts) epoch.hosts.push_back(std::string(1, host));
  return epoch;
}

}  // namespace keel
