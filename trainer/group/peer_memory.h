// PeerMemory: reading a tensor where it lies, in the memory of another process of this host. It is
// one copy, where a connection over loopback makes two and wakes both ends for every piece.
// Promises   another process is only read once a secret was found there that it had told us: so it
//            runs on this host, its number means the same to both, and the kernel lets us.
// Does not   know whether the memory still holds what was meant: who offers some leaves it alone
//            until the reader has said that it is done.
// Threads    any.
// Errors     kPeerLost: the process is gone, or no longer has that memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace keel {

// What a process shows to those that might read it. Travels as its bytes.
struct MemoryCard {
  uint64_t host = 0;     // the same for processes that number each other alike; 0: takes no part
  int64_t pid = 0;
  uint64_t address = 0;  // where the secret lies
  uint64_t secret = 0;
  uint64_t bytes_min = 0;  // what it would not have read for less
};

MemoryCard OwnMemoryCard(uint64_t bytes_min);
// Both see the same, whichever of them asks.
bool ShareHost(const MemoryCard& one, const MemoryCard& other);
bool CanRead(const MemoryCard& card);

Status ReadMemory(int64_t pid, uint64_t address, std::span<std::byte> into);

// Where the kernel restricts reading to a process's ancestors (Yama), lets the others that our
// parent has started read us. Call it once, early.
void LetSiblingsRead();

}  // namespace keel
