// LeavingObjects: a bucket in memory that fails every read from some moment on, or those of some
// objects.
// Promises   counts the reads, Look() and Get(), that come after that moment.
// Threads    any.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "base/memory_objects.h"

namespace keel {

class LeavingObjects : public MemoryObjects {
 public:
  // After so many reads more. `part`: only those of keys that contain it, and they alone count.
  void LeaveAfter(int reads, Code code, const std::string& part = "") {
    const std::lock_guard lock(mutex_);
    left_ = reads;
    part_ = part;
    code_ = code;
    failed_reads_ = 0;
  }
  int failed_reads() const {
    const std::lock_guard lock(mutex_);
    return failed_reads_;
  }

  Result<ObjectInfo> Look(const std::string& key) override {
    KEEL_TRY(Count(key));
    return MemoryObjects::Look(key);
  }
  Result<size_t> Get(const std::string& key, uint64_t offset, std::span<std::byte> into) override {
    KEEL_TRY(Count(key));
    return MemoryObjects::Get(key, offset, into);
  }

 private:
  Status Count(const std::string& key) {
    const std::lock_guard lock(mutex_);
    if (!left_ || key.find(part_) == std::string::npos) return Ok();
    if (--*left_ >= 0) return Ok();
    ++failed_reads_;
    return Error{code_, name() + "/" + key + ": the store is away"};
  }

  mutable std::mutex mutex_;
  std::optional<int> left_;   // guarded by mutex_, as is all here
  std::string part_;
  Code code_ = Code::kIo;
  int failed_reads_ = 0;
};

}  // namespace keel
