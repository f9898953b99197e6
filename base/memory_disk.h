// MemoryDisk: what MemoryFiles keeps, and which part of it would survive a loss of power.
// Promises   each file has its content now, its durable content and the changes between the two;
//            likewise the names in each directory. A change of names is one NameOp, kept or lost
//            as a whole, and never kept without the earlier ones of the same names.
// Does not   lock by itself or know paths beyond splitting them; use base/memory_files.h.
// Threads    whoever holds `mutex`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace keel {

// A change of a file's content: bytes written at `at`, or the size set to `at`.
struct ContentOp {
  enum class Kind { kWrite, kTruncate };
  Kind kind = Kind::kWrite;
  uint64_t at = 0;
  std::string bytes;

  uint64_t end() const { return at + bytes.size(); }
};

void Apply(const ContentOp& op, std::string* content);

struct Inode;
using InodePtr = std::shared_ptr<Inode>;
using Names = std::map<std::string, InodePtr>;

// A file or a directory, whatever its name; only the members of its kind are in use.
struct Inode {
  explicit Inode(FileKind its_kind) : kind(its_kind) {}

  const FileKind kind;
  std::string content;
  std::string durable_content;
  std::vector<ContentOp> unsynced;
  uint64_t reserved = 0;
  Names names;
  Names durable_names;
};

// `name` in `dir` now means `target`; null: nothing.
struct NameChange {
  InodePtr dir;
  std::string name;
  InodePtr target;
};

struct NameOp {
  uint64_t id = 0;
  std::vector<NameChange> changes;
  std::set<uint64_t> needs;  // the ops that are kept where this one is
};

struct MemoryDisk {
  // Where a path leads: `inode` is null where the last name is not there; `dir` is null for "/".
  struct Place {
    InodePtr dir;
    std::string name;
    InodePtr inode;
  };

  explicit MemoryDisk(std::optional<uint64_t> capacity_bytes) : capacity(capacity_bytes) {}

  // kNotFound where a directory on the way is missing, kIo where it is a file.
  Result<Place> Find(std::string_view operation, const std::string& path) const;
  // As Find(), and kNotFound where the inode is missing.
  Result<Place> FindExisting(std::string_view operation, const std::string& path) const;

  void ChangeContent(Inode& file, ContentOp op);
  void SyncContent(Inode& file);
  // Returns the op's id. `also_needs`: another op that must be kept where this one is.
  uint64_t ChangeNames(std::vector<NameChange> changes,
                       std::optional<uint64_t> also_needs = std::nullopt);
  void SyncNames(const InodePtr& dir);

  // Bytes that files take or have reserved; holes count.
  uint64_t UsedBytes() const;
  // How large `file` may become.
  uint64_t LimitOf(const Inode& file) const;

  mutable std::mutex mutex;
  const std::optional<uint64_t> capacity;
  const InodePtr root = std::make_shared<Inode>(FileKind::kDirectory);
  std::vector<NameOp> unsynced_names;
  std::map<InodePtr, std::string> locks;  // who holds them
  uint64_t next_op_id = 1;
};

// The ids in `kept` and all they need, within `ops`.
std::set<uint64_t> WithNeeds(const std::vector<NameOp>& ops, std::set<uint64_t> kept);

}  // namespace keel
