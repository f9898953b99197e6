// Two maps behind one mutex.
#include "bench/ckpt/sink/objects.h"

#include <algorithm>

namespace keel {

void SinkObject::Add(std::shared_ptr<const std::string> part) {
  bytes += part->size();
  parts.push_back(std::move(part));
}

std::vector<std::string_view> SinkObject::Range(uint64_t first, uint64_t count) const {
  std::vector<std::string_view> range;
  uint64_t begin = 0;
  for (const auto& part : parts) {
    const uint64_t from = std::max(first, begin);
    const uint64_t end = std::min(first + count, begin + part->size());
    if (from < end) range.push_back(std::string_view(*part).substr(from - begin, end - from));
    begin += part->size();
  }
  return range;
}

bool SinkObjects::Put(const std::string& key, SinkObject object, bool only_if_absent) {
  const std::lock_guard lock(mutex_);
  if (only_if_absent && objects_.contains(key)) return false;
  objects_[key] = std::move(object);
  return true;
}

std::optional<SinkObject> SinkObjects::Get(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(key);
  return found == objects_.end() ? std::nullopt : std::optional(found->second);
}

void SinkObjects::Remove(const std::string& key) {
  const std::lock_guard lock(mutex_);
  objects_.erase(key);
}

std::vector<std::pair<std::string, uint64_t>> SinkObjects::List(const std::string& prefix) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, uint64_t>> found;
  for (auto at = objects_.lower_bound(prefix); at != objects_.end(); ++at) {
    if (!at->first.starts_with(prefix)) break;
    found.emplace_back(at->first, at->second.bytes);
  }
  return found;
}

std::string SinkObjects::BeginUpload(const std::string& key, const std::string& mark) {
  const std::lock_guard lock(mutex_);
  const std::string id = "upload-" + std::to_string(++last_id_);
  uploads_[id] = {key, mark, {}};
  return id;
}

bool SinkObjects::AddPart(const std::string& id, int number, std::string bytes) {
  auto part = std::make_shared<const std::string>(std::move(bytes));
  const std::lock_guard lock(mutex_);
  const auto found = uploads_.find(id);
  if (found == uploads_.end()) return false;
  found->second.parts[number] = std::move(part);
  return true;
}

bool SinkObjects::Complete(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = uploads_.find(id);
  if (found == uploads_.end()) return false;
  SinkObject object;
  for (auto& [number, part] : found->second.parts) object.Add(std::move(part));
  object.mark = found->second.mark;
  objects_[found->second.key] = std::move(object);
  uploads_.erase(found);
  return true;
}

void SinkObjects::Abort(const std::string& id) {
  const std::lock_guard lock(mutex_);
  uploads_.erase(id);
}

std::vector<std::pair<std::string, std::string>> SinkObjects::Uploads() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& [id, upload] : uploads_) found.emplace_back(upload.key, id);
  return found;
}

}  // namespace keel
