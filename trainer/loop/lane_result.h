// LaneResult: what a lane's forward and backward made, as digests, so that two workers which
// computed the same lane can be compared, and whatever differs can be named.
// Promises   the same bits give the same result on every machine. What EncodeResults() gives
//            decodes to the same.
// Threads    plain values.
// Errors     kCorrupt: the bytes are no such results.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/result.h"

namespace keel {

struct LaneResult {
  float loss = 0;
  Digest buffers = {};
  std::vector<Digest> gradients = {};   // by parameter; zeros where the loss did not reach it

  Digest All() const;
  bool operator==(const LaneResult& other) const { return All() == other.All(); }
};

// "the loss, layer1.weight and 3 more"; empty: nothing. `names`: of the parameters.
std::string DifferencesOf(const LaneResult& a, const LaneResult& b,
                          const std::vector<std::string>& names);

std::vector<std::byte> EncodeResults(const std::vector<LaneResult>& results);
// `parameters`: of the model.
Result<std::vector<LaneResult>> DecodeResults(std::span<const std::byte> bytes, size_t parameters);

}  // namespace keel
