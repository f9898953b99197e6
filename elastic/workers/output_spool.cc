// A queue of ranges; neighbours in one file form one range.
#include "elastic/workers/output_spool.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace keel {
namespace {

// Small pieces share a range up to this size, since a range is freed only when all of it was read.
constexpr size_t kJoinedBytes = 64 * 1024;

}  // namespace

void OutputSpool::AddFile(std::shared_ptr<File> file, uint64_t offset, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!ranges_.empty()) {
    Range& last = ranges_.back();
    if (last.file == file && last.offset + last.bytes == offset) {
      last.bytes += bytes;
      return;
    }
  }
  ranges_.push_back({std::move(file), offset, bytes, "", 0});
}

size_t OutputSpool::AddMemory(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  const size_t taken = std::min(bytes.size(), memory_bytes_max_ - memory_bytes_);
  if (taken == 0) return 0;
  memory_bytes_ += taken;
  if (!ranges_.empty() && !ranges_.back().file && ranges_.back().memory.size() < kJoinedBytes) {
    ranges_.back().memory.append(bytes.substr(0, taken));
    ranges_.back().bytes += taken;
    return taken;
  }
  ranges_.push_back({nullptr, 0, taken, std::string(bytes.substr(0, taken)), 0});
  return taken;
}

void OutputSpool::End() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
}

bool OutputSpool::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

// A file is read without the lock: its disk may be slow, and the thread that adds must not wait for
// it.
Result<size_t> OutputSpool::Read(std::span<std::byte> into) {
  for (;;) {
    std::shared_ptr<File> file;
    uint64_t offset = 0;
    {
      const std::lock_guard lock(mutex_);
      if (ranges_.empty()) return size_t{0};
      const Range& first = ranges_.front();
      into = into.first(static_cast<size_t>(std::min<uint64_t>(into.size(), first.bytes)));
      file = first.file;
      offset = first.offset;
      if (!file) {
        std::memcpy(into.data(), first.memory.data() + first.taken, into.size());
        Consume(into.size());
        return into.size();
      }
    }
    const Result<size_t> got = file->ReadAt(offset, into);
    const std::lock_guard lock(mutex_);
    // Somebody emptied the file, or it cannot be read: this part is lost.
    if (!got.ok() || *got == 0) {
      lost_bytes_ += ranges_.front().bytes;
      ranges_.pop_front();
      if (!got.ok()) return got.error();
      continue;
    }
    Consume(*got);
    return *got;
  }
}

uint64_t OutputSpool::TakeLost() {
  const std::lock_guard lock(mutex_);
  return std::exchange(lost_bytes_, 0);
}

void OutputSpool::Consume(size_t bytes) {
  Range& first = ranges_.front();
  first.bytes -= bytes;
  if (first.file) {
    first.offset += bytes;
  } else {
    first.taken += bytes;
    memory_bytes_ -= bytes;
  }
  if (first.bytes == 0) ranges_.pop_front();
}

}  // namespace keel
