// Names: the one place that knows the names of a checkpoint's files and directories.
//   ROOT/step-000001200/0123456789abcdef-shard-0000-of-0003.keel   attempt, part, count
//                       0123456789abcdef-shard-0000-of-0003.lck0   held while its save is alive
//                       0123456789abcdef-manifest.tmp              the manifest before its rename
//                       manifest.json                              its presence is the commit
//                       pinned                                     never deleted by retention
//                       pinned.tmp                                 of a pin that was never made
//                       commit.lock                                held during the commit
//      job.lock                              held by the job that saves here
//      job-12.lock                           held instead by one of epoch 12 that passes it over
//      job-0123456789abcdef.mark             there while the lock is held, for the other workers
//      single-save.lock                      held by a worker that saves without its group
//      step-000001200.damaged-0123456789abcdef  put aside by a job that found it damaged
// Promises   parsing takes exactly what making gives. Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/random.h"
#include "base/result.h"

namespace keel {

inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr std::string_view kPinName = "pinned", kPinTempName = "pinned.tmp";
inline constexpr std::string_view kCommitLockName = "commit.lock";

inline constexpr std::string_view kJobLockName = "job.lock";
inline constexpr std::string_view kSingleSaveLockName = "single-save.lock";

std::string LaterJobLockName(int64_t epoch);
bool IsLaterJobLockName(std::string_view name);

std::string JobMarkName(std::string_view id);
bool IsJobMarkName(std::string_view name);

// The name of a new attempt: 16 digits of hex, which all writers of the attempt share.
std::string NewAttempt(Random& random);
Status CheckAttempt(std::string_view attempt);

std::string StepDirName(uint64_t step);
// A name that ParseStepDirName() does not accept.
std::string DamagedStepDirName(uint64_t step, std::string_view id);
std::optional<uint64_t> ParseStepDirName(std::string_view name);
// The step in either of both names.
std::optional<uint64_t> StepOfDirName(std::string_view name);

struct ShardName {
  std::string attempt;
  uint32_t part = 0;
  uint32_t parts = 1;
  auto operator<=>(const ShardName&) const = default;
};
std::string ShardFileName(const ShardName& shard);
// A process that checks whether a lock is held takes it for a moment. A saver that finds its lock
// taken takes the next one, up to kShardLocks - 1.
inline constexpr uint32_t kShardLocks = 10;
std::string ShardLockName(const ShardName& shard, uint32_t lock = 0);
std::string ManifestTempName(std::string_view attempt);

// What a file in a step's directory is, judged by its name.
struct StepFile {
  enum class Kind {
    kManifest, kManifestTemp, kShard, kShardLock, kCommitLock, kPin, kPinTemp, kForeign
  };
  Kind kind = Kind::kForeign;
  ShardName shard;  // of kShard and kShardLock; of kManifestTemp the attempt alone
};
StepFile ParseStepFile(std::string_view name);

}  // namespace keel
