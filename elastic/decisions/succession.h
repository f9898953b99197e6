// Succession: who takes the coordinator's role, as the coordinator plans it (PROTOCOL.md section
// 12).
// Promises   the same state, view and time give the same next state. A board is left once, and for
//            one place. While the coordinator's own host leaves and others stay, some heir is asked
//            to open the next board; one that stays silent is passed over.
// Does not   write or open anything: elastic/board/coordinator.h and board.h do. Decide what
//            members do that have lost the coordinator (elastic/decisions/follow.h).
// Threads    pure functions over plain values.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "elastic/decisions/membership.h"
#include "elastic/protocol/limits.h"
#include "elastic/protocol/records.h"

namespace keel {

struct Succession {
  SuccessionRecord record;                   // as it shall stand on the board
  std::optional<TimePoint> leaving_since;    // of the coordinator's own host
  TimePoint chosen_at;                       // when the present heir was asked
  std::set<std::string> passed_over;         // heirs that were asked and stayed silent
};

struct SuccessionView {
  const JobView& job;
  int hosts_min = 1;
  BoardPlace here;                           // this board
  std::optional<BoardPlace> offer;           // the last that some host made
  std::optional<BoardPlace> held = {};       // where the job goes on, as its lease says
};

// Whether that host could take the role, if it stays. `numerics`: the job's, which are those of the
// coordinator's host; empty: not known yet.
bool CanCoordinate(const HostView& host, const std::string& numerics, const JobView& job);

Succession NextSuccession(Succession before, const SuccessionView& view, TimePoint now);

// When to ask again although nothing has changed.
TimePoint NextSuccessionLook(const Succession& succession);

// The role is on its way to another host, so no epoch is formed here for a moment.
bool IsHandingOver(const Succession& succession, TimePoint now);

}  // namespace keel
