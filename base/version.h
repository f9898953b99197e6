// The version of all that is built here; CMake and Meson have the same one, which a test compares.
// Threads    a constant.
#pragma once

#include <string_view>

namespace keel {

inline constexpr std::string_view kVersion = "0.2.0";

}  // namespace keel
