// SmallRun: the options of a training that takes milliseconds.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/train_run.h"

namespace keel {

// `dir`: where it saves and resumes; empty: nowhere.
inline TrainRunOptions OptionsOf(uint64_t steps, const std::string& dir = "") {
  TrainRunOptions options;
  options.config.steps = steps;
  options.config.lane_batch = 4;
  options.keep.checkpoint.root = options.keep.resume.root = dir;
  return options;
}

}  // namespace keel
