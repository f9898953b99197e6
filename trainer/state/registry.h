// StateRegistry: all that a worker must hold to go on exactly: named tensors (parameters, buffers,
// optimizer) and named numbers (step, cursor, seed, loss scale, trail ...), in one ordered list
// that a save, a restore and a transfer to a newcomer read and write.
// Promises   the list is complete before the first step and the same on every worker of a job.
//            Tensors are the live ones: reading sees, and writing changes, what trains. Numbers
//            are read and written through the pointers or functions given. StateDigest() depends
//            on every bit.
// Does not   own what it lists; order writes against training: its caller does.
// Threads    one at a time.
// Errors     kInvalid, naming all that is wrong: a name given twice, a tensor without dense memory,
//            numbers that are missing, unknown or of another kind.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "ckpt/description.h"
#include "trainer/tensors.h"

namespace keel {

class StateRegistry {
 public:
  using Number = MetadataValue;
  struct NumberEntry {
    std::string name;
    std::function<Number()> read;
    std::function<Status(const Number&)> write;
  };

  // "model." + "layer1.weight"
  Status AddTensors(const std::string& prefix, const NamedTensors& tensors);
  Status AddNumber(NumberEntry entry);
  // Common kinds. `number` must outlive this.
  Status AddNumber(const std::string& name, uint64_t* number);
  Status AddNumber(const std::string& name, double* number);
  Status AddNumber(const std::string& name, Digest* digest);  // as hex

  const NamedTensors& tensors() const { return tensors_; }
  std::vector<at::Tensor> FlatAliases() const;
  uint64_t bytes() const;

  // Those that a manifest holds.
  Metadata Numbers() const;
  // Writes all of them or none, unless a writer refuses its value.
  Status SetNumbers(const Metadata& numbers);
  // The same as one line of JSON, for the report round and a transfer.
  std::string NumbersText() const;
  Status SetNumbersText(const std::string& text);

  // Covers names, types, shapes and memory order, not values: two workers whose layouts differ run
  // different programs.
  Digest LayoutDigest() const;
  // Covers everything: layout, tensors' bits and numbers.
  Digest StateDigest() const;

 private:
  NamedTensors tensors_;
  std::vector<NumberEntry> numbers_;
};

}  // namespace keel
