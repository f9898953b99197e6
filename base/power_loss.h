// PowerLoss: the disks that may be found after the power went while a MemoryDisk was in use.
// Promises   the list that MemoryFiles::PossibleDisks() describes, the same for the same seed.
// Threads    whoever holds the disk's mutex.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/memory_disk.h"

namespace keel {

std::vector<std::unique_ptr<MemoryDisk>> DisksAfterPowerLoss(const MemoryDisk& disk, int mixes,
                                                             uint64_t seed);

}  // namespace keel
