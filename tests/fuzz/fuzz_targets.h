// The parsers that are fuzzed, one row each: libFuzzer drives them through fuzz_main.cc (clang),
// and fuzz_replay_test.cc runs their seeds and what fuzzing once found (any compiler).
// Promises   Run() takes any bytes at all and returns; what must not be (a text that reads back as
//            something else, a digest that fits other content) is a KEEL_CHECK. It seals what the
//            bytes say with digests that fit, so that fuzzing goes on behind them.
// Threads    one.
// To add one: NAME_target.cc with its row, its line in kFuzzTargets, and its line in sources.txt.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace keel {

// libFuzzer's own mutator: changes `size` bytes in place, up to `size_max`; returns the new size.
using Mutate = size_t (*)(uint8_t* bytes, size_t size, size_t size_max);

struct FuzzTarget {
  const char* name;
  void (*run)(std::span<const std::byte> input);
  std::vector<std::string> (*seeds)();
  // Null: plain mutation of all bytes. Otherwise takes the input apart, lets `mutate` change one
  // part, and puts it together again so that it still holds together.
  std::string (*mutate)(std::string_view input, uint32_t seed, Mutate mutate) = nullptr;
};

extern const FuzzTarget kDataTarget;
extern const FuzzTarget kDescriptionTarget;
extern const FuzzTarget kFrameTarget;
extern const FuzzTarget kJsonTarget;
extern const FuzzTarget kManifestTarget;
extern const FuzzTarget kS3Target;
extern const FuzzTarget kSafetensorsTarget;
extern const FuzzTarget kShardTarget;

inline const std::array kFuzzTargets = {&kDataTarget, &kDescriptionTarget, &kFrameTarget,
                                        &kJsonTarget, &kManifestTarget, &kS3Target,
                                        &kSafetensorsTarget, &kShardTarget};

// The bytes as text; they must outlive it.
inline std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace keel
