// TensorReader: reads any bytes of any tensor of a checkpoint, verified, with one frame in memory.
// Promises   gives verified bytes or an error that names file, frame and tensor.
// Does not   read in parallel: ckpt/restore.h does. Threads: one at a time.
#pragma once

#include <optional>
#include <span>

#include "ckpt/frame_scan.h"
#include "ckpt/tensor_source.h"

namespace keel {

class TensorReader {
 public:
  explicit TensorReader(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), frames_(checkpoint) {}

  // Bytes from `offset` of the tensor on. A range beyond its end is kInvalid.
  Status Read(size_t tensor, uint64_t offset, std::span<std::byte> into);

 private:
  Status Hold(uint64_t frame, const std::string& tensor);

  const Checkpoint& checkpoint_;
  FrameReader frames_;
  std::optional<uint64_t> held_;  // the frame that content_ is of
  std::span<const std::byte> content_;
};

}  // namespace keel
