// keel_fuzz: libFuzzer over the targets of fuzz_targets.h; needs clang. tests/fuzz/fuzz_test.py
// builds and runs it.
//   keel_fuzz --target=shard --seeds=DIR [libFuzzer's flags] DIR...
// Writes the target's seeds into the folder DIR first.
#include <algorithm>

#include "base/check.h"
#include "base/file_helpers.h"
#include "base/posix_files.h"
#include "tests/fuzz/fuzz_targets.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t size_max);

namespace keel {
namespace {

const FuzzTarget* chosen = nullptr;

const FuzzTarget* Choose(std::string_view name) {
  std::string names;
  for (const FuzzTarget* target : kFuzzTargets) {
    if (target->name == name) return target;
    names += std::string(" ") + target->name;
  }
  KEEL_CHECK(false, "--target= must be one of:" << names);
  return nullptr;
}

void WriteSeeds(const std::string& dir) {
  PosixFiles files;
  const Status made = MakeDirs(files, dir);
  KEEL_CHECK(made.ok(), made.error().message);
  int number = 0;
  for (const std::string& seed : chosen->seeds()) {
    const std::string name = "seed-" + std::to_string(number++);
    const Status written = WriteDurably(files, JoinPath(dir, name), seed);
    KEEL_CHECK(written.ok(), written.error().message);
  }
}

}  // namespace
}  // namespace keel

// libFuzzer leaves arguments that begin with two dashes to us.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  std::string_view target, seeds;
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (argument.starts_with("--target=")) target = argument.substr(9);
    if (argument.starts_with("--seeds=")) seeds = argument.substr(8);
  }
  keel::chosen = keel::Choose(target);
  if (!seeds.empty()) keel::WriteSeeds(std::string(seeds));
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  keel::chosen->run({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t size_max,
                                          unsigned seed) {
  if (keel::chosen->mutate == nullptr) return LLVMFuzzerMutate(data, size, size_max);
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string changed = keel::chosen->mutate(input, seed, LLVMFuzzerMutate);
  if (changed.empty() || changed.size() > size_max) return size;
  std::copy(changed.begin(), changed.end(), data);
  return changed.size();
}
