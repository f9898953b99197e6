// A lock, and an empty file beside it.
#include "trainer/save/job_directory.h"

#include <utility>

#include "base/file_helpers.h"
#include "ckpt/names.h"
#include "trainer/save/checkpoint_root.h"

namespace keel {
Result<std::unique_ptr<JobDirectory>> JobDirectory::Hold(Files& files, Clock& clock,
                                                         Random& random, const std::string& root,
                                                         const JobHolder& holder,
                                                         OlderLocks older, Duration limit) {
  KEEL_TRY(CheckIsRoot(files, root));
  const Status made = MakeDirs(files, root);
  if (!made.ok()) return made.error().Doing("checkpoint directory " + root);
  auto lock = TakeJobLock(files, clock, root, holder, older, limit);
  if (!lock.ok() && lock.error().code == Code::kExists) {
    return Error{Code::kExists, "another job saves in " + root + ": " + lock.error().message +
                                    "; wait for its end or give another --checkpoint-dir"};
  }
  if (!lock.ok()) {
    return lock.error().Doing("checkpoint directory " + root + " cannot be written");
  }
  std::unique_ptr<JobDirectory> directory(new JobDirectory(files, root, *std::move(lock)));
  directory->Mark(NewAttempt(random));
  RemoveFreeJobLocks(files, root);
  return directory;
}

void JobDirectory::Mark(const std::string& id) {
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

JobDirectory::~JobDirectory() {
  if (lock_.passes_over) (void)files_.Remove(lock_.path);   // as its holder
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
