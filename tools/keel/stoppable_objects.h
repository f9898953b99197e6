// StoppableObjects: a bucket that a signal ends what is uploaded to.
// Promises   from the first upload on, signals are noted (tools/keel/stop_signals.h). One that
//            comes ends the upload with kCancelled, also where it waits for the store, and nothing
//            is put or uploaded after it: so its owner unwinds, and the upload is discarded. What
//            lists, looks, reads and removes goes on.
// Does not   end a put that is under way: it leaves nothing that is unfinished.
// Threads    as base/objects.h says. Errors: those of the bucket below, and kCancelled.
// Lifetime   keeps the bucket below by reference.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/objects.h"

namespace keel {

class StoppableObjects : public Objects {
 public:
  explicit StoppableObjects(Objects& below) : below_(below) {}

  const std::string& name() const override { return below_.name(); }
  Result<ObjectListing> List(const std::string& prefix, Depth depth) override {
    return below_.List(prefix, depth);
  }
  Result<ObjectInfo> Look(const std::string& key) override { return below_.Look(key); }
  Result<size_t> Get(const std::string& key, uint64_t offset,
                     std::span<std::byte> into) override {
    return below_.Get(key, offset, into);
  }
  Result<std::unique_ptr<ObjectUpload>> Upload(const std::string& key,
                                               uint64_t bytes_max) override;
  Status PutIfAbsent(const std::string& key, std::string_view bytes) override;
  bool is_guarded() const override { return below_.is_guarded(); }
  Status Replace(const std::string& key, std::string_view bytes) override;
  Status Remove(const std::vector<std::string>& keys) override { return below_.Remove(keys); }
  int64_t StoreNanos() override { return below_.StoreNanos(); }
  Result<std::vector<UnfinishedObject>> Unfinished(const std::string& prefix) override {
    return below_.Unfinished(prefix);
  }
  Result<int64_t> LastWritten(const UnfinishedObject& unfinished) override {
    return below_.LastWritten(unfinished);
  }
  Status Discard(const UnfinishedObject& unfinished) override {
    return below_.Discard(unfinished);
  }
  Result<BucketRules> Rules() override { return below_.Rules(); }

 private:
  Objects& below_;
};

}  // namespace keel
