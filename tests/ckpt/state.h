// A state to save and restore in tests: tensors of every width, made from a seed.
#pragma once

#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "ckpt/restore.h"
#include "ckpt/save.h"

namespace keel {

// Normally distributed, as freshly initialised weights are.
inline float Gaussian(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.Double()));
  return static_cast<float>(0.02 * radius * std::cos(6.283185307179586 * random.Double()));
}

struct TestState {
  std::vector<TensorSpec> specs;
  std::vector<std::vector<std::byte>> bytes;

  void Add(const std::string& name, Dtype dtype, std::vector<int64_t> shape, Random& random) {
    specs.push_back({name, dtype, std::move(shape)});
    const uint64_t size = *ContentBytes(specs.back());
    bytes.emplace_back(size);
    if (dtype == Dtype::kF32) {
      for (size_t i = 0; i + 4 <= size; i += 4) {
        const float number = Gaussian(random);
        std::memcpy(bytes.back().data() + i, &number, 4);
      }
    } else {
      random.Bytes(bytes.back());
    }
    if (dtype == Dtype::kBool) {
      for (std::byte& byte : bytes.back()) byte &= std::byte{1};
    }
  }

  // About `numbers` numbers over tensors of all kinds.
  static TestState Make(uint64_t seed, int64_t numbers) {
    Random random(seed);
    TestState state;
    state.Add("model.weight", Dtype::kF32, {numbers / 2 / 8, 8}, random);
    state.Add("step", Dtype::kI64, {}, random);
    state.Add("model.half", Dtype::kBf16, {numbers / 4 + 3}, random);
    state.Add("model.empty", Dtype::kF32, {0, 4}, random);
    state.Add("model.bias", Dtype::kF32, {7}, random);
    state.Add("double", Dtype::kF64, {numbers / 16 + 1}, random);
    state.Add("mask", Dtype::kBool, {13}, random);
    state.Add("optimizer.m", Dtype::kF32, {numbers / 4 + 1}, random);
    return state;
  }

  std::vector<std::span<const std::byte>> Spans() const {
    return {bytes.begin(), bytes.end()};
  }
  std::vector<RestoreTarget> Targets() {
    std::vector<RestoreTarget> targets;
    for (size_t i = 0; i < specs.size(); ++i) targets.push_back({specs[i], bytes[i]});
    return targets;
  }
  // The same tensors, holding 0xEE everywhere.
  TestState Blank() const {
    TestState blank = *this;
    for (auto& tensor : blank.bytes) std::fill(tensor.begin(), tensor.end(), std::byte{0xEE});
    return blank;
  }
};

inline SavePlan PlanOf(const TestState& state, const std::string& root, uint64_t step,
                       uint64_t attempt_seed, uint32_t frame_bytes = kFrameBytes) {
  Random random(attempt_seed);
  SavePlan plan{.root = root, .attempt = NewAttempt(random), .description = {}};
  plan.description.step = step;
  plan.description.metadata["seed"] = uint64_t{18446744073709551615ull};
  plan.description.metadata["cursor"] = int64_t{12345};
  plan.description.user["note"] = "a \"quoted\" line";
  plan.description.layout = *Layout::Make(state.specs, frame_bytes);
  return plan;
}

}  // namespace keel
