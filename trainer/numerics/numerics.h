// Numerics: makes kernels give the same bits, and says what these depend on.
// kPortable pins one instruction set (AVX2) in ATen, oneDNN and MKL, so that a mixed fleet of hosts
// agrees; kNative lets each library use what the host has (MKL at one fixed choice per host).
// Promises   after PinNumerics(): deterministic algorithms on, auto-tuning off, thread count and
//            cuBLAS workspace pinned. It fails if the settings did not take effect (a library had
//            read them already, or the CPU lacks AVX2). HostFingerprint() also runs a few small
//            kernels and takes the digest of their results, so that it tells apart hosts whose
//            bits differ for a reason that nobody has listed.
// Does not   stop a program from changing these settings later.
// Threads    PinNumerics() before the first thread starts and before the first use of LibTorch, so
//            early in main(); it changes the environment of this process.
// Errors     kInvalid; kForeign.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trainer/numerics/fingerprint.h"
#include "trainer/precision.h"
#include "trainer/train_config.h"

namespace keel {

std::string_view NumericsName(Numerics numerics);  // "portable", "native"
Result<Numerics> ParseNumerics(std::string_view name);

// The first half of PinNumerics(), for a program that uses LibTorch before it knows its config:
// from then on kernels are those of `numerics`.
Status PrepareNumerics(Numerics numerics);
Status PinNumerics(const NumericsConfig& config);

struct FingerprintInputs {
  Numerics numerics = Numerics::kPortable;
  c10::Device device = c10::kCPU;
  std::string device_name = "cpu";
  Precision precision = Precision::kFp32;
  uint64_t lanes = 0;
  uint64_t lane_batch = 0;
};
// torch=2.11.0 device=cpu numerics=portable cpu=AVX2 threads=1 precision=fp32
// lanes=8 lane_batch=16 kernels=0123456789abcdef
Result<Fingerprint> HostFingerprint(const FingerprintInputs& inputs);

// Seeds the default generators (CPU, and CUDA if it is in use) for one lane of one step, once its
// samples are there: dropout then follows that seed.
void SeedLane(uint64_t seed, uint64_t step, uint64_t lane);
// The same before its samples are loaded: random augmentation then follows that seed.
void SeedData(uint64_t seed, uint64_t step, uint64_t lane);

}  // namespace keel
