// The parts of the status page that never change: its style sheet and its script.
#pragma once

#include <string_view>

namespace keel {

extern const std::string_view kStatusStyle;
extern const std::string_view kStatusScript;

}  // namespace keel
