// PlotSvg: runs as one SVG drawing, in light and dark as the reader prefers.
// Promises   pure; texts of others are escaped; a few hundred KB for each run at most.
// Does not   load anything, or need a script; what the pointer rests on has its words as a title.
// Threads    pure functions.
#pragma once

#include <string>
#include <vector>

#include "tools/keel/plot_run.h"

namespace keel {

struct PlotLook {
  PlotAxis axis = PlotAxis::kStep;
  bool has_log_scale = false;   // of losses
};

// `marks`: of each run, as many as runs.
std::string PlotSvg(const std::vector<PlotRun>& runs,
                    const std::vector<std::vector<PlacedMark>>& marks, const PlotLook& look);

}  // namespace keel
