// SavedConfig in checkpoints: the options of the run that made them, as metadata "config.NAME".
// Promises   a checkpoint without them, of an older version or another writer, says nothing.
// Threads    any. Errors: those of ckpt/.
#pragma once

#include <string>

#include "base/files.h"
#include "base/options.h"
#include "base/result.h"
#include "ckpt/description.h"
#include "trainer/numerics/run_config.h"

namespace keel {

void PutConfig(const SavedConfig& config, Metadata* metadata);
SavedConfig ConfigIn(const Metadata& metadata);

// What weights were made with; `path` is one that LoadWeights() takes (trainer/weights.h).
Result<SavedConfig> ConfigOfWeights(Files& files, const std::string& path);

// For a program that only uses them: what they were made with becomes the default of the options
// whose names begin so ("model."). kInvalid, naming both values, where one was given that differs.
Status TakeOptionsOfWeights(Files& files, const std::string& path, std::string_view beginning,
                            Options* options);

}  // namespace keel
