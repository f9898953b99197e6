// Datasets over files that are mapped into memory: windows of a token file, records of a record
// file. `keel tokens` and `keel records` make the files.
// Promises   samples are the same on every machine that has the same file; loading ahead is
//            allowed, by several threads.
// Threads    Load() from any.
// Errors     those of trainer/token_file.h and record_file.h; kInvalid: the file has too few
//            tokens, or a field does not exist or has no numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/dataset.h"

namespace keel {

struct TokenWindows {
  std::string path;
  uint64_t context = 0;   // tokens of a sample
  uint64_t stride = 0;    // from the start of one window to the next; 0: `context`
};
// Sample i is the tokens from i*stride on: data is [context] of them, target the same shifted by
// one, both int64. A window takes context+1 tokens; a rest at the file's end that fills no window
// is in no sample. With stride = context every token except the first is predicted once per epoch.
Result<std::unique_ptr<Dataset>> TokenDataset(const TokenWindows& windows);

struct RecordSamples {
  std::string path;
  std::string data = "image";
  std::string target = "label";
  // u8 data becomes float in 0..1, then (x - mean) / deviation by channel (the first dimension of a
  // record). If these are empty it stays in 0..1. Other data keeps its type and takes neither.
  std::vector<double> mean = {};
  std::vector<double> deviation = {};
};
// Sample i is record i. Whole numbers in `target` become int64, as losses need.
Result<std::unique_ptr<Dataset>> RecordDataset(const RecordSamples& samples);

}  // namespace keel
