// QuietPeer: of a member that nobody supervises: it is told nothing, and wishes nothing.
#pragma once

#include <memory>

#include "trainer/loop/epoch_run.h"

namespace keel {

inline EpochPeer QuietPeer() {
  EpochPeer peer;
  peer.watch = [](auto) { return std::shared_ptr<void>(); };
  peer.wishes = [] { return EpochPeer::Wishes{}; };
  return peer;
}

}  // namespace keel
