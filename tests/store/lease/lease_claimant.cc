// A process that claims terms of a lease; dir_lease_process_test.cc runs it, and may kill it.
//   lease_claimant race DIR NAME LAST   claims term after term, until LAST is claimed; prints those
//                                       that it was given
//   lease_claimant once DIR NAME        claims the next term, beats, and releases it
#include <cstdio>
#include <string>

#include "base/random.h"
#include "base/text.h"
#include "store/lease/dir_lease.h"
#include "tests/store/lease/racer.h"
#include "tests/store/lease/unsynced_files.h"

namespace keel {
namespace {

Status Race(const std::string& dir, const std::string& name, int64_t last) {
  UnsyncedFiles files;
  Random random(EntropySeed());
  KEEL_TRY_ASSIGN(const auto lease, DirLease::Open(files, random, dir, {"job", "run"}));
  Racer racer(*lease, name);
  KEEL_TRY(racer.Run(last));
  for (const int64_t term : racer.won()) std::printf("won %lld\n", static_cast<long long>(term));
  return Ok();
}

Status Once(const std::string& dir, const std::string& name) {
  PosixFiles files;
  Random random(EntropySeed());
  KEEL_TRY_ASSIGN(const auto lease, DirLease::Open(files, random, dir, {"job", "run"}));
  KEEL_TRY_ASSIGN(const LeaseSight sight, lease->Look());
  KEEL_TRY(lease->Claim(sight.term + 1, Racer::TextOf(sight.term + 1, name)));
  KEEL_TRY(lease->Beat());
  return lease->Release();
}

Status Run(const std::vector<std::string>& arguments) {
  if (arguments.size() == 4 && arguments[0] == "race") {
    KEEL_TRY_ASSIGN(const int64_t last, ParseInteger(arguments[3]));
    return Race(arguments[1], arguments[2], last);
  }
  if (arguments.size() == 3 && arguments[0] == "once") return Once(arguments[1], arguments[2]);
  return Error{Code::kInvalid, "see lease_claimant.cc"};
}

}  // namespace
}  // namespace keel

int main(int argc, char** argv) {
  const keel::Status done = keel::Run({argv + 1, argv + argc});
  if (!done.ok()) std::fprintf(stderr, "%s\n", done.error().message.c_str());
  return done.ok() ? 0 : 1;
}
