// A rename, or one small object in place of another.
#include "ckpt/put_aside.h"

#include "base/file_helpers.h"
#include "base/objects.h"
#include "ckpt/format.h"
#include "ckpt/names.h"

namespace keel {

Result<std::string> PutAside(Files& files, Random& random, const std::string& root,
                             const StepEntry& entry) {
  const std::string id = NewAttempt(random);
  KEEL_TRY_ASSIGN(const BucketPlace step, files.Bucket(entry.dir));
  if (step.bucket == nullptr) {
    const std::string aside = JoinPath(root, DamagedStepDirName(entry.step, id));
    KEEL_TRY(files.Rename(entry.dir, aside));
    KEEL_TRY(files.SyncDir(root));
    return aside;
  }
  // Other attempts may be younger than the judgement.
  KEEL_TRY_ASSIGN(const StepEntry now, LookAtStep(files, entry.dir));
  if (now.state != entry.state || now.attempt != entry.attempt) {
    return Error{Code::kExists, entry.dir + " has changed since it was looked at"};
  }
  const std::string path = JoinPath(entry.dir, kManifestName);
  KEEL_TRY_ASSIGN(const std::string bytes, ReadWhole(files, path, kManifestBytesMax));
  KEEL_TRY(step.bucket->Replace(step.key + "/" + ManifestTempName(id), bytes));
  KEEL_TRY(files.Remove(path));
  return entry.dir;
}

}  // namespace keel
