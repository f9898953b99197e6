// Meeting: where this host meets the others: whether it hosts the store, and under which addresses.
// Promises   a host that is to keep the store keeps it when this returns; names are looked up here
//            once, and only for our own part.
// Does not   reach the store of another host: that may come later (elastic/board/thread.h). If it
//            never comes, WhyUnreachable() says why.
// Threads    one.
// Errors     kExists: the port is taken by another program; kInvalid: the endpoint cannot be
//            used, or our own address that was given cannot be looked up.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "elastic/launch/config.h"
#include "store/store_maker.h"

namespace keel {

struct Meeting {
  std::unique_ptr<StoreServer> server;   // of the first board; null: it is another host's
  std::string host;                      // where we reach that board
  uint16_t port = 0;
  std::string store_bind;                // as `bind`, but of that server
  bool is_name_known = false;            // the endpoint's host could be looked up here
  uint16_t peer_port = 0;                // where others may look for us; 0: any
  std::string bind;                      // numeric address to listen on; empty: all
  std::string own_address;               // numeric address where others reach us
  std::string own_name;                  // for people
  std::string own_machine;               // the id of its kernel's boot; empty: it has none
};

Result<Meeting> OpenMeeting(const LaunchConfig& config, StoreMaker& stores);

// Why the store there cannot be reached, and what to check. Another host's store is tried once
// more, for less than a second. `told` is the last that was heard of it; "": nothing.
std::string WhyUnreachable(const Meeting& meeting, bool coordinates, const std::string& told);

}  // namespace keel
