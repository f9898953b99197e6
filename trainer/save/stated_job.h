// StatedJob: what a checkpoint states of the job that it is of, beside what another one states.
// Promises   pure. A job that was made longer is the same one, and what 0.1 did not state is no
//            difference.
// Errors     kInvalid: a text is no fingerprint.
#pragma once

#include <string>

#include "base/result.h"
#include "ckpt/manifest.h"

namespace keel {

// The differences between a checkpoint's fingerprint and ours. Those in `never` cannot be allowed.
struct FingerprintCheck {
  std::string never;     // model, lanes, batch, seed, dataset; empty: the same
  // All else that bits depend on; empty: the same. CompareConfigs() reports an option that only one
  // of the two knows.
  std::string inexact;
};
Result<FingerprintCheck> CompareFingerprints(const std::string& ours, const std::string& theirs);

// A text of a checkpoint's metadata; empty if it has none of that name.
std::string TextIn(const Metadata& metadata, const std::string& name);
// The fingerprint that a checkpoint states; older or foreign writers may not have stated all of it.
std::string FingerprintIn(const Metadata& metadata);

}  // namespace keel
