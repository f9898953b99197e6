// The loop around one request; what follows each try is decided in retry.cc.
#include "store/s3/client.h"

#include <algorithm>
#include <utility>

#include "base/file_helpers.h"
#include "base/log.h"
#include "base/text.h"
#include "store/s3/answers.h"
#include "store/s3/crc32c.h"
#include "store/s3/hashes.h"
#include "store/s3/times.h"

namespace keel {
namespace {

constexpr size_t kIdDigits = 16;
// Bodies up to here are hashed for the signature, which some stores compare.
constexpr size_t kHashedBytesMax = size_t{1} << 20;
// From here on a transfer that stands nearly still is broken off, for another connection.
constexpr uint64_t kLargeBytes = uint64_t{1} << 20;
constexpr int64_t kSkewNs = 240'000'000'000;
constexpr size_t kWordsBytesMax = 300;

Duration TimeFor(uint64_t bytes) { return std::chrono::seconds(bytes / kSlowBytesPerSecond); }

std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A store that knows no x-amz-checksum-* says so in one of these ways.
bool MayRefuseChecksum(const S3Try& one) {
  return one.end == HttpEnd::kAnswered &&
         (one.status == 501 || one.code == "NotImplemented" || one.code == "InvalidArgument" ||
          one.code == "InvalidRequest" || one.code == "UnsupportedHeader");
}

std::string Advice(const S3Try& one, const S3Verdict& verdict, const S3Dialect& dialect) {
  if (one.code == "NoSuchBucket") return "; make the bucket, or correct its name";
  if (one.code == "InvalidAccessKeyId" || one.code == "SignatureDoesNotMatch" ||
      one.code == "ExpiredToken" || one.code == "InvalidToken" || one.status == 401) {
    return "; check " + std::string(dialect.keys);
  }
  if (one.status == 403) return "; check that these credentials may do this in this bucket";
  if (one.end == HttpEnd::kNotSent) {
    return "; check that the store runs, and " + std::string(dialect.endpoint);
  }
  if (one.end == HttpEnd::kHopeless) return "; check AWS_ENDPOINT_URL_S3 and AWS_CA_BUNDLE";
  if (verdict.code == Code::kTimeout) return "; the store is slow or overloaded: try again later";
  if (verdict.code == Code::kNoSpace) return "; raise the quota, or remove old checkpoints";
  return "";
}

}  // namespace

// What is known of a call between its tries.
struct S3Client::Sending {
  const S3Call& call;
  TimePoint began;
  TimePoint end;
  S3Progress progress;
  std::string crc = {};
  std::string md5 = {};
  bool without_crc = false;
};

S3Client::S3Client(S3Address address, const Environment& environment, const AwsProfile& profile,
                   Files& files, Clock& clock, const S3Options& options)
    : environment_(environment),
      profile_(profile),
      options_(options),
      dialect_(*address.dialect),
      clock_(clock),
      transport_(VariableOf(environment, "AWS_CA_BUNDLE").empty()
                     ? profile.Get("ca_bundle")
                     : VariableOf(environment, "AWS_CA_BUNDLE")),
      keys_(dialect_, environment_, profile_, files, clock, transport_),
      address_(std::move(address)),
      random_(EntropySeed()) {}

std::string S3Client::NewId() {
  const std::lock_guard lock(mutex_);
  return RandomId(random_, kIdDigits);
}

double S3Client::Jitter() {
  const std::lock_guard lock(mutex_);
  return random_.Double();
}

void S3Client::Wake() {
  {
    // A waiter that has looked at its token already is asleep before this lock is had.
    const std::lock_guard lock(mutex_);
  }
  woken_.notify_all();
  keys_.Wake();
  transport_.Wake();
}

void S3Client::Pause(Duration pause, const CancelToken& cancel) {
  std::unique_lock lock(mutex_);
  woken_.wait_for(lock, pause, [&] { return cancel.cancelled(); });
}

Duration S3Client::LimitOf(const S3Call& call) const {
  const Duration own = call.limit == Duration::zero() ? options_.limit : call.limit;
  return own + TimeFor(call.body.size() + call.answer_bytes);
}

TransportRequest S3Client::RequestOf(const S3Call& call, const S3Credentials& keys,
                                     const std::string& checksum, bool with_crc) {
  S3Address address;
  {
    const std::lock_guard lock(mutex_);
    address = address_;
  }
  const SigningScope scope{address.region, std::string(dialect_.service),
                           clock_.WallNanos() + clock_offset_ns_, &dialect_};
  const auto own = [&](const char* name) { return std::string(dialect_.headers) + name; };
  RequestToSign sign{call.method, address.PathOf(call.key), call.query, call.headers, ""};
  sign.payload = call.body.size() <= kHashedBytesMax ? HexText(Sha256Of(TextOf(call.body)))
                                                     : std::string(kUnsignedPayload);
  sign.headers.emplace_back("Host", address.host());
  sign.headers.emplace_back(own("content-sha256"), sign.payload);
  sign.headers.emplace_back(own("date"), AmzDateText(scope.wall_ns));
  if (!keys.token.empty() && !keys.is_bearer) {
    sign.headers.emplace_back(own("security-token"), keys.token);
  }
  if (call.begins_checksums && with_crc && dialect_.announces_sums) {
    sign.headers.emplace_back(own("checksum-algorithm"), "CRC32C");
  } else if (!checksum.empty()) {
    const auto& [name, before] = dialect_.crc;
    sign.headers.emplace_back(with_crc ? std::string(name) : "Content-MD5",
                              (with_crc ? std::string(before) : "") + checksum);
  }
  const std::string query = CanonicalQuery(call.query);
  TransportRequest request;
  request.method = call.method;
  request.url = address.scheme() + "://" + address.host() + sign.path +
                (query.empty() ? "" : "?" + query);
  request.headers = sign.headers;
  request.headers.emplace_back("Authorization", keys.is_bearer
                                                    ? "Bearer " + keys.token
                                                    : Authorization(sign, keys, scope));
  if (call.method == "PUT" || call.method == "POST") {
    request.headers.emplace_back("Content-Type", "application/octet-stream");
  }
  request.body = call.body;
  request.take = call.take;
  request.cancel = call.cancel;
  // A try that finds no upload must know whether there was one before it.
  request.on_new_connection = call.effect == S3Effect::kCompletes;
  return request;
}

void S3Client::SetLimits(const Sending& sending, TransportRequest& request) const {
  const S3Call& call = sending.call;
  const Duration left = sending.end - clock_.Monotonic();
  const uint64_t bytes = call.body.size() + call.answer_bytes;
  const bool is_short = sending.progress.tries == 1 && call.first_limit > Duration::zero();
  const Duration one = is_short ? call.first_limit : std::max(options_.try_limit, call.limit);
  request.limit = std::min(left, one + TimeFor(bytes));
  // A store may need minutes to make one object of many parts, and says little meanwhile.
  const bool is_work = call.effect == S3Effect::kCompletes;
  if (bytes >= kLargeBytes && !is_work) request.slow_bytes_s = kSlowBytesPerSecond;
}

S3Try S3Client::TryOf(const S3Call& call, const HttpOutcome& outcome) {
  S3Try one;
  one.end = outcome.end;
  one.words = outcome.words;
  if (outcome.end != HttpEnd::kAnswered) return one;
  const HttpAnswer& answer = outcome.answer;
  one.status = answer.status;
  const bool is_good = answer.status / 100 == 2;
  if (!is_good || call.may_hide_error) {
    const S3ErrorBody error = ParseS3Error(answer.body);
    one.code = error.code;
    one.words = Printable(Beginning(error.message, kWordsBytesMax));
  }
  if (is_good && one.code.empty() && call.flaw != nullptr) {
    one.words = call.flaw(answer);
    one.is_damaged = !one.words.empty();
  }
  if (const auto seconds = ParseInteger(answer.Header("retry-after")); seconds.ok()) {
    one.retry_after = std::chrono::seconds(std::clamp<int64_t>(*seconds, 0, 3600));
  }
  if (const auto theirs = ParseHttpDate(answer.Header("date"))) {
    seen_offset_ns_ = *theirs - clock_.WallNanos();
    const int64_t ours = clock_.WallNanos() + clock_offset_ns_;
    one.clock_differs = std::abs(*theirs - ours) > kSkewNs;
  }
  const std::string region = answer.Header("x-amz-bucket-region");
  const std::lock_guard lock(mutex_);
  one.names_region = !region.empty() && region != address_.region;
  return one;
}

S3Verdict S3Client::Decide(const S3Try& one, Sending& sending) {
  S3Progress& progress = sending.progress;
  progress.left = sending.end - clock_.Monotonic();
  progress.jitter = Jitter();
  progress.can_renew = keys_.can_renew();
  S3RetryPolicy policy = options_.retry;
  if (sending.call.tries_max != 0) policy.tries_max = sending.call.tries_max;
  S3Verdict verdict = DecideAfterTry(one, progress, policy);
  progress.damaged += verdict.is_damage ? 1 : 0;
  progress.is_unsure = progress.is_unsure || verdict.may_have_happened;
  return verdict;
}

void S3Client::Cure(const S3Verdict& verdict, const HttpAnswer& answer, const S3Credentials& keys,
                    Sending& sending) {
  S3Progress& progress = sending.progress;
  if (verdict.renew) {
    keys_.Renew(keys, verdict.keys_have_ended);
    progress.has_renewed = true;
  }
  if (verdict.set_clock) {
    progress.has_set_clock = true;
    const auto theirs = ParseHttpDate(answer.Header("date"));
    if (theirs) clock_offset_ns_ = *theirs - clock_.WallNanos();
    LogWarn("s3-clock-differs", {{"offset", DurationText(Duration(std::abs(clock_offset_ns_)))},
                                 {"advice", "set this machine's clock; until then requests are "
                                            "signed with the store's"}});
  }
  if (verdict.move) {
    progress.has_moved = true;
    const std::lock_guard lock(mutex_);
    address_.region = answer.Header("x-amz-bucket-region");
  }
  progress.tries += 1;
}

S3Ending S3Client::EndingOf(const S3Call& call, const S3Try& one, const S3Verdict& verdict,
                            const Sending& sending) {
  S3Ending ending;
  ending.kind = verdict.kind;
  ending.code = one.code;
  ending.may_have_happened = sending.progress.is_unsure;
  ending.is_damage = verdict.is_damage;
  if (ending.done()) return ending;
  std::string words = call.doing + ": " + verdict.reason;
  if (sending.progress.tries > 1) {
    words += " (the last of " + std::to_string(sending.progress.tries) + " tries in " +
             DurationText(clock_.Monotonic() - sending.began) + ")";
  }
  ending.error = {verdict.code, words + Advice(one, verdict, dialect_)};
  return ending;
}

S3Ending S3Client::Send(const S3Call& call) {
  const TimePoint began = clock_.Monotonic();
  Sending sending{call, began, began + LimitOf(call), {}};
  sending.progress.effect = call.effect;
  for (;;) {
    const Result<S3Credentials> keys = keys_.Get(call.cancel);
    if (!keys.ok()) {
      S3Ending ending{S3Verdict::Kind::kGiveUp};
      ending.may_have_happened = sending.progress.is_unsure;
      ending.error = keys.error().Doing(call.doing);
      return ending;
    }
    const bool with_crc =
        call.wrong_sum ? *call.wrong_sum == S3Sum::kCrc
                       : (call.has_checksum || call.begins_checksums) && has_crc_ &&
                             !sending.without_crc;
    std::string& checksum = with_crc ? sending.crc : sending.md5;
    if (call.has_checksum && checksum.empty()) {
      const auto summed = call.wrong_sum ? BytesOf("other bytes") : call.body;
      checksum = with_crc ? Crc32cBase64(summed) : Md5Base64(summed);
    }
    TransportRequest request = RequestOf(call, *keys, checksum, with_crc);
    SetLimits(sending, request);
    HttpOutcome outcome = transport_.Ask(request);
    const S3Try one = TryOf(call, outcome);
    if (with_crc && !call.wrong_sum && MayRefuseChecksum(one)) {
      sending.without_crc = true;
      continue;
    }
    const S3Verdict verdict = Decide(one, sending);
    if (verdict.kind != S3Verdict::Kind::kAgain) {
      if (sending.without_crc && verdict.kind == S3Verdict::Kind::kDone) has_crc_ = false;
      S3Ending ending = EndingOf(call, one, verdict, sending);
      if (ending.done() && with_crc) ending.crc = sending.crc;
      ending.answer = std::move(outcome.answer);
      return ending;
    }
    LogDebug("s3-again", {{"doing", call.doing}, {"reason", verdict.reason},
                          {"pause", DurationText(verdict.pause)}});
    Cure(verdict, outcome.answer, *keys, sending);
    Pause(verdict.pause, call.cancel);
  }
}

}  // namespace keel
