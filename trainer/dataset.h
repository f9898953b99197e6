// Dataset: where samples come from, by index: any map-style dataset of torch::data, or tensors in
// memory.
// Promises   Load() returns the samples of these indices, stacked in their order.
// Does not   shuffle or split among workers: trainer/data/samples.h says which lane takes which
//            index. What an implementation draws from LibTorch's default generators is
//            reproducible if loading() is kInStep: they are seeded for the lane's samples before
//            these are loaded, and once more, with another seed, before the lane is computed.
// Threads    Load() as loading() says, from any thread.
// Errors     kInvalid, kForeign: what the dataset threw, with the indices.
#pragma once

#include <torch/data/datasets/base.h>
#include <torch/data/example.h>
#include <torch/data/transforms/stack.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"

namespace keel {

// Samples along the first dimension: the data, and what the model should make of them; and any
// number of further tensors, if the program has use for them.
struct Batch : torch::data::Example<> {
  using Example::Example;
  Batch() = default;
  Batch(torch::data::Example<> example) : Example(std::move(example)) {}
  std::vector<at::Tensor> more = {};
  std::shared_ptr<const void> tag = {};   // whatever else the dataset wants the program to get
};

// When Load() may be called.
enum class Loading {
  kInStep,           // in its lane's turn: it draws from LibTorch's default generators
  kAhead,            // at any time before, by one thread at a time
  kAheadInParallel,  // at any time before, by several at once
};

class Dataset {
 public:
  Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;
  virtual ~Dataset() = default;

  virtual uint64_t size() const = 0;
  virtual Result<Batch> Load(std::span<const uint64_t> indices) = 0;
  // The same, with a seed that follows from the job's, the step and the lane: what draws from that,
  // and nothing else, gives the same samples whoever loads them, wherever and when. To kInStep it
  // is what the default generators are seeded with.
  virtual Result<Batch> LoadSeeded(std::span<const uint64_t> indices, uint64_t /*seed*/) {
    return Load(indices);
  }
  virtual Loading loading() const { return Loading::kInStep; }
  // Tells it from other data of the same size, identically on every machine; empty: nothing is
  // known.
  virtual std::string Identity() const { return {}; }
};

// Adapts Torch's map-style datasets with torch::data::Example<>s, whether stacked already
// (.map(Stack<>())) or not. `loading` says what its get() allows; kInStep suits those that augment
// with Torch's random numbers. kInvalid: the dataset does not know its size.
template <class TorchDataset>
Result<std::unique_ptr<Dataset>> MapStyle(TorchDataset dataset,
                                          Loading loading = Loading::kInStep);

// Sample i is (data[i], target[i]). kInvalid: their lengths differ, or are 0.
Result<std::unique_ptr<Dataset>> InMemory(at::Tensor data, at::Tensor target);

// Made from a seed alone, the same on every machine: something to learn, without a download.
struct ClassesSpec {
  uint64_t seed = 0;
  int64_t samples = 1024;
  std::vector<int64_t> shape = {32};  // of one sample
  int64_t classes = 10;
};
// Noise around one random centre for each class; targets are class numbers.
Result<std::unique_ptr<Dataset>> SyntheticClasses(const ClassesSpec& spec);

struct TextSpec {
  uint64_t seed = 0;
  int64_t samples = 1024;
  int64_t length = 64;
  int64_t vocabulary = 64;
};
// Sequences that mostly follow a fixed random successor of each token; targets are the next tokens.
Result<std::unique_ptr<Dataset>> SyntheticText(const TextSpec& spec);

}  // namespace keel

#include "trainer/dataset_map_style.h"
