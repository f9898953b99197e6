// Which unsynced changes a loss of power keeps: chosen one by one, replayed on what is durable.
#include "base/power_loss.h"

#include <algorithm>
#include <numeric>

#include "base/random.h"

namespace keel {
namespace {

// What becomes of one unsynced change. A change of names is kept or lost; the rest is for writes.
enum class Fate {
  kKept,
  kLost,
  kCut,       // the front part arrived
  kHoles,     // some pages arrived
  kSizeOnly,  // the file grew, the bytes did not arrive
};

constexpr uint64_t kPageBytes = 4096;
constexpr size_t kSinglesMax = 64;

// All that is unsynced, in an order that does not depend on addresses.
class Unsynced {
 public:
  explicit Unsynced(const MemoryDisk& disk) : names(disk.unsynced_names.size()) {
    Visit(disk.root);
    for (const NameOp& op : disk.unsynced_names) {
      for (const NameChange& change : op.changes) {
        if (change.target != nullptr) Visit(change.target);
      }
    }
  }

  size_t count() const { return names + contents; }

  const size_t names;
  size_t contents = 0;
  std::map<const Inode*, size_t> first_of;  // where a file's fates begin; only looked up

 private:
  void Visit(const InodePtr& inode) {
    if (!first_of.emplace(inode.get(), names + contents).second) return;
    contents += inode->unsynced.size();
    for (const auto& [name, child] : inode->durable_names) Visit(child);
  }
};

using Fates = std::vector<Fate>;

Fates AllOf(const Unsynced& unsynced, Fate of_names, Fate of_contents) {
  Fates fates(unsynced.count(), of_contents);
  std::fill_n(fates.begin(), unsynced.names, of_names);
  return fates;
}

Fates Mixed(const Unsynced& unsynced, Random& random) {
  Fates fates(unsynced.count());
  for (size_t i = 0; i < fates.size(); ++i) {
    fates[i] = static_cast<Fate>(random.Uniform(i < unsynced.names ? 2 : 5));
  }
  return fates;
}

// All kept but one, for each one of them, as far as kSinglesMax allows.
void AddSingles(const Unsynced& unsynced, Random& random, std::vector<Fates>* all) {
  std::vector<size_t> which(unsynced.count());
  std::iota(which.begin(), which.end(), 0);
  if (which.size() > kSinglesMax) {
    random.Shuffle(std::span(which));
    which.resize(kSinglesMax);
  }
  for (const size_t lost : which) {
    all->push_back(AllOf(unsynced, Fate::kKept, Fate::kKept));
    all->back()[lost] = Fate::kLost;
  }
}

std::vector<Fates> Choose(const Unsynced& unsynced, int mixes, Random& random) {
  std::vector<Fates> all{AllOf(unsynced, Fate::kKept, Fate::kKept)};
  if (unsynced.count() == 0) return all;  // there is only one such disk
  all.push_back(AllOf(unsynced, Fate::kLost, Fate::kLost));
  all.push_back(AllOf(unsynced, Fate::kKept, Fate::kLost));
  all.push_back(AllOf(unsynced, Fate::kKept, Fate::kSizeOnly));
  all.push_back(AllOf(unsynced, Fate::kLost, Fate::kKept));
  AddSingles(unsynced, random, &all);
  for (int i = 0; i < mixes; ++i) all.push_back(Mixed(unsynced, random));
  return all;
}

void ApplySomePages(const ContentOp& op, Random& random, std::string* content) {
  for (uint64_t at = op.at; at < op.end();) {
    const uint64_t end = std::min(op.end(), (at / kPageBytes + 1) * kPageBytes);
    if (random.Chance(0.5)) {
      Apply({ContentOp::Kind::kWrite, at, op.bytes.substr(at - op.at, end - at)}, content);
    }
    at = end;
  }
}

void ApplyWithFate(const ContentOp& op, Fate fate, Random& random, std::string* content) {
  if (fate == Fate::kLost) return;
  if (fate == Fate::kKept || op.kind == ContentOp::Kind::kTruncate) return Apply(op, content);
  if (fate == Fate::kHoles) return ApplySomePages(op, random, content);
  if (fate == Fate::kSizeOnly) {
    if (op.end() > content->size()) content->resize(op.end(), '\0');
    return;
  }
  const uint64_t front = random.Uniform(op.bytes.size());
  Apply({ContentOp::Kind::kWrite, op.at, op.bytes.substr(0, front)}, content);
}

// Builds one disk: the durable names with the kept changes, and behind each name its content.
class Replay {
 public:
  Replay(const MemoryDisk& disk, const Unsynced& unsynced, const Fates& fates, Random& random)
      : unsynced_(unsynced), fates_(fates), random_(random) {
    std::set<uint64_t> kept;
    for (size_t i = 0; i < unsynced.names; ++i) {
      if (fates[i] == Fate::kKept) kept.insert(disk.unsynced_names[i].id);
    }
    kept = WithNeeds(disk.unsynced_names, std::move(kept));
    for (const NameOp& op : disk.unsynced_names) {
      if (kept.count(op.id) == 0) continue;
      for (const NameChange& change : op.changes)
        kept_changes_[change.dir.get()].push_back(&change);
    }
  }

  std::unique_ptr<MemoryDisk> Disk(const MemoryDisk& disk) {
    auto found = std::make_unique<MemoryDisk>(disk.capacity);
    CopyNames(*disk.root, found->root.get());
    return found;
  }

 private:
  Names NamesOf(const Inode& dir) const {
    Names names = dir.durable_names;
    const auto changes = kept_changes_.find(&dir);
    if (changes == kept_changes_.end()) return names;
    for (const NameChange* change : changes->second) {
      names.erase(change->name);
      if (change->target != nullptr) names.emplace(change->name, change->target);
    }
    return names;
  }

  void CopyNames(const Inode& from, Inode* to) {
    for (const auto& [name, child] : NamesOf(from)) to->names[name] = Copy(child);
    to->durable_names = to->names;
  }

  // One copy an inode, however many names lead to it.
  InodePtr Copy(const InodePtr& from) {
    const auto [place, is_new] = copies_.emplace(from.get(), nullptr);
    if (!is_new) return place->second;
    const InodePtr to = std::make_shared<Inode>(from->kind);
    place->second = to;
    CopyNames(*from, to.get());
    to->durable_content = from->durable_content;
    const size_t first = unsynced_.first_of.at(from.get());
    for (size_t i = 0; i < from->unsynced.size(); ++i) {
      ApplyWithFate(from->unsynced[i], fates_[first + i], random_, &to->durable_content);
    }
    to->content = to->durable_content;
    return to;
  }

  const Unsynced& unsynced_;
  const Fates& fates_;
  Random& random_;
  std::map<const Inode*, std::vector<const NameChange*>> kept_changes_;
  std::map<const Inode*, InodePtr> copies_;
};

}  // namespace

std::vector<std::unique_ptr<MemoryDisk>> DisksAfterPowerLoss(const MemoryDisk& disk, int mixes,
                                                             uint64_t seed) {
  Random random(seed);
  const Unsynced unsynced(disk);
  std::vector<std::unique_ptr<MemoryDisk>> disks;
  for (const Fates& fates : Choose(unsynced, mixes, random)) {
    disks.push_back(Replay(disk, unsynced, fates, random).Disk(disk));
  }
  return disks;
}

}  // namespace keel
