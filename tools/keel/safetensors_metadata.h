// What a checkpoint says about itself as the "__metadata__" of a safetensors file, and back.
//   user note = "hi"        "note": "hi"                   as it is: readers find what they know
//   user keel.x = "hi"      "keel.user.keel.x": "hi"       so that it is not taken for ours
//   metadata cursor = 12    "keel.metadata.cursor": "12"   the value as JSON: "true", "\"a\""
//   step 7                  "keel.step": "7"
//   no user key format      "format": "pt", "keel.added": "format"   Hugging Face's loaders ask it
// Promises   reading gives what was written, types too; a text of others is a user's key.
// Does not   keep the writer, the time or the order of tensors.
// Threads    any; pure functions. Errors: kInvalid, naming the key.
#pragma once

#include <map>
#include <string>

#include "ckpt/description.h"

namespace keel {

std::map<std::string, std::string> ToSafetensorsMetadata(const Description& description);

// Sets `metadata`, `user` and, where it is told, `step` of the description.
Status FromSafetensorsMetadata(const std::map<std::string, std::string>& texts,
                               Description* description);

}  // namespace keel
