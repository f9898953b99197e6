// FormerBoard: what whoever takes the coordinator's role learns of the board before, which nobody
// writes to any more: its newest epoch, which of that epoch's hosts may still run it, and whether
// that board's coordinator lives on.
// Promises   a host is left out only if it left in good order, or if its machine says that nobody
//            listens at its peer port any more.
// Threads    any. Errors: those of the store. Lifetime: keeps nothing.
#pragma once

#include <optional>
#include <string>

#include "elastic/board/ask.h"
#include "elastic/protocol/records.h"
#include "store/cancel.h"
#include "store/store.h"

namespace keel {

struct FormerBoard {
  std::optional<EpochRecord> epoch;    // with those of its hosts that may run it; nothing: no epoch
  bool coordinator_lives = false;      // it answers at its peer port
};

// `coordinator`: its peer port.
Result<FormerBoard> ReadFormerBoard(Store& store, const PeerQuestion& question,
                                    const std::string& coordinator, const CancelToken& ending);

}  // namespace keel
