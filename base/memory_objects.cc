// A map of objects, and the uploads that are not finished yet.
#include "base/memory_objects.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace keel {

class MemoryObjects::Writer : public ObjectUpload {
 public:
  Writer(MemoryObjects& bucket, UnfinishedObject self, uint64_t bytes_max)
      : bucket_(bucket), self_(std::move(self)), bytes_max_(bytes_max) {}

  ~Writer() override {
    const std::lock_guard lock(bucket_.mutex_);
    bucket_.unfinished_.erase(self_.id);
  }

  Status Append(std::span<const std::byte> from) override {
    KEEL_TRY(CheckGoesOn());
    KEEL_CHECK(bytes_.size() + from.size() <= bytes_max_, "more bytes than were announced");
    bytes_.append(reinterpret_cast<const char*>(from.data()), from.size());
    const std::lock_guard lock(bucket_.mutex_);
    const auto begun = bucket_.unfinished_.find(self_.id);
    if (begun != bucket_.unfinished_.end()) begun->second.written_at_ns = bucket_.now_;
    return Ok();
  }

  Status Finish() override {
    KEEL_TRY(CheckGoesOn());
    const std::lock_guard lock(bucket_.mutex_);
    bucket_.Note("finish " + self_.key);
    if (bucket_.unfinished_.erase(self_.id) == 0) {
      return Error{Code::kNotFound, bucket_.name_ + "/" + self_.key +
                                        ": its upload was discarded by another program"};
    }
    bucket_.objects_[self_.key] = {std::move(bytes_), bucket_.Tick()};
    return Ok();
  }

  void Cancel() override { cancelled_ = true; }

 private:
  Status CheckGoesOn() const {
    if (!cancelled_) return Ok();
    return Error{Code::kCancelled, "writing " + bucket_.name_ + "/" + self_.key + " was cancelled"};
  }

  MemoryObjects& bucket_;
  const UnfinishedObject self_;
  const uint64_t bytes_max_;
  std::string bytes_;
  std::atomic<bool> cancelled_{false};
};

void MemoryObjects::Note(std::string request) { requests_.push_back(std::move(request)); }

Error MemoryObjects::Missing(const std::string& key) const {
  return {Code::kNotFound, name_ + "/" + key + " is not there"};
}

Result<ObjectListing> MemoryObjects::List(const std::string& prefix, Depth depth) {
  const std::lock_guard lock(mutex_);
  Note("list " + prefix);
  ObjectListing listing;
  for (auto it = objects_.lower_bound(prefix); it != objects_.end(); ++it) {
    const auto& [key, object] = *it;
    if (!key.starts_with(prefix)) break;
    const size_t slash = depth == Depth::kAll ? std::string::npos : key.find('/', prefix.size());
    if (slash == std::string::npos) {
      listing.objects.push_back({key, object.bytes.size(), object.changed_at_ns});
    } else if (const std::string below = key.substr(0, slash + 1);
               listing.prefixes.empty() || listing.prefixes.back() != below) {
      listing.prefixes.push_back(below);
    }
  }
  return listing;
}

Result<ObjectInfo> MemoryObjects::Look(const std::string& key) {
  const std::lock_guard lock(mutex_);
  Note("look " + key);
  const auto found = objects_.find(key);
  if (found == objects_.end()) return Missing(key);
  return ObjectInfo{key, found->second.bytes.size(), found->second.changed_at_ns};
}

Result<size_t> MemoryObjects::Get(const std::string& key, uint64_t offset,
                                  std::span<std::byte> into) {
  const std::lock_guard lock(mutex_);
  Note("get " + key + " " + std::to_string(offset) + " " + std::to_string(into.size()));
  const auto found = objects_.find(key);
  if (found == objects_.end()) return Missing(key);
  const std::string& bytes = found->second.bytes;
  if (offset >= bytes.size()) return size_t{0};
  const size_t count = std::min<uint64_t>(into.size(), bytes.size() - offset);
  if (count > 0) std::memcpy(into.data(), bytes.data() + offset, count);
  return count;
}

Result<std::unique_ptr<ObjectUpload>> MemoryObjects::Upload(const std::string& key,
                                                            uint64_t bytes_max) {
  const std::lock_guard lock(mutex_);
  Note("upload " + key);
  UnfinishedObject self{key, "", Tick()};
  self.id = std::to_string(self.began_at_ns);
  unfinished_[self.id] = {self, self.began_at_ns};
  return std::unique_ptr<ObjectUpload>(std::make_unique<Writer>(*this, self, bytes_max));
}

Status MemoryObjects::PutIfAbsent(const std::string& key, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  Note("put " + key);
  const auto [place, is_new] = objects_.try_emplace(key, Object{std::string(bytes), now_ + 1});
  if (is_new) Tick();
  if (is_new || place->second.bytes == bytes) return Ok();
  return Error{Code::kExists, name_ + "/" + key + " is there already, with other bytes"};
}

Status MemoryObjects::Replace(const std::string& key, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  Note("replace " + key);
  objects_[key] = {std::string(bytes), Tick()};
  return Ok();
}

Status MemoryObjects::Remove(const std::vector<std::string>& keys) {
  const std::lock_guard lock(mutex_);
  for (const std::string& key : keys) {
    Note("remove " + key);
    objects_.erase(key);
  }
  return Ok();
}

Result<std::vector<UnfinishedObject>> MemoryObjects::Unfinished(const std::string& prefix) {
  const std::lock_guard lock(mutex_);
  Note("unfinished " + prefix);
  std::vector<UnfinishedObject> found;
  for (const auto& [id, one] : unfinished_) {
    if (one.upload.key.starts_with(prefix)) found.push_back(one.upload);
  }
  return found;
}

Result<int64_t> MemoryObjects::LastWritten(const UnfinishedObject& unfinished) {
  const std::lock_guard lock(mutex_);
  Note("parts " + unfinished.key);
  const auto found = unfinished_.find(unfinished.id);
  if (found == unfinished_.end()) return Missing(unfinished.key);
  return found->second.written_at_ns;
}

Status MemoryObjects::Discard(const UnfinishedObject& unfinished) {
  const std::lock_guard lock(mutex_);
  Note("discard " + unfinished.key);
  unfinished_.erase(unfinished.id);
  return Ok();
}

int64_t MemoryObjects::StoreNanos() {
  const std::lock_guard lock(mutex_);
  return now_;
}

void MemoryObjects::Pass(Duration time) {
  const std::lock_guard lock(mutex_);
  now_ += time / std::chrono::nanoseconds(1);
}

std::vector<std::string> MemoryObjects::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

}  // namespace keel
