// S3KeyRing: the keys that requests are signed with, from wherever this machine has some.
// Promises   for Google's store: the environment (HMAC keys), then the machine's account. For all
//            others it looks in AWS's order: the environment; a web identity (EKS); the profile,
//            with its `credential_process`; the container's service (ECS, EKS); the instance's
//            (EC2, by IMDSv2). What it found first is what it stays with. Keys are renewed five
//            minutes before they end, or when a store refuses them, by one thread while others
//            wait; keys that have not ended yet serve on if that fails.
// Does not   show a key or a token in a message, write one anywhere, or follow a profile's
//            source_profile or SSO: `credential_process` serves for those.
// Threads    any.
// Errors     kInvalid: no keys were found, or what was found is refused or cannot be read;
//            kPeerLost, kTimeout: a service that gives keys cannot be reached; kCancelled: the
//            caller's token was raised while keys were asked for.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "base/clock.h"
#include "base/environment.h"
#include "base/files.h"
#include "base/result.h"
#include "store/cancel.h"
#include "store/s3/profile.h"
#include "store/s3/sign.h"
#include "store/s3/transport.h"

namespace keel {

struct KeyPlaces;
// One of the places of store/s3/key_sources.h.
using KeyPlace = Result<std::optional<S3Credentials>> (*)(const KeyPlaces&);

class S3KeyRing {
 public:
  // All by reference, and they must outlive it.
  S3KeyRing(const S3Dialect& dialect, const Environment& environment, const AwsProfile& profile,
            Files& files, Clock& clock, HttpTransport& transport);

  // Keys that are asked for from a service are waited for until `cancel` is raised; those that a
  // program prints, to its end.
  Result<S3Credentials> Get(const CancelToken& cancel = CancelToken::Never());
  // Whether keys may change: those that somebody has written down do not.
  bool can_renew();
  // Has Get() fetch others, unless another thread has done so since `old` was given out, or could
  // not a moment ago. `have_ended`: they are of no more use, whatever comes of that.
  void Renew(const S3Credentials& old, bool have_ended);
  // Has waiters whose tokens were raised end now.
  void Wake();

 private:
  Result<S3Credentials> Find(bool is_patient, const CancelToken& cancel);

  const S3Dialect& dialect_;
  const Environment& environment_;
  const AwsProfile& profile_;
  Files& files_;
  Clock& clock_;
  HttpTransport& transport_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<S3Credentials> held_;   // guarded by mutex_, and so is the rest
  bool is_finding_ = false;             // somebody asks for keys, without the mutex
  int64_t next_try_ns_ = 0;             // after a renewal, whatever came of it
  bool has_failed_ = false;             // the last renewal
  bool are_refused_ = false;            // a store has refused what is held
  KeyPlace place_ = nullptr;            // that has given keys; only for whoever is finding
};

// The keys of a JSON object as services and programs print it ("AccessKeyId", "SecretAccessKey",
// "Token" or "SessionToken", "Expiration"); `from` names it in the error.
Result<S3Credentials> KeysOfJson(const std::string& text, const std::string& from);

}  // namespace keel
