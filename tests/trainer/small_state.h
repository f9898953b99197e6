// StateOf(): the state of one of the small models, with AdamW, before its first step.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "tests/trainer/tasks.h"
#include "trainer/optimizer.h"
#include "trainer/state/train_state.h"

namespace keel {

// The seed decides what is in it.
inline std::unique_ptr<TrainState> StateOf(const std::string& model, uint64_t weights) {
  torch::manual_seed(weights);
  Task task = MakeTask(model);
  auto optimizer = MakeAdamW(TensorsOf(*task.model).parameters, {});
  KEEL_CHECK(optimizer.ok(), optimizer.error().message);
  TrainProgram program{.model = task.model, .loss = task.loss, .dataset = std::move(task.dataset),
                       .optimizer = std::move(*optimizer)};
  auto state = TrainState::Make({.steps = 9, .seed = 3, .lanes = 2, .lane_batch = 4},
                                std::move(program));
  KEEL_CHECK(state.ok(), state.error().message);
  const Status own = (*state)->TakeOwn();
  KEEL_CHECK(own.ok(), own.error().message);
  return std::move(*state);
}

}  // namespace keel
