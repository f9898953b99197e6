// The names of error codes, as logs and JSON show them.
#include "base/result.h"

namespace keel {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kInvalid: return "invalid";
    case Code::kNotFound: return "not-found";
    case Code::kExists: return "exists";
    case Code::kTimeout: return "timeout";
    case Code::kCancelled: return "cancelled";
    case Code::kPeerLost: return "peer-lost";
    case Code::kStaleEpoch: return "stale-epoch";
    case Code::kCorrupt: return "corrupt";
    case Code::kNoSpace: return "no-space";
    case Code::kIo: return "io";
    case Code::kNoDevice: return "no-device";
    case Code::kForeign: return "foreign";
  }
  return "unknown";
}

}  // namespace keel
