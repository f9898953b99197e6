// QuietPeer: of a member that nobody supervises: it is told nothing, and wishes nothing.
#pragma once

#include <memory>

#include "trainer/loop/epoch_run.h"

namespace keel {

inline EpochCallbacks QuietPeer() {
  EpochCallbacks peer;
  peer.watch = [](auto) { return std::shared_ptr<void>(); };
  peer.wishes = [] { return EpochCallbacks::Wishes{}; };
  return peer;
}

}  // namespace keel
