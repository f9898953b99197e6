// madvise(MADV_POPULATE_WRITE), in pieces: each holds off whoever changes the process's mappings.
#include "base/memory_warmer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <system_error>
#include <utility>

#include "base/thread_priority.h"

namespace keel {
namespace {

constexpr size_t kPieceBytes = 256 << 10;

// By its number, as older headers lack its name.
constexpr int kPopulateWrite = 23;

}  // namespace

MemoryWarmer::MemoryWarmer(std::vector<std::span<std::byte>> places) {
  try {
    thread_ = std::thread([this, moved = std::move(places)] { Run(moved); });
  } catch (const std::system_error&) {
    // No thread to be had: pages come as they are touched.
  }
}

MemoryWarmer::~MemoryWarmer() {
  Stop();
  Wait();
}

void MemoryWarmer::Wait() {
  if (thread_.joinable()) thread_.join();
}

void MemoryWarmer::Run(const std::vector<std::span<std::byte>>& places) const {
  LetOthersFirst();
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (const std::span<std::byte>& place : places) {
    const auto begin = reinterpret_cast<uintptr_t>(place.data());
    const uintptr_t end = begin + place.size();
    for (uintptr_t at = begin / page * page; at < end && !stop_; at += kPieceBytes) {
      const size_t bytes = std::min<size_t>(kPieceBytes, end - at);
      if (madvise(reinterpret_cast<void*>(at), bytes, kPopulateWrite) != 0) return;
    }
  }
}

}  // namespace keel
