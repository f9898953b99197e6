// Weights: a model's tensors out of a checkpoint or a .safetensors file, to begin training with or
// to use the model (text, predictions).
// Promises   parameters and buffers must be the same there and in the model, by name, type and
//            shape; all differences are told at once. Every byte was verified before it counts.
// Does not   read an optimizer's state, or anything else that training goes on with:
//            trainer/save/resume.h does. After an error within a file the tensors mean nothing.
// Threads    one; a checkpoint's frames are read by some of its own.
// Errors     kInvalid: it is of another model; kNotFound; kCorrupt; those of ckpt/.
#pragma once

#include <torch/nn/module.h>

#include <string>

#include "base/files.h"
#include "base/result.h"
#include "ckpt/frame_scan.h"

namespace keel {

// `path`: "DIR" (of a step), "ROOT" or "ROOT@latest", "ROOT@1200", or a file that ends with
// .safetensors. The directory or file that was taken.
Result<std::string> LoadWeights(const torch::nn::Module& model, Files& files,
                                const std::string& path, Progress* progress = nullptr);

}  // namespace keel
