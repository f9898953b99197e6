// What the user's AWS files say under one profile, and the settings that environment and profile
// give together.
// Promises   the environment counts before the files. A file that is not there is an empty one.
// Does not   ask anybody for keys (store/s3/credentials.h).
// Threads    a plain value. Errors: kInvalid (a profile that was asked for by name is nowhere), and
//            those of base/files.h.
#pragma once

#include <map>
#include <string>

#include "base/environment.h"
#include "base/files.h"
#include "base/result.h"
#include "store/s3/address.h"

namespace keel {

struct AwsProfile {
  std::string name = "default";
  std::map<std::string, std::string> values = {};   // of both files; names in lower case

  // Empty where it is not set.
  std::string Get(const std::string& value) const;
};
Result<AwsProfile> ReadAwsProfile(const Environment& environment, Files& files);

// The region of the environment or the profile; otherwise AWS's first.
std::string AwsRegion(const Environment& environment, const AwsProfile& profile);
// Google's, or the store that STORAGE_EMULATOR_HOST names.
Result<S3Address> GoogleAddressOf(const std::string& bucket, const Environment& environment);
Result<S3Address> AddressOf(const std::string& bucket, const Environment& environment,
                            const AwsProfile& profile);

}  // namespace keel
