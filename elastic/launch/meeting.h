// Meeting: where this host meets the others: whether it hosts the store, and under which addresses.
// Promises   a host that is to keep the store keeps it when this returns; a name is looked up here
//            for our own part only, and once.
// Does not   reach the store of another host: that may come later (elastic/board/thread.h). Where
//            it never came, WhyUnreachable() says why.
// Threads    one.
// Errors     kExists: the port is taken by another program; kInvalid: the endpoint cannot be used.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "elastic/launch/config.h"
#include "store/store_maker.h"

namespace keel {

struct Meeting {
  std::unique_ptr<StoreServer> server;   // of the board; nothing: another host's
  std::string host;                      // where the board is, as we reach it
  uint16_t port = 0;
  std::string own_address;               // numeric, as the others reach us
  std::string own_name;                  // for people
};

Result<Meeting> OpenMeeting(const LaunchConfig& config, StoreMaker& stores);

// Why the store there cannot be reached, and what to check: another host's is looked at once more,
// for a second or two. `told` is what was last heard of it; "": nothing.
std::string WhyUnreachable(const Meeting& meeting, const std::string& told);

}  // namespace keel
