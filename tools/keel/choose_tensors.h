// ChooseTensors: the options --only and --rename of the commands that move tensors to another file.
// Promises   names are chosen first, then renamed. A pattern or a rule that fits nothing, a rule
//            that makes no sense and two tensors of one new name are errors; all are listed.
// Threads    any; pure functions. Errors: kInvalid.
#pragma once

#include <string>
#include <vector>

#include "base/options.h"
#include "ckpt/layout.h"

namespace keel {

struct ChosenTensor {
  size_t index = 0;  // in what there was to choose from
  TensorSpec spec;   // with its new name
};

void AddChoiceOptions(OptionTable* table);

// In the order in which they were.
Result<std::vector<ChosenTensor>> ChooseTensors(const std::vector<TensorSpec>& tensors,
                                                const Options& options);

// The same from the options' values. `only`: patterns; none: all. `renames`: "FROM=TO", where each
// side is a name or has one '*'; the first rule that fits a tensor is the one that counts.
Result<std::vector<ChosenTensor>> ChooseTensors(const std::vector<TensorSpec>& tensors,
                                                const std::vector<std::string>& only,
                                                const std::vector<std::string>& renames);

std::vector<TensorSpec> SpecsOf(const std::vector<ChosenTensor>& chosen);

}  // namespace keel
