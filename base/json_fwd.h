// The name Json, for headers that only mention it: base/json.h costs 2 s of compiling a file.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace keel {

// Keeps the order in which members were written.
using Json = nlohmann::ordered_json;

}  // namespace keel
