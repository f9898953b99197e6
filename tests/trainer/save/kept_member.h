// KeptMember: a member of a job of three steps that is saved and resumed, as tests run it in their
// own process. Its BatchNorm's averages change while lanes are computed, not when the step is
// applied.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/memory_files.h"
#include "tests/harness/expect_ok.h"
#include "tests/trainer/tasks.h"
#include "trainer/loop/trainer.h"
#include "trainer/numerics/tensor_digest.h"

namespace keel {

inline const std::string kKeptFingerprint =
    "threads=1 lanes=4 lane_batch=4 steps=3 seed=3 samples=50";

inline std::unique_ptr<TrainState> MakeKeptState() {
  static std::mutex mutex;   // building draws from the one generator that all threads share
  const std::lock_guard lock(mutex);
  torch::manual_seed(1);
  Task task = MakeTask("resnet");
  TrainProgram program{.model = task.model, .loss = task.loss, .dataset = std::move(task.dataset),
                       .optimizer = *MakeAdamW(TensorsOf(*task.model).parameters, {})};
  auto state = TrainState::Make({.steps = 3, .seed = 3, .lanes = 4, .lane_batch = 4},
                                std::move(program));
  KEEL_CHECK(state.ok(), state.error().message);
  return std::move(*state);
}

struct KeptMember {
  explicit KeptMember(Files& files, SaveTerms terms = {}) : state(MakeKeptState()) {
    auto opened = Checkpointer::Open(*state, {.root = "/c", .every_steps = terms.every_steps,
                                              .codec = terms.codec,
                                              .fingerprint = kKeptFingerprint},
                                     files, RealClock());
    KEEL_CHECK(opened.ok(), opened.error().message);
    saver = std::move(*opened);
    keeping.reset(new Keeping{*saver, {.root = "/c", .fingerprint = kKeptFingerprint}, files,
                              [this](const std::string&, const Digest&) {
                                resumed_at = state->step();
                              }});
  }
  Result<TrainOutcome> RunAlone() const {
    return Trainer(*state, kKeptFingerprint, {.keeping = keeping.get()}).Run();
  }
  std::string Bits() const {
    return state->trail().Hex() + " " + state->registry().StateDigest().Hex();
  }

  std::unique_ptr<TrainState> state;
  std::unique_ptr<Checkpointer> saver;
  std::unique_ptr<Keeping> keeping;
  uint64_t resumed_at = 0;   // 0: it was not the one to restore
};

// Of a run that nobody disturbs.
inline std::string QuietBits() {
  MemoryFiles files;
  const KeptMember member(files);
  EXPECT_OK(member.RunAlone());
  return member.Bits();
}

}  // namespace keel
