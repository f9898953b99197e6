// A lock, and an empty file beside it.
#include "trainer/save/job_directory.h"

#include <algorithm>
#include <utility>

#include "base/file_helpers.h"
#include "ckpt/names.h"
#include "trainer/save/bucket_hold.h"

namespace keel {
namespace {

// How long training waits for a worker of this job that is just letting go of a bucket.
constexpr Duration kBucketPause = std::chrono::seconds(1);

class LockedDirectory : public JobDirectory {
 public:
  LockedDirectory(Files& files, std::string root, JobLock lock)
      : files_(files), root_(std::move(root)), lock_(std::move(lock)) {}
  ~LockedDirectory() override;

  const std::string& id() const override { return id_; }
  bool IsInPlace() const override;
  void Mark(const std::string& id);

 private:
  Files& files_;
  const std::string root_;
  const JobLock lock_;
  std::string id_;
};

void LockedDirectory::Mark(const std::string& id) {
  // We hold the directory, so whoever made other marks is gone, or was passed over and shall see
  // that.
  if (const auto entries = files_.List(root_); entries.ok()) {
    for (const DirEntry& entry : *entries) {
      if (IsJobMarkName(entry.name)) (void)files_.Remove(JoinPath(root_, entry.name));
    }
  }
  const auto file = files_.Open(JoinPath(root_, JobMarkName(id)),
                                {.write = true, .create = true, .exclusive = true});
  if (file.ok()) id_ = id;
}

LockedDirectory::~LockedDirectory() {
  if (lock_.passes_over) (void)files_.Remove(lock_.path);   // as its holder
  if (!id_.empty()) (void)files_.Remove(JoinPath(root_, JobMarkName(id_)));
}

bool LockedDirectory::IsInPlace() const {
  if (id_.empty()) return true;   // nobody can tell
  const Status seen = JobDirectory::Look(files_, root_, id_);
  return seen.ok() || seen.error().code != Code::kNotFound;
}

}  // namespace

Result<std::unique_ptr<JobDirectory>> JobDirectory::Hold(Files& files, Clock& clock,
                                                         Random& random, const std::string& root,
                                                         const JobHolder& holder,
                                                         OlderLocks older, Duration limit,
                                                         const std::string& former,
                                                         const std::string& option) {
  KEEL_TRY(CheckIsRoot(files, root, option));
  const auto told = [&](const Error& error) {
    if (error.code != Code::kExists) {
      return error.Doing("checkpoint directory " + root + " cannot be written");
    }
    return Error{Code::kExists, "another job saves in " + root + ": " + error.message +
                                    "; wait for its end or give another " + option};
  };
  KEEL_TRY_ASSIGN(const BucketPlace place, files.Bucket(root));
  if (place.bucket != nullptr) {
    // Where a job begins, it may be again the one whose machine has vanished; one that trains does
    // not wait for that.
    const Duration wait =
        older == OlderLocks::kWaitFor ? kBucketHoldLimit : std::min(limit, kBucketPause);
    auto held = BucketHold::Take(place, clock, random, root, holder, former, wait);
    if (!held.ok()) return told(held.error());
    return held;
  }
  const Status made = MakeDirs(files, root);
  if (!made.ok()) return made.error().Doing("checkpoint directory " + root);
  auto lock = TakeJobLock(files, clock, root, holder, older, limit);
  if (!lock.ok()) return told(lock.error());
  auto directory = std::make_unique<LockedDirectory>(files, root, *std::move(lock));
  directory->Mark(NewAttempt(random));
  RemoveFreeJobLocks(files, root);
  return std::unique_ptr<JobDirectory>(std::move(directory));
}

Status JobDirectory::Look(Files& files, const std::string& root, const std::string& id) {
  KEEL_TRY_ASSIGN(const BucketPlace place, files.Bucket(root));
  if (place.bucket != nullptr) return BucketHold::Look(place, root, id);
  const auto found = files.Stat(JoinPath(root, JobMarkName(id)));
  return found.ok() ? Ok() : Status(found.error());
}

}  // namespace keel
