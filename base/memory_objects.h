// MemoryObjects: a bucket in memory.
// Promises   behaves as base/objects.h says, and counts the requests, each page of a List() as one.
// Does not   keep anything, or take time; there is no limit to what it holds.
// Threads    any. Lifetime: uploads may not outlive it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/objects.h"

namespace keel {

class MemoryObjects : public Objects {
 public:
  explicit MemoryObjects(std::string name = "s3://bucket") : name_(std::move(name)) {}

  const std::string& name() const override { return name_; }
  Result<ObjectListing> List(const std::string& prefix, Depth depth) override;
  Result<ObjectInfo> Look(const std::string& key) override;
  Result<size_t> Get(const std::string& key, uint64_t offset, std::span<std::byte> into) override;
  Result<std::unique_ptr<ObjectUpload>> Upload(const std::string& key,
                                               uint64_t bytes_max) override;
  Status PutIfAbsent(const std::string& key, std::string_view bytes) override;
  Status Replace(const std::string& key, std::string_view bytes) override;
  Status Remove(const std::vector<std::string>& keys) override;
  Result<std::vector<UnfinishedObject>> Unfinished(const std::string& prefix) override;
  Result<int64_t> LastWritten(const UnfinishedObject& unfinished) override;
  Status Discard(const UnfinishedObject& unfinished) override;
  int64_t StoreNanos() override;
  Result<BucketRules> Rules() override { return BucketRules{}; }

  // Sets its clock forward, which otherwise rises by 1 ns with each change.
  void Pass(Duration time);

  // Of all calls so far, in their order: "list run/", "look run/a", "get run/a 0 100" ...
  std::vector<std::string> requests() const;

 private:
  class Writer;
  struct Object {
    std::string bytes;
    int64_t changed_at_ns = 0;
  };

  struct Begun {
    UnfinishedObject upload;
    int64_t written_at_ns = 0;
  };

  void Note(std::string request);
  Error Missing(const std::string& key) const;
  int64_t Tick() { return ++now_; }

  const std::string name_;
  mutable std::mutex mutex_;
  std::map<std::string, Object> objects_;
  std::map<std::string, Begun> unfinished_;   // by id
  std::vector<std::string> requests_;
  int64_t now_ = 0;
};

}  // namespace keel
