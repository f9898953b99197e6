// S3Client: sends a request to the store, signed, until it is answered or given up.
// Promises   what store/s3/retry.h decides, with pauses that a cancel ends. Keys are renewed, the
//            server's clock and the bucket's region learned, as its answers ask for it. Bodies get
//            a CRC32C, or a Content-MD5 from a store that refuses those.
// Does not   know what the requests are for (store/s3/s3_objects.h).
// Threads    any.
// Errors     those of base/objects.h. A message says what was done to what, what the store said,
//            and what to do.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "base/random.h"
#include "store/s3/address.h"
#include "store/s3/credentials.h"
#include "store/s3/retry.h"
#include "store/s3/transport.h"

namespace keel {

struct S3Options {
  // For one request with its tries, and for one try; more for a body, at kSlowBytesPerSecond.
  Duration limit = std::chrono::seconds(60);
  Duration try_limit = std::chrono::seconds(20);
  // For the first try of Replace() and of a page of List(), by which the holder of a lease beats. A
  // kept connection may be gone without a word, and the holder counts as gone soon (15 s in
  // trainer/save/bucket_hold.h).
  Duration beat_first_limit = std::chrono::seconds(4);
  // A store may put the parts of an object together for minutes before it answers.
  Duration complete_limit = std::chrono::minutes(5);
  // For what is left of an upload that is given up: a program that is told to leave waits for it.
  Duration discard_limit = std::chrono::seconds(2);
  S3RetryPolicy retry = {};
  uint64_t part_bytes_min = uint64_t{8} << 20;
  int parts_in_flight = 4;         // of one upload
  int page_keys = 1000;            // of one answer of a listing
  bool tries_sums = true;          // finds out which the store compares (store/s3/sums.h)
  // PutIfAbsent() does not rely on the store, but looks before and after it writes.
  bool is_unguarded = false;
};

inline constexpr uint64_t kSlowBytesPerSecond = uint64_t{64} << 10;

enum class S3Sum { kCrc, kMd5 };

struct S3Call {
  std::string doing;               // "reading s3://bucket/key"
  S3Effect effect = S3Effect::kNone;
  std::string method = "GET";
  std::string key = {};
  HttpPairs query = {};
  HttpPairs headers = {};
  std::span<const std::byte> body = {};
  bool has_checksum = false;       // of its body
  // Its checksum is of that kind, and wrong, so that the store should refuse it.
  std::optional<S3Sum> wrong_sum = {};
  bool begins_checksums = false;   // it announces those of an upload's parts
  HttpTake take = nullptr;
  uint64_t answer_bytes = 0;       // about how long the answer is
  bool may_hide_error = false;     // an answer of 2xx may have an error for a body
  // Why an answer of 2xx is not whole; empty: it is.
  std::function<std::string(const HttpAnswer&)> flaw = nullptr;
  Duration limit = Duration::zero();        // zero: the client's
  Duration first_limit = Duration::zero();  // of the first try; zero: as of the others
  int tries_max = 0;                   // zero: the policy's
  CancelToken cancel = CancelToken::Never();
};

struct S3Ending {
  S3Verdict::Kind kind = S3Verdict::Kind::kDone;   // never kAgain
  HttpAnswer answer = {};          // the last one
  std::string code = {};           // of S3's error
  bool may_have_happened = false;  // though it is given up
  bool is_damage = false;          // the bytes of the last try did not arrive as they were
  Error error = {};                // unless it is done
  std::string crc = {};            // of the body, where it is done and the store was sent that

  bool done() const { return kind == S3Verdict::Kind::kDone; }
};

class S3Client {
 public:
  // `environment` and `profile` by value; `files` and `clock` must outlive it.
  S3Client(S3Address address, const Environment& environment, const AwsProfile& profile,
           Files& files, Clock& clock, const S3Options& options);

  const S3Options& options() const { return options_; }
  S3Ending Send(const S3Call& call);
  // Whether bodies have a CRC32C at present.
  bool has_crc() const { return has_crc_; }
  // Content-MD5 instead, from now on.
  void SendMd5() { has_crc_ = false; }
  const S3Dialect& dialect() const { return dialect_; }
  std::string NewId();
  // The server's clock, as its last answer told it; ours before the first.
  int64_t StoreNanos() const { return clock_.WallNanos() + seen_offset_ns_; }
  // Has calls whose tokens were raised end now.
  void Wake();

 private:
  struct Sending;
  TransportRequest RequestOf(const S3Call& call, const S3Credentials& keys,
                             const std::string& checksum, bool with_crc);
  void SetLimits(const Sending& sending, TransportRequest& request) const;
  S3Try TryOf(const S3Call& call, const HttpOutcome& outcome);
  S3Verdict Decide(const S3Try& one, Sending& sending);
  void Cure(const S3Verdict& verdict, const HttpAnswer& answer, const S3Credentials& keys,
            Sending& sending);
  void Pause(Duration pause, const CancelToken& cancel);
  S3Ending EndingOf(const S3Call& call, const S3Try& one, const S3Verdict& verdict,
                    const Sending& sending);
  Duration LimitOf(const S3Call& call) const;
  double Jitter();

  const Environment environment_;
  const AwsProfile profile_;
  const S3Options options_;
  const S3Dialect& dialect_;
  Clock& clock_;
  HttpTransport transport_;
  S3KeyRing keys_;
  std::atomic<bool> has_crc_{true};
  std::atomic<int64_t> clock_offset_ns_{0};   // the server's clock less ours, for signing
  std::atomic<int64_t> seen_offset_ns_{0};    // likewise, of the last answer
  std::mutex mutex_;
  std::condition_variable woken_;
  S3Address address_;                         // guarded by mutex_
  Random random_;                             // guarded by mutex_
};

}  // namespace keel
