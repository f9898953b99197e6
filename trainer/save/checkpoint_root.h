// CheckpointRoot: whether a path that is given as --checkpoint-dir, or as --checkpoint-mirror, can
// be a directory of checkpoints at all.
// Promises   refuses, before anything is written there: a checkpoint itself, whole or not, by its
//            name or by what it holds; a file; what other options take ("ROOT@1200"). Says what it
//            is and what was probably meant.
// Does not   look whether its checkpoints are of this job (trainer/save/resume.h), or whether it
//            can be written (trainer/save/job_directory.h). A path that is not there yet is fine.
// Threads    any.
// Errors     kInvalid: it cannot be one; else those of base/files.h.
#pragma once

#include <string>

#include "base/files.h"
#include "base/result.h"

namespace keel {

inline constexpr const char* kCheckpointDirOption = "--checkpoint-dir";
inline constexpr const char* kCheckpointMirrorOption = "--checkpoint-mirror";

// `option`: as which it is given.
Status CheckIsRoot(Files& files, const std::string& path, const std::string& option);

}  // namespace keel
