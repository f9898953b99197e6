// A lock, and an empty file beside it.
#include "trainer/save/job_directory.h"

#include <unistd.h>

#include <utility>

#include "base/file_helpers.h"
#include "ckpt/names.h"
#include "store/own_address.h"
#include "trainer/save/checkpoint_root.h"

namespace keel {
namespace {

constexpr Duration kLockPoll = std::chrono::milliseconds(20);

}  // namespace

Result<std::unique_ptr<FileLock>> TakeLock(Files& files, Clock& clock, const std::string& path,
                                           const std::string& owner, Duration limit) {
  const TimePoint deadline = clock.Monotonic() + limit;
  for (;;) {
    auto lock = files.Lock(path, owner);
    const bool held = !lock.ok() && lock.error().code == Code::kExists;
    if (!held || clock.Monotonic() >= deadline) return lock;
    clock.SleepFor(kLockPoll);
  }
}

Result<std::unique_ptr<JobDirectory>> JobDirectory::Hold(Files& files, Clock& clock,
                                                         Random& random, const std::string& root,
                                                         const std::string& job,
                                                         Duration limit) {
  KEEL_TRY(CheckIsRoot(files, root));
  const Status made = MakeDirs(files, root);
  if (!made.ok()) return made.error().Doing("checkpoint directory " + root);
  const std::string owner = "job " + job + ", process " + std::to_string(getpid()) +
                            " on " + OwnHostName();
  auto lock = TakeLock(files, clock, JoinPath(root, kJobLockName), owner, limit);
  if (!lock.ok() && lock.error().code == Code::kExists) {
    return Error{Code::kExists, "another job saves in " + root + ": " + lock.error().message +
                                    "; wait for its end or give another --checkpoint-dir"};
  }
  if (!lock.ok()) {
    return lock.error().Doing("checkpoint directory " + root + " cannot be written");
  }
  std::unique_ptr<JobDirectory> directory(new JobDirectory(files, root, *std::move(lock)));
  directory->Mark(NewAttempt(random));
  return directory;
}

void JobDirectory::Mark(const std::string& id) {
  // We hold the lock, so whoever made other marks is gone.
  if (const auto entries = files_.List(root_); entries.ok()) {
    for (const DirEntry& entry : *entries) {
      if (IsJobMarkName(entry.name)) (void)files_.Remove(JoinPath(root_, entry.name));
    }
  }
  const auto file = files_.Open(JoinPath(root_, JobMarkName(id)),
                                {.write = true, .create = true, .exclusive = true});
  if (file.ok()) id_ = id;
}

JobDirectory::~JobDirectory() {
  if (!id_.empty()) (void)files_.Remove(JoinPath(root_, JobMarkName(id_)));
}

bool JobDirectory::IsInPlace() const {
  if (id_.empty()) return true;   // nobody can tell
  const Status seen = Look(files_, root_, id_);
  return seen.ok() || seen.error().code != Code::kNotFound;
}

Status JobDirectory::Look(Files& files, const std::string& root, const std::string& id) {
  const auto found = files.Stat(JoinPath(root, JobMarkName(id)));
  return found.ok() ? Ok() : Status(found.error());
}

}  // namespace keel
