// TensorFile: tensors by name in one safetensors file, written as a whole, and read.
// Promises   a file is there whole or not at all. Bits are kept, wherever a tensor lies.
// Threads    one.
// Errors     those of SafetensorsFile and SafetensorsWriter (ckpt/safetensors_file.h); kInvalid: a
//            type that one of both sides has not.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/files.h"
#include "base/result.h"
#include "ckpt/layout.h"
#include "trainer/tensors.h"

namespace keel {

// LibTorch's type of that name.
Result<at::ScalarType> TypeOf(const TensorSpec& spec);

struct TensorFile {
  NamedTensors tensors = {};
  std::map<std::string, std::string> metadata = {};
};
Status WriteTensorFile(Files& files, const TensorFile& content, const std::string& path,
                       bool replace);
// On the CPU. Of tensors that are not wanted, nothing is read and no memory is taken; without
// `is_wanted` all are.
Result<TensorFile> ReadTensorFile(
    Files& files, const std::string& path,
    const std::function<bool(const std::string& name)>& is_wanted = nullptr);

}  // namespace keel
