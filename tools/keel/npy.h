// Npy: tensors as numpy's .npy files, version 1.0.
// Promises   numpy.load() gives the same values, in C order. bf16 and the f8 types, which numpy
//            lacks, become f32, as Tensor.float() makes them: exact, and back with
//            torch.from_numpy(a).to(torch.bfloat16) without a loss.
// Does not   keep which NaN an f8 was. Threads: any; pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ckpt/dtype.h"

namespace keel {

// What a tensor's values are in the file: "<f4" of bf16.
std::string NpyTypeName(Dtype dtype);
bool IsNpyConverted(Dtype dtype);

// Magic, version, length and dictionary, padded to a multiple of 64 bytes.
std::string NpyHeader(Dtype dtype, const std::vector<int64_t>& shape);
// Appends whole elements as the file holds them.
void AppendNpyValues(Dtype dtype, std::span<const std::byte> elements, std::string* to);

}  // namespace keel
