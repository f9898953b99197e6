// Datasets over files that are mapped into memory: windows of a token file, records of a record
// file. `keel tokens` and `keel records` make the files.
// Promises   samples are the same on every machine that has the same file; loading ahead is
//            allowed, by several threads.
// Threads    Load() from any.
// Errors     those of trainer/token_file.h and record_file.h; kInvalid: a file with too few tokens,
//            fields that are not there or no numbers.
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
  uint64_t stride = 0;    // from the begin of one window to that of the next; 0: `context`
};
// Sample i is the tokens from i*stride on: data is [context] of them, target the same moved on by
// one, both int64. A window takes context+1 tokens; those at the file's end that fill none are in
// no sample. With stride = context every other token but the first is predicted once an epoch.
Result<std::unique_ptr<Dataset>> TokenDataset(const TokenWindows& windows);

struct RecordSamples {
  std::string path;
  std::string data = "image";
  std::string target = "label";
  // u8 data becomes float in 0..1, then (x - mean) / deviation by channel (the first dimension of a
  // record's); empty: it stays as it is in 0..1. Other data keeps its type and takes neither.
  std::vector<double> mean = {};
  std::vector<double> deviation = {};
};
// Sample i is record i. Whole numbers in `target` become int64, as losses want them.
Result<std::unique_ptr<Dataset>> RecordDataset(const RecordSamples& samples);

}  // namespace keel
