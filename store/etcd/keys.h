// EtcdKeys: where in etcd what of a job lies. Every key of a job begins with the job's prefix.
// Promises   no two things share a key, whatever bytes the keys of the store are made of; all that
//            one watch of `Data("")` sees are keys of the store.
// Threads    a plain value.
#pragma once

#include <cstdint>
#include <string>

namespace keel {

struct EtcdKeys {
  std::string prefix;  // "keel/<job>/"

  // A key of the store, with its value or a reference to the value's parts.
  std::string Data(const std::string& key) const { return prefix + "k/" + key; }
  // The parts of a large value. The key's length makes its end unmistakable.
  std::string Parts(const std::string& key) const {
    return prefix + "p/" + std::to_string(key.size()) + ":" + key + "/";
  }
  // What a client has written last (store/etcd/writer.h).
  std::string Writer(const std::string& id) const { return prefix + "w/" + id; }
  // The highest term that was ever claimed, and the claim of one term.
  std::string Terms() const { return prefix + "t/"; }
  std::string LastTerm() const { return Terms() + "last"; }
  std::string Term(int64_t term) const { return Terms() + "term-" + std::to_string(term); }
};

}  // namespace keel
