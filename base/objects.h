// Objects: what a bucket of an object store can do, and no more: whole objects under keys.
// Promises   an object appears whole, at once and durably, when the call that makes it has returned
//            Ok; until then nobody sees any of it. PutIfAbsent(): of all puts of one key that is
//            not removed, one succeeds. What was put or removed before a List() began is in it, or
//            not, accordingly.
// Does not   rename, append, change a part of an object, or know directories: a prefix is a text.
//            No promise binds what Replace() and Remove() do to those who read meanwhile: they get
//            the old object, the new one, or kNotFound.
// Threads    any method from any thread; an ObjectUpload from one at a time.
// Errors     kNotFound, kExists, kInvalid (the store refuses such a request, or us: no such bucket,
//            no right, wrong credentials), kNoSpace (a quota), kTimeout and kPeerLost (its limit
//            passed, or it cannot be reached), kCancelled, kCorrupt (a checksum does not fit), kIo.
//            They name the object as its user knows it ("s3://bucket/key"). After kTimeout,
//            kPeerLost, kCancelled or kIo a call may or may not have had its effect; Remove() may
//            have removed some.
// Lifetime   an ObjectUpload may not outlive the Objects that began it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace keel {

struct ObjectInfo {
  std::string key;
  uint64_t bytes = 0;
  int64_t changed_at_ns = 0;  // by the store's clock

  bool operator==(const ObjectInfo&) const = default;
};

struct ObjectListing {
  std::vector<ObjectInfo> objects;    // by key
  std::vector<std::string> prefixes;  // by name; each ends in "/"
};

// An object that is being written: nobody sees it yet, but its store may bill its bytes until it is
// finished or discarded.
struct UnfinishedObject {
  std::string key;
  std::string id;             // of the upload: one key may have several
  int64_t began_at_ns = 0;    // by the store's clock
};

// The destructor discards what is not finished, if it can.
class ObjectUpload {
 public:
  ObjectUpload() = default;
  ObjectUpload(const ObjectUpload&) = delete;
  ObjectUpload& operator=(const ObjectUpload&) = delete;
  virtual ~ObjectUpload() = default;

  // Adds bytes at the end. Ok does not say that the store has them. May wait for those before it.
  virtual Status Append(std::span<const std::byte> from) = 0;
  // Makes the object of all that was added, in place of one that is there. Called once.
  virtual Status Finish() = 0;
  // From any thread: what is under way ends soon, with kCancelled, as does all that follows.
  virtual void Cancel() = 0;
};

// What the owner of a bucket has set, as far as the store tells.
struct BucketRules {
  std::string other_region = {};                // where it is, unless that is what was asked for
  std::optional<bool> ends_unfinished = {};     // uploads that nobody finishes end by themselves
  std::optional<bool> keeps_versions = {};      // what is removed or replaced stays, and is billed
};

class Objects {
 public:
  Objects() = default;
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;
  virtual ~Objects() = default;

  // "s3://bucket": what its messages begin the names of objects with.
  virtual const std::string& name() const = 0;

  enum class Depth {
    kAll,     // all objects whose keys begin with the prefix
    kToSlash  // of those with a "/" after the prefix only the part up to it, once, in `prefixes`
  };
  virtual Result<ObjectListing> List(const std::string& prefix, Depth depth) = 0;
  virtual Result<ObjectInfo> Look(const std::string& key) = 0;
  // Fills `into` from `offset` on; fewer bytes only where the object ends.
  virtual Result<size_t> Get(const std::string& key, uint64_t offset,
                             std::span<std::byte> into) = 0;

  // Begins an object of at most that many bytes.
  virtual Result<std::unique_ptr<ObjectUpload>> Upload(const std::string& key,
                                                       uint64_t bytes_max) = 0;
  // kExists: another one's bytes are there. Bytes that are equal count as put by this call, so that
  // an answer that was lost does no harm: whoever must know its own gives them something unique.
  virtual Status PutIfAbsent(const std::string& key, std::string_view bytes) = 0;
  // Whether that is so also where two put at one moment; else one may take the other's place.
  virtual bool is_guarded() const { return true; }
  virtual Status Replace(const std::string& key, std::string_view bytes) = 0;
  // One that is not there counts as removed.
  virtual Status Remove(const std::vector<std::string>& keys) = 0;

  // The store's clock, as its last answer told it; before the first, ours. It names whole seconds.
  virtual int64_t StoreNanos() = 0;

  virtual Result<std::vector<UnfinishedObject>> Unfinished(const std::string& prefix) = 0;
  // When the store got the last bytes of it, by its clock; before the first, when it began.
  // kNotFound: it is finished or discarded.
  virtual Result<int64_t> LastWritten(const UnfinishedObject& unfinished) = 0;
  virtual Status Discard(const UnfinishedObject& unfinished) = 0;

  virtual Result<BucketRules> Rules() = 0;
};

}  // namespace keel
