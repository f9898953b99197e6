// Wording: how the tool says times, ratios, metadata and counts, in all commands alike.
// Threads    any; pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "ckpt/description.h"

namespace keel {

// "2026-11-21 08:30:00" (UTC).
std::string TimeText(int64_t nanos_since_1970);
// "0.84": stored by content; "-" of nothing.
std::string RatioText(uint64_t stored, uint64_t content);

Json MetadataJson(const Metadata& metadata);
Json UserJson(const Description& description);

}  // namespace keel
