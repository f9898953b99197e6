// One lock guards all, also while the file system is waited for.
#include "trainer/save/held_directory.h"

#include <utility>

#include "base/log.h"

namespace keel {

HeldDirectory::HeldDirectory(Files& files, Clock& clock, std::string root, std::string job,
                             const Fence& fence)
    : files_(files), clock_(clock), root_(std::move(root)), job_(std::move(job)), fence_(fence) {}

Status HeldDirectory::Hold(Duration limit, OlderLocks older) {
  const std::lock_guard lock(mutex_);
  if (root_.empty() || held_ != nullptr) return Ok();
  KEEL_TRY(HoldLocked(limit, older));
  seen_ = true;
  return Ok();
}

Status HeldDirectory::HoldLocked(Duration limit, OlderLocks older) {
  const JobHolder holder{job_, fence_.lease_name(), fence_.epoch()};
  KEEL_TRY_ASSIGN(held_, JobDirectory::Hold(files_, clock_, random_, root_, holder, older, limit,
                                            known_));
  known_ = held_->id();
  return Ok();
}

// Whoever moves the directory away, or removes it, takes our lock along. Our saves have made the
// directory anew since, and another job could hold the new one. A worker that is not rank 0 any
// more holds nothing, also when it finds that out late.
Status HeldDirectory::HoldAnewWhereLost() {
  const std::lock_guard lock(mutex_);
  if (held_ == nullptr || held_->IsInPlace()) return Ok();
  held_.reset();
  LogWarn("checkpoint-directory-replaced", {{"dir", root_}});
  return HoldLocked(Duration(0), OlderLocks::kPassOver);
}

void HeldDirectory::LetGo() {
  const std::lock_guard lock(mutex_);
  held_.reset();
}

std::string HeldDirectory::id() const {
  const std::lock_guard lock(mutex_);
  return held_ == nullptr ? "" : held_->id();
}

Status HeldDirectory::Check(const std::string& id) {
  const std::lock_guard lock(mutex_);
  if (!id.empty()) known_ = id;
  if (root_.empty() || seen_) return Ok();
  KEEL_TRY(JobDirectory::Look(files_, root_, id));
  seen_ = true;
  return Ok();
}

}  // namespace keel
