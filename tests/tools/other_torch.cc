// Preloaded, this makes LibTorch tell another version than its own, as if another one were there.
#include <cstdint>

extern "C" __attribute__((visibility("default"))) uint64_t aoti_torch_abi_version() {
  return uint64_t{2} << 56 | uint64_t{99} << 48 | uint64_t{7} << 40;
}
