// How content and names change, and become durable, on a disk in memory.
#include "base/memory_disk.h"

#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/file_error.h"

namespace keel {
namespace {

std::vector<std::string> PartsOf(const std::string& path) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= path.size()) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
    begin = end + 1;
  }
  return parts;
}

void Set(Names& names, const NameChange& change) {
  if (change.target == nullptr) {
    names.erase(change.name);
  } else {
    names[change.name] = change.target;
  }
}

bool SharesAName(const NameOp& op, const std::vector<NameChange>& changes) {
  for (const NameChange& a : op.changes) {
    for (const NameChange& b : changes) {
      if (a.dir == b.dir && a.name == b.name) return true;
    }
  }
  return false;
}

uint64_t ChargeOf(const Inode& file) {
  return std::max<uint64_t>(file.content.size(), file.reserved);
}

void CollectFiles(const InodePtr& inode, std::set<const Inode*>* files) {
  if (inode->kind == FileKind::kFile) files->insert(inode.get());
  for (const auto& [name, child] : inode->names) CollectFiles(child, files);
}

}  // namespace

void Apply(const ContentOp& op, std::string* content) {
  if (op.kind == ContentOp::Kind::kTruncate) {
    content->resize(op.at, '\0');
    return;
  }
  if (op.end() > content->size()) content->resize(op.end(), '\0');
  std::copy(op.bytes.begin(), op.bytes.end(),
            content->begin() + static_cast<std::ptrdiff_t>(op.at));
}

Result<MemoryDisk::Place> MemoryDisk::Find(std::string_view operation,
                                           const std::string& path) const {
  if (path.empty()) return FileError(operation, path, ENOENT);
  Place place{nullptr, "", root};
  for (const std::string& part : PartsOf(path)) {
    if (place.inode == nullptr) return FileError(operation, path, ENOENT);
    if (place.inode->kind != FileKind::kDirectory) return FileError(operation, path, ENOTDIR);
    const InodePtr dir = place.inode;
    const auto found = dir->names.find(part);
    place = {dir, part, found == dir->names.end() ? nullptr : found->second};
  }
  return place;
}

Result<MemoryDisk::Place> MemoryDisk::FindExisting(std::string_view operation,
                                                   const std::string& path) const {
  KEEL_TRY_ASSIGN(Place place, Find(operation, path));
  if (place.inode == nullptr) return FileError(operation, path, ENOENT);
  return place;
}

void MemoryDisk::ChangeContent(Inode& file, ContentOp op) {
  Apply(op, &file.content);
  file.unsynced.push_back(std::move(op));
}

void MemoryDisk::SyncContent(Inode& file) {
  for (const ContentOp& op : file.unsynced) Apply(op, &file.durable_content);
  file.unsynced.clear();
  KEEL_CHECK(file.durable_content == file.content,
             file.durable_content.size() << " durable bytes of " << file.content.size());
}

uint64_t MemoryDisk::ChangeNames(std::vector<NameChange> changes,
                                 std::optional<uint64_t> also_needs) {
  NameOp op{next_op_id++, std::move(changes), {}};
  if (also_needs.has_value()) op.needs.insert(*also_needs);
  for (const NameOp& earlier : unsynced_names) {
    if (SharesAName(earlier, op.changes)) op.needs.insert(earlier.id);
  }
  for (const NameChange& change : op.changes) Set(change.dir->names, change);
  unsynced_names.push_back(std::move(op));
  return unsynced_names.back().id;
}

void MemoryDisk::SyncNames(const InodePtr& dir) {
  std::set<uint64_t> in_dir;
  for (const NameOp& op : unsynced_names) {
    for (const NameChange& change : op.changes) {
      if (change.dir == dir) in_dir.insert(op.id);
    }
  }
  const std::set<uint64_t> durable = WithNeeds(unsynced_names, std::move(in_dir));
  std::vector<NameOp> left;
  for (NameOp& op : unsynced_names) {
    if (durable.count(op.id) == 0) {
      left.push_back(std::move(op));
      continue;
    }
    for (const NameChange& change : op.changes) Set(change.dir->durable_names, change);
  }
  unsynced_names = std::move(left);
}

uint64_t MemoryDisk::UsedBytes() const {
  std::set<const Inode*> files;
  CollectFiles(root, &files);
  uint64_t used = 0;
  for (const Inode* file : files) used += ChargeOf(*file);
  return used;
}

uint64_t MemoryDisk::LimitOf(const Inode& file) const {
  if (!capacity.has_value()) return std::numeric_limits<uint64_t>::max();
  const uint64_t used = UsedBytes();
  return ChargeOf(file) + (*capacity > used ? *capacity - used : 0);
}

std::set<uint64_t> WithNeeds(const std::vector<NameOp>& ops, std::set<uint64_t> kept) {
  // An op needs earlier ones only, so one pass from the last to the first finds them all.
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    if (kept.count(op->id) != 0) kept.insert(op->needs.begin(), op->needs.end());
  }
  return kept;
}

}  // namespace keel
