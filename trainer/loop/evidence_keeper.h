// EvidenceKeeper: saves evidence on a thread beside training, so that nobody waits for a disk or a
// bucket, whose writes may take longer than a worker may take to park.
// Promises   one file at a time, at most one for each step, and a few in all: a program that comes
//            to another result each time fills no disk. The destructor waits for a few seconds for
//            what is being written, and says so if that was not enough.
// Threads    one; the thread that writes is its own.
// Errors     are logged.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "trainer/loop/evidence.h"
#include "trainer/tensors.h"

namespace keel {

class EvidenceKeeper {
 public:
  EvidenceKeeper() = default;
  ~EvidenceKeeper();
  EvidenceKeeper(const EvidenceKeeper&) = delete;
  EvidenceKeeper& operator=(const EvidenceKeeper&) = delete;

  bool Wants(uint64_t step) const;
  // Of a step that it wants. Nothing of the tensors is shared with what trains.
  void Save(const std::string& folder, LaneEvidence evidence, NamedTensors model);

 private:
  std::optional<uint64_t> step_;   // of the last one
  int files_ = 0;
  struct Writing;
  std::shared_ptr<Writing> writing_;   // of the last one
};

}  // namespace keel
