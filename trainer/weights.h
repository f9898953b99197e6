// Weights: reads a model's tensors from a checkpoint or a .safetensors file, to begin training with
// them or to use the model (text, predictions).
// Promises   the file and the model must have the same parameters and buffers, by name, type and
//            shape; all differences are listed at once. Derived buffers that the checkpoint or the
//            file has not stay as they are. No byte counts before it was verified.
// Does not   read an optimizer's state, or anything else that training goes on with:
//            trainer/save/resume.h does. After an error within a file the tensors are undefined.
// Threads    one; a checkpoint's frames are read by threads of its own.
// Errors     kInvalid: it is of another model; kNotFound; kCorrupt; those of ckpt/.
#pragma once

#include <torch/nn/module.h>

#include <string>

#include "base/files.h"
#include "base/result.h"
#include "ckpt/frame_scan.h"
#include "trainer/tensors.h"

namespace keel {

// `path` is "DIR" (of a step), "ROOT" or "ROOT@latest", "ROOT@1200", or a file that ends with
// .safetensors. Returns the directory or file that was taken.
Result<std::string> LoadWeights(const torch::nn::Module& model, Files& files,
                                const std::string& path, Progress* progress = nullptr);
Result<std::string> LoadWeights(const ModelTensors& model, Files& files, const std::string& path,
                                Progress* progress = nullptr);

}  // namespace keel
