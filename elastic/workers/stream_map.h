// StreamMap: which of a host's workers an option means, and which of their two output streams: "3"
// (both, of all), "0:1,1:2" (stdout of local rank 0, stderr of local rank 1).
// Threads    a plain value. Errors: kInvalid.
#pragma once

#include <map>
#include <string>

#include "base/result.h"

namespace keel {

struct StreamChoice {
  bool out = false;
  bool err = false;
  bool operator==(const StreamChoice&) const = default;
};

struct StreamMap {
  StreamChoice all;                    // for workers that `some` does not name
  std::map<int, StreamChoice> some;

  StreamChoice Of(int local_rank) const;
  bool operator==(const StreamMap&) const = default;
};

Result<StreamMap> ParseStreamMap(const std::string& text);

}  // namespace keel
