// SavedConfig in checkpoints: the options of the run that made them, as metadata "config.NAME".
// Promises   a checkpoint without them, from an older version or another writer, yields none.
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

// The options that weights were made with; `path` is one that LoadWeights() takes
// (trainer/weights.h).
Result<SavedConfig> ConfigOfWeights(Files& files, const std::string& path);

// For a program that only uses weights: the options they were made with become the defaults of its
// options whose names begin with `beginning` ("model."). kInvalid, naming both values, if the user
// gave another value.
Status TakeOptionsOfWeights(Files& files, const std::string& path, std::string_view beginning,
                            Options* options);

}  // namespace keel
