// One lock guards all, also while the file system is waited for.
#include "trainer/save/held_directory.h"

#include <algorithm>
#include <condition_variable>
#include <utility>

#include "base/log.h"
#include "elastic/process/quiet_thread.h"
#include "store/bucket_files.h"

namespace keel {
namespace {

// How long a bucket is asked while others wait.
constexpr Duration kAskLimit = std::chrono::seconds(1);

}  // namespace

HeldDirectory::HeldDirectory(Files& files, Clock& clock, std::string root, std::string job,
                             const Fence& fence, std::string option)
    : files_(files), clock_(clock), root_(std::move(root)), job_(std::move(job)), fence_(fence),
      option_(std::move(option)), is_in_bucket_(IsBucketPath(root_)) {}

Status HeldDirectory::Hold(Duration limit, OlderLocks older) {
  const std::lock_guard lock(mutex_);
  if (root_.empty() || held_ != nullptr) return Ok();
  // What was asked already may be answered: a second question would find the first one's claim.
  const bool is_beside =
      is_in_bucket_ && (older == OlderLocks::kPassOver || asked_ != nullptr);
  KEEL_TRY(is_beside ? AskBeside(std::min(limit, kAskLimit)) : HoldLocked(limit, older));
  seen_ = true;
  return Ok();
}

struct HeldDirectory::Asked {
  std::mutex mutex;
  std::condition_variable answered;
  std::optional<Result<std::unique_ptr<JobDirectory>>> answer;   // guarded by mutex
  bool is_unwanted = false;                                      // guarded by mutex
};

// A store may take minutes to say nothing, and training does not wait for it: whoever comes next
// takes the answer.
Status HeldDirectory::AskBeside(Duration limit) {
  if (asked_ == nullptr) {
    asked_ = std::make_shared<Asked>();
    const JobHolder holder{job_, fence_.lease_name(), fence_.epoch()};
    StartQuietThread("keel-ask", [asked = asked_, holder, former = known_, root = root_,
                                  option = option_, files = &files_, clock = &clock_] {
      Random random(EntropySeed());
      auto held = JobDirectory::Hold(*files, *clock, random, root, holder, OlderLocks::kPassOver,
                                     Duration(0), former, option);
      const std::lock_guard lock(asked->mutex);
      if (!asked->is_unwanted) asked->answer = std::move(held);
      asked->answered.notify_all();
    }).detach();
  }
  const std::shared_ptr<Asked> asked = asked_;
  std::unique_lock lock(asked->mutex);
  if (!asked->answered.wait_for(lock, limit, [&] { return asked->answer.has_value(); })) {
    return Error{Code::kTimeout,
                 "the store has not said yet whether this job may save in " + root_};
  }
  asked_ = nullptr;
  KEEL_TRY_ASSIGN(held_, *std::move(asked->answer));
  known_ = held_->id();
  return Ok();
}

// What is asked and not answered will not be kept.
void HeldDirectory::StopAsking() {
  if (asked_ == nullptr) return;
  const std::lock_guard lock(asked_->mutex);
  asked_->is_unwanted = true;
  asked_->answer.reset();
}

HeldDirectory::~HeldDirectory() { LetGo(); }

Status HeldDirectory::HoldLocked(Duration limit, OlderLocks older) {
  const JobHolder holder{job_, fence_.lease_name(), fence_.epoch()};
  KEEL_TRY_ASSIGN(held_, JobDirectory::Hold(files_, clock_, random_, root_, holder, older, limit,
                                            known_, option_));
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
  return is_in_bucket_ ? AskBeside(kAskLimit) : HoldLocked(Duration(0), OlderLocks::kPassOver);
}

void HeldDirectory::LetGo() {
  const std::lock_guard lock(mutex_);
  StopAsking();
  asked_ = nullptr;
  held_.reset();
}

std::string HeldDirectory::id() const {
  const std::lock_guard lock(mutex_);
  return held_ == nullptr ? "" : held_->id();
}

void HeldDirectory::Know(const std::string& id) {
  const std::lock_guard lock(mutex_);
  if (!id.empty()) known_ = id;
}

Status HeldDirectory::Check(const std::string& id) {
  const std::lock_guard lock(mutex_);
  if (!id.empty()) known_ = id;
  if (root_.empty() || seen_) return Ok();
  const Status seen = JobDirectory::Look(files_, root_, id);
  // A store that does not answer tells nothing.
  if (!seen.ok() && is_in_bucket_ && seen.error().code != Code::kNotFound) return Ok();
  KEEL_TRY(seen);
  seen_ = true;
  return Ok();
}

}  // namespace keel
