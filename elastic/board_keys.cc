// The key that names the generation, under which all others lie.
#include "elastic/board_keys.h"

namespace keel {

std::string GenerationKey(const std::string& job) { return "keel/" + job + "/generation"; }

}  // namespace keel
