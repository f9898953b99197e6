// PeerMemory: reads a tensor where it lies, in the memory of another process of this host. That is
// one copy, where a connection over loopback makes two and wakes both ends for every piece.
// Promises   another process is read only once a secret that it told us was found there: so it
//            runs on this host, its process id means the same to both, and the kernel lets us
//            read.
// Does not   know whether the memory still holds what was meant: a worker that offers memory
//            leaves it alone until the reader has said that it is done.
// Threads    any.
// Errors     kPeerLost: the process is gone, or no longer has that memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace keel {

// What a process shows to those that might read it. It is sent as its bytes.
struct MemoryCard {
  // The same for all processes that see each other's process ids; 0: takes no part.
  uint64_t host = 0;
  int64_t pid = 0;
  uint64_t address = 0;  // where the secret lies
  uint64_t secret = 0;
  uint64_t bytes_min = 0;  // it does not want to be read for less than this
};

MemoryCard OwnMemoryCard(uint64_t bytes_min);
// Symmetric: both sides get the same answer.
bool ShareHost(const MemoryCard& one, const MemoryCard& other);
bool CanRead(const MemoryCard& card);

Status ReadMemory(int64_t pid, uint64_t address, std::span<std::byte> into);

// Where the kernel lets only ancestors read a process (Yama), allows our parent's other children to
// read us. Call it once, early.
void LetSiblingsRead();

}  // namespace keel
