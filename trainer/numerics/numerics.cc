// Sets the switches of four libraries, and checks that they took effect.
#include "trainer/numerics/numerics.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include <array>
#include <utility>

#include "base/options_env.h"
#include "base/text.h"
#include "store/catch_torch.h"
#include "store/torch_version.h"
#include "trainer/numerics/kernel_probe.h"
#include "trainer/numerics/mix.h"

namespace keel {
namespace {

constexpr std::array<std::pair<Numerics, std::string_view>, 2> kNames = {
    {{Numerics::kPortable, "portable"}, {Numerics::kNative, "native"}}};

#if defined(__x86_64__)
constexpr const char* kPortableCpu = "AVX2";
constexpr const char* kPortableCpuSetting = "avx2";
#else
constexpr const char* kPortableCpu = "DEFAULT";
constexpr const char* kPortableCpuSetting = "default";
#endif

// Variables that the libraries read once, when they are first used. oneDNN's has two names.
Environment Settings(Numerics numerics) {
  Environment settings = {{"CUBLAS_WORKSPACE_CONFIG", ":4096:8"}, {"MKL_DYNAMIC", "FALSE"}};
  if (numerics == Numerics::kNative) return With(settings, {{"MKL_CBWR", "AUTO,STRICT"}});
  return With(settings, {{"ATEN_CPU_CAPABILITY", kPortableCpuSetting},
                         {"ONEDNN_MAX_CPU_ISA", "AVX2"},
                         {"DNNL_MAX_CPU_ISA", "AVX2"},
                         {"MKL_CBWR", "AVX2,STRICT"}});
}

void SetSwitches(int threads) {
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(true, /*warn_only=*/false);
  // This would fill every fresh tensor with NaN: a cost, without effect on programs that write
  // first.
  context.setDeterministicFillUninitializedMemory(false);
  context.setDeterministicMkldnn(true);
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
  // cuDNN's attention has no deterministic form; the others have.
  context.setSDPUseCuDNN(false);
  at::set_num_threads(threads);
}

// With TF32 a GPU keeps 10 of 23 bits of the factors. PyTorch's own default: off for products of
// matrices, on for convolutions; whoever changes that gets other bits.
std::string Tf32Text() {
  const at::Context& context = at::globalContext();
  const auto text = [](bool is_on) { return is_on ? std::string("on") : std::string("off"); };
  return "matmul " + text(context.allowTF32CuBLAS()) + ", conv " + text(context.allowTF32CuDNN());
}

Status CheckSwitches(const NumericsConfig& config) {
  const std::string cpu = at::get_cpu_capability();
  if (config.numerics == Numerics::kPortable && cpu != kPortableCpu) {
    return Error{Code::kInvalid, "portable numerics need " + std::string(kPortableCpu) +
                                     " kernels, but LibTorch uses " + cpu +
                                     ": either this CPU lacks them, and native numerics are to be "
                                     "taken, or LibTorch has computed already when they were "
                                     "chosen: import evenkeel before PyTorch computes anything "
                                     "(in C++: call PinNumerics() first)"};
  }
  if (at::get_num_threads() != config.threads) {
    return Error{Code::kInvalid, "LibTorch computes with " +
                                     std::to_string(at::get_num_threads()) +
                                     " threads, not the " + std::to_string(config.threads) +
                                     " that were asked for"};
  }
  return Ok();
}

}  // namespace

std::string_view NumericsName(Numerics numerics) {
  return kNames[static_cast<size_t>(numerics)].second;
}

Result<Numerics> ParseNumerics(std::string_view name) {
  for (const auto& [numerics, known] : kNames) {
    if (name == known) return numerics;
  }
  return Error{Code::kInvalid, "numerics " + Shown(name) + " is neither portable nor native"};
}

Status PrepareNumerics(Numerics numerics) { return SetOwnEnvironment(Settings(numerics)); }

Status PinNumerics(const NumericsConfig& config) {
  if (config.threads < 1) {
    return Error{Code::kInvalid, "threads is " + std::to_string(config.threads) +
                                     "; a kernel needs at least 1"};
  }
  KEEL_TRY(CheckTorchVersion());
  KEEL_TRY(PrepareNumerics(config.numerics));
  KEEL_TRY(CatchTorch("pinning numerics", [&] { SetSwitches(config.threads); }));
  return CheckSwitches(config);
}

Result<Fingerprint> HostFingerprint(const FingerprintInputs& inputs) {
  return CatchTorch("taking the fingerprint of this host", [&] {
    Fingerprint fingerprint;
    fingerprint.Add("torch", TORCH_VERSION);
    fingerprint.Add("device", inputs.device_name);
    fingerprint.Add("numerics", NumericsName(inputs.numerics));
    fingerprint.Add("cpu", at::get_cpu_capability());
    fingerprint.Add("threads", std::to_string(at::get_num_threads()));
    if (inputs.device.is_cuda()) fingerprint.Add("tf32", Tf32Text());
    fingerprint.Add("precision", PrecisionName(inputs.precision));
    fingerprint.Add("lanes", std::to_string(inputs.lanes));
    fingerprint.Add("lane_batch", std::to_string(inputs.lane_batch));
    fingerprint.Add("kernels", KernelProbe(inputs.device, inputs.precision).Hex().substr(0, 16));
    return fingerprint;
  });
}

void SeedLane(uint64_t seed, uint64_t step, uint64_t lane) {
  at::manual_seed(LaneSeed(seed, step, lane));
}

void SeedData(uint64_t seed, uint64_t step, uint64_t lane) {
  at::manual_seed(DataSeed(seed, step, lane));
}

}  // namespace keel
