// Numbers: single elements of tensors as numbers and as text.
// Promises   text of a float is the shortest that reads back as the same float32 (float64 for f64);
//            of whole numbers all digits. Complex numbers are two lanes.
// Does not   keep whole numbers beyond 2^53 exact in NumberAt().
// Threads    any; pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/json_fwd.h"
#include "ckpt/dtype.h"

namespace keel {

// f32 of c64; other dtypes are their own lanes.
Dtype LaneDtype(Dtype dtype);
bool IsComplex(Dtype dtype);
bool IsFloat(Dtype lane);

// `lane` is no complex dtype; its bytes need no alignment.
double NumberAt(Dtype lane, const std::byte* at);
// One element: "1.5", "true", "1+2i".
std::string ElementText(Dtype dtype, const std::byte* at);
// What JSON has no number for is a text: "nan", "inf", "-inf". A null would look like the least.
Json RealJson(double number);

}  // namespace keel
