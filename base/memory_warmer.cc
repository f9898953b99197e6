// madvise(MADV_POPULATE_WRITE), in pieces: each holds off whoever changes the process's mappings.
#include "base/memory_warmer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace keel {
namespace {

constexpr size_t kPieceBytes = 256 << 10;

// By its number, as older headers lack its name.
constexpr int kPopulateWrite = 23;

void Populate(const std::vector<std::span<std::byte>>& places, const std::atomic<bool>& stop) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (const std::span<std::byte>& place : places) {
    const auto begin = reinterpret_cast<uintptr_t>(place.data());
    const uintptr_t end = begin + place.size();
    for (uintptr_t at = begin / page * page; at < end && !stop; at += kPieceBytes) {
      const size_t bytes = std::min<size_t>(kPieceBytes, end - at);
      if (madvise(reinterpret_cast<void*>(at), bytes, kPopulateWrite) != 0) return;
    }
  }
}

}  // namespace

MemoryWarmer::MemoryWarmer(std::vector<std::span<std::byte>> places)
    : work_([moved = std::move(places)](const std::atomic<bool>& stop) {
        Populate(moved, stop);
      }) {}

}  // namespace keel
