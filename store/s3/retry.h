// What follows one try of a request: a pure decision with its reason.
// Promises   at most `tries_max` tries, none after the deadline. Pauses grow twofold from
//            `pause_first` to `pause_max`, at random below that; a store's Retry-After counts where
//            it is longer. A request whose effect is unknown is settled by reading, not by belief.
// Does not   look at a clock, wait, send, or log.
// Threads    any.
// Errors     of a verdict: those of base/objects.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "store/s3/transport.h"

namespace keel {

// What a second try would do if the first had its effect.
enum class S3Effect {
  kNone,       // it reads
  kSame,       // the same again: a put, a removal
  kOnce,       // it is refused: a put of what must not be there
  kCompletes   // it finds nothing left to do: the end of an upload
};

struct S3RetryPolicy {
  int tries_max = 8;
  int damaged_max = 3;
  Duration pause_first = std::chrono::milliseconds(100);
  Duration pause_max = std::chrono::seconds(5);
};

// How one try ended.
struct S3Try {
  HttpEnd end = HttpEnd::kAnswered;
  int status = 0;
  std::string code = {};           // of S3's error: "SlowDown"; empty: it said none
  std::string words = {};          // a clause for people
  bool is_damaged = false;         // it was answered well, but what came is not whole
  std::optional<Duration> retry_after = {};
  bool clock_differs = false;      // the server's clock is minutes away from the one that signed
  bool names_region = false;       // the store says that the bucket is in another region
};

// What went before, this try included.
struct S3Progress {
  S3Effect effect = S3Effect::kNone;
  int tries = 1;
  int damaged = 0;                 // tries whose bytes did not arrive as they were
  bool is_unsure = false;          // some earlier try may have had its effect
  bool has_renewed = false;        // other credentials were fetched
  bool can_renew = false;
  bool has_set_clock = false;
  bool has_moved = false;
  Duration left{0};                // until the deadline
  double jitter = 1;               // 0 to 1, at random
};

struct S3Verdict {
  enum class Kind { kDone, kAgain, kSettle, kGiveUp } kind = Kind::kDone;
  // Before it is sent again:
  bool renew = false;              // fetch other credentials
  bool set_clock = false;          // sign with the server's clock
  bool move = false;               // ask in the region that the store named
  Duration pause{0};
  bool is_damage = false;
  bool may_have_happened = false;  // this try may have had its effect
  Code code = Code::kIo;           // of the error, if it is given up
  std::string reason;              // "503 SlowDown: ..."
  bool keys_have_ended = false;    // with `renew`: the store says so; else it is only likely
};

S3Verdict DecideAfterTry(const S3Try& one, const S3Progress& progress, const S3RetryPolicy& policy);

}  // namespace keel
