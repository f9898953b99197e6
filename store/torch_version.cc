// Compares the version in LibTorch's headers with that which its library tells.
#include "store/torch_version.h"

#include <dlfcn.h>
#include <torch/version.h>

#include <cstdint>

namespace keel {
namespace {

// In a file of C's interface that needs all of Inductor's headers.
constexpr const char* kTellsVersion = "aoti_torch_abi_version";

constexpr bool kCompiledTells = TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 9;

std::string Text(const TorchVersion& version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
         std::to_string(version.patch);
}

// One byte each, from the highest down.
TorchVersion FromNumber(uint64_t number) {
  const auto byte = [number](int index) { return static_cast<int>(number >> (8 * index) & 0xff); };
  return {byte(7), byte(6), byte(5)};
}

}  // namespace

Status CheckTorchVersion(const TorchVersion& compiled, bool tells,
                         const std::optional<TorchVersion>& loaded, const std::string& library) {
  const bool fits = loaded ? loaded->major == compiled.major && loaded->minor == compiled.minor :
                             !tells;
  if (fits) return Ok();
  const std::string minor = std::to_string(compiled.major) + "." + std::to_string(compiled.minor);
  return Error{Code::kInvalid,
               "this was built for LibTorch " + Text(compiled) + ", but " + library + " is " +
                   (loaded ? Text(*loaded) : std::string("an older one")) +
                   ", whose classes differ. Give it a LibTorch " + minor +
                   " (installed: the link lib/evenkeel/torch), or build Evenkeel for this one: "
                   "tools/setup.sh with KEEL_TORCH or KEEL_TORCH_VERSION"};
}

Status CheckTorchVersion() {
  const TorchVersion compiled{TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR, TORCH_VERSION_PATCH};
  void* const found = dlsym(RTLD_DEFAULT, kTellsVersion);
  if (found == nullptr) {
    return CheckTorchVersion(compiled, kCompiledTells, std::nullopt, "that which is loaded");
  }
  Dl_info where{};
  const bool is_named = dladdr(found, &where) != 0 && where.dli_fname != nullptr;
  return CheckTorchVersion(compiled, kCompiledTells,
                           FromNumber(reinterpret_cast<uint64_t (*)()>(found)()),
                           is_named ? where.dli_fname : "that which is loaded");
}

}  // namespace keel
