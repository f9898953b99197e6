// The places that S3KeyRing asks for keys.
// Promises   nothing where a place is not set up on this machine; an error where it is and fails.
// Does not   keep keys, or print them.
// Threads    any, one at a time. Errors: those of S3KeyRing.
#pragma once

#include <optional>
#include <string>

#include "store/s3/credentials.h"

namespace keel {

// How long and how often a place is asked.
struct KeyPatience {
  int tries = 3;
  Duration service_limit = std::chrono::seconds(10);
  Duration program_limit = std::chrono::seconds(60);
};

struct KeyPlaces {
  const Environment& environment;
  const AwsProfile& profile;
  Files& files;
  HttpTransport& transport;
  Clock& clock;
  KeyPatience patience = {};
  bool has_given = false;   // the place has given keys before, so that it is set up
  CancelToken cancel = CancelToken::Never();
};
using FoundKeys = Result<std::optional<S3Credentials>>;

// AWS_ACCESS_KEY_ID and its companions.
FoundKeys KeysOfEnvironment(const KeyPlaces& places);
// STS, for a token that the cluster has put into a file.
FoundKeys KeysOfWebIdentity(const KeyPlaces& places);
// The profile's own keys, or those that its credential_process prints.
FoundKeys KeysOfProfile(const KeyPlaces& places);
// The service that AWS_CONTAINER_CREDENTIALS_*_URI names.
FoundKeys KeysOfContainer(const KeyPlaces& places);
// The metadata service of an EC2 instance.
FoundKeys KeysOfInstance(const KeyPlaces& places);

// For Google's store: GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY, of a service account.
FoundKeys GoogleKeysOfEnvironment(const KeyPlaces& places);
// The metadata service of a machine of Google's: a token of its service account.
FoundKeys GoogleTokenOfMachine(const KeyPlaces& places);

}  // namespace keel
