// SinkObjects: the objects and unfinished uploads of a store in memory.
// Promises   bytes are never copied once they are there: an upload that is completed keeps its
//            parts, and who reads holds them.
// Threads    any.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace keel {

struct SinkObject {
  std::vector<std::shared_ptr<const std::string>> parts;
  uint64_t bytes = 0;
  std::string mark;      // of the upload that made it; empty: none was sent

  void Add(std::shared_ptr<const std::string> part);
  // What of the parts lies in [first, first + count).
  std::vector<std::string_view> Range(uint64_t first, uint64_t count) const;
};

class SinkObjects {
 public:
  // False: `only_if_absent`, and one is there.
  bool Put(const std::string& key, SinkObject object, bool only_if_absent);
  std::optional<SinkObject> Get(const std::string& key) const;
  void Remove(const std::string& key);
  std::vector<std::pair<std::string, uint64_t>> List(const std::string& prefix) const;

  std::string BeginUpload(const std::string& key, const std::string& mark);
  bool AddPart(const std::string& id, int number, std::string bytes);
  bool Complete(const std::string& id);
  void Abort(const std::string& id);
  // Key and id of each.
  std::vector<std::pair<std::string, std::string>> Uploads() const;

 private:
  struct Upload {
    std::string key;
    std::string mark;
    std::map<int, std::shared_ptr<const std::string>> parts;
  };
  mutable std::mutex mutex_;
  std::map<std::string, SinkObject> objects_;
  std::map<std::string, Upload> uploads_;
  int last_id_ = 0;
};

}  // namespace keel
