// OutputSpool: what a worker has written, in order, between the thread that takes it and the one
// that shows it. Most of it is in the worker's log file; memory holds what that file did not take.
// Promises   bytes come out once, in the order in which they went in; memory never holds more than
//            allowed.
// Does not   write files (elastic/workers/output_pump.h); keep what neither took.
// Threads    one that adds, one that reads.
// Errors     of Read(): those of the file, whose part is then left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/result.h"

namespace keel {

class OutputSpool {
 public:
  explicit OutputSpool(size_t memory_bytes_max) : memory_bytes_max_(memory_bytes_max) {}

  void AddFile(std::shared_ptr<File> file, uint64_t offset, uint64_t bytes);
  // Returns how many of the bytes it has taken.
  size_t AddMemory(std::string_view bytes);
  // Nothing more will come.
  void End();
  bool ended() const;

  // Returns 0 if there is nothing more, for now or for ever.
  // An error: a part cannot be read, and is left out; there may be more behind it.
  Result<size_t> Read(std::span<std::byte> into);
  // How many bytes were left out since this was last asked.
  uint64_t TakeLost();

 private:
  struct Range {
    std::shared_ptr<File> file;   // null: in memory
    uint64_t offset = 0;          // in the file
    uint64_t bytes = 0;
    std::string memory;
    size_t taken = 0;             // of the memory
  };
  void Consume(size_t bytes);

  const size_t memory_bytes_max_;
  mutable std::mutex mutex_;
  std::deque<Range> ranges_;      // guarded by mutex_, as the rest
  size_t memory_bytes_ = 0;
  uint64_t lost_bytes_ = 0;
  bool ended_ = false;
};

}  // namespace keel
