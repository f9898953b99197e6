// Safetensors: the header of the file format in which models are exchanged, read and made.
//   header's length (8 bytes, little-endian) | header (JSON) | data of all tensors
//   {"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}
// Promises   it refuses whatever the reference reader (the Rust crate `safetensors`) refuses: a
//            header over 100 MB, or one that is not a JSON object in UTF-8 or does not begin with
//            '{', a shape whose product overflows or disagrees with the offsets, tensors that
//            overlap, data that belongs to no tensor. It also refuses repeated names, which the
//            reference accepts. Entries may come in any order. It writes what the reference
//            writes, to the byte, except that __metadata__, whose order is random there, is
//            sorted.
// Does not   touch files (ckpt/safetensors_file.h); object to unknown members of an entry (nor
//            does the reference); take dtypes that checkpoints lack (F4, F6_E2M3, F8_E8M0 ...).
// Threads    any; pure functions.
// Errors     kCorrupt: no valid header; kInvalid: a valid one with what a checkpoint cannot hold,
//            or the reverse. They name the tensor and, in JSON, line and column.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ckpt/layout.h"

namespace keel {

// Of the names of such files.
inline constexpr std::string_view kSafetensorsEnding = ".safetensors";
inline constexpr size_t kSafetensorsLengthBytes = 8;
inline constexpr uint64_t kSafetensorsHeaderBytesMax = 100'000'000;
inline constexpr size_t kSafetensorsHeaderAlignment = 8;  // of headers that we write

struct SafetensorsTensor {
  TensorSpec spec;
  uint64_t begin = 0;  // in the data
  uint64_t bytes = 0;
  bool operator==(const SafetensorsTensor&) const = default;
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<SafetensorsTensor> tensors;  // in the order of the data, without gaps
  bool operator==(const SafetensorsHeader&) const = default;

  uint64_t data_bytes() const {
    return tensors.empty() ? 0 : tensors.back().begin + tensors.back().bytes;
  }
};

// `text` is the header without its length; `data_bytes` is what follows it in the file. Allocates
// by the text's size, never by a number in it.
Result<SafetensorsHeader> ParseSafetensorsHeader(std::string_view text, uint64_t data_bytes);

// Gives each tensor its place: by dtype, the widest first, then by name, so that each is aligned to
// its elements. Lists all that safetensors cannot hold: c128, "__metadata__", a name twice.
Result<SafetensorsHeader> MakeSafetensorsHeader(std::vector<TensorSpec> tensors,
                                                std::map<std::string, std::string> metadata);

// The beginning of such a file: length, header, and the blanks that align the data.
// kInvalid: more than the 100 MB that readers accept.
Result<std::string> SafetensorsHead(const SafetensorsHeader& header);

}  // namespace keel
