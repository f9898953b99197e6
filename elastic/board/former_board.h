// FormerBoard: what whoever takes the coordinator's role learns of the boards before, which nobody
// writes to any more: the newest epoch, which of its hosts may still run it, and whether the last
// board's coordinator lives on.
// Promises   a host is left out only if it left in good order, or if its machine says that nobody
//            listens at its peer port any more. Where the last board has formed no epoch, or was
//            never opened, what those before it have formed counts.
// Threads    any. Errors: those of the stores. Lifetime: keeps nothing.
#pragma once

#include <functional>
#include <memory>
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

// Whether what failed so may be tried again. Else a board cannot be understood, and stays so.
bool IsPassing(Code code);

// A connection to the board of that term.
using OpenBoard = std::function<Result<std::unique_ptr<Store>>(int64_t term)>;

// `term`: of the last board; `coordinator`: its peer port.
Result<FormerBoard> ReadFormerBoard(const OpenBoard& open, int64_t term,
                                    const PeerQuestion& question, const std::string& coordinator,
                                    const CancelToken& ending);

}  // namespace keel
