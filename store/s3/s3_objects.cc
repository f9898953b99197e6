// Each method as one call of the client, and how its answer is read.
#include "store/s3/s3_objects.h"

#include <algorithm>
#include <utility>

#include "base/hmac.h"
#include "base/file_helpers.h"
#include "base/text.h"
#include "store/s3/answers.h"
#include "store/s3/hashes.h"
#include "store/s3/range_sink.h"
#include "store/s3/times.h"
#include "store/s3/upload.h"

namespace keel {
namespace {

using Kind = S3Verdict::Kind;

constexpr size_t kRemovedAtOnce = 1000;
constexpr size_t kKeyBytesMax = 1024;
constexpr int kSettlings = 3;

Status CheckKey(const std::string& name, const std::string& key) {
  if (!key.empty() && key.size() <= kKeyBytesMax) return Ok();
  return Error{Code::kInvalid, name + ": the key " + Shown(key) + " has " +
                                   std::to_string(key.size()) + " bytes; S3 takes 1 to " +
                                   std::to_string(kKeyBytesMax)};
}

// What `parse` finds wrong with an answer's body.
template <class F>
auto FlawOf(F parse) {
  return [parse](const HttpAnswer& answer) {
    const auto parsed = parse(answer.body);
    return parsed.ok() ? "" : parsed.error().message;
  };
}

// One answer of a list.
template <class F>
auto PageOf(S3Client& client, S3Call& call, F parse) -> decltype(parse("")) {
  call.flaw = FlawOf(parse);
  const S3Ending ending = client.Send(call);
  if (!ending.done()) return ending.error;
  return parse(ending.answer.body);
}

Error DoesNotGoOn(const S3Call& call) {
  return {Code::kCorrupt,
          call.doing + ": the store's list does not go on from one answer to the next"};
}

}  // namespace

Result<std::unique_ptr<S3Objects>> S3Objects::Open(const std::string& bucket,
                                                   const Environment& environment, Files& files,
                                                   const S3Options& options,
                                                   const S3Dialect& dialect) {
  KEEL_TRY(HmacReady());
  KEEL_TRY(ParseBucketUrl(std::string(dialect.scheme) + bucket));
  AwsProfile profile;
  S3Address address;
  if (&dialect == &kGoogleDialect) {
    KEEL_TRY_ASSIGN(address, GoogleAddressOf(bucket, environment));
  } else {
    KEEL_TRY_ASSIGN(profile, ReadAwsProfile(environment, files));
    KEEL_TRY_ASSIGN(address, AddressOf(bucket, environment, profile));
  }
  return std::unique_ptr<S3Objects>(
      new S3Objects(address, environment, profile, files, options));
}

S3Objects::S3Objects(const S3Address& address, const Environment& environment,
                     const AwsProfile& profile, Files& files, const S3Options& options)
    : name_(address.url()),
      asked_region_(address.region),
      client_(address, environment, profile, files, RealClock(), options) {}

Result<ObjectListing> S3Objects::List(const std::string& prefix, Depth depth) {
  ObjectListing all;
  std::string next;
  do {
    S3Call call{.doing = "listing " + NameOf(prefix)};
    call.first_limit = client_.options().beat_first_limit;
    call.query = {{"list-type", "2"}, {"prefix", prefix}, {"encoding-type", "url"},
                  {"max-keys", std::to_string(client_.options().page_keys)}};
    if (depth == Depth::kToSlash) call.query.emplace_back("delimiter", "/");
    if (!next.empty()) call.query.emplace_back("continuation-token", next);
    KEEL_TRY_ASSIGN(S3ListPage page, PageOf(client_, call, ParseListPage));
    has_bucket_ = true;
    std::move(page.listing.objects.begin(), page.listing.objects.end(),
              std::back_inserter(all.objects));
    std::move(page.listing.prefixes.begin(), page.listing.prefixes.end(),
              std::back_inserter(all.prefixes));
    if (!page.next.empty() && page.next == next) {
      return DoesNotGoOn(call);
    }
    next = page.next;
  } while (!next.empty());
  const auto by_key = [](const ObjectInfo& a, const ObjectInfo& b) { return a.key < b.key; };
  std::sort(all.objects.begin(), all.objects.end(), by_key);
  std::sort(all.prefixes.begin(), all.prefixes.end());
  // A prefix whose objects are spread over two pages may come with both.
  all.prefixes.erase(std::unique(all.prefixes.begin(), all.prefixes.end()), all.prefixes.end());
  return all;
}

Result<ObjectInfo> S3Objects::Look(const std::string& key) {
  KEEL_TRY(CheckKey(name_, key));
  S3Call call{.doing = "looking at " + NameOf(key), .method = "HEAD", .key = key};
  const S3Ending ending = client_.Send(call);
  if (!ending.done()) {
    if (ending.error.code != Code::kNotFound || has_bucket_) return ending.error;
    // The answer to HEAD has no body that says whether the object or the bucket is missing.
    std::byte none;
    const Result<size_t> read = Get(key, 0, {&none, 1});
    return read.ok() ? ending.error : read.error();
  }
  has_bucket_ = true;
  const Result<int64_t> bytes = ParseInteger(ending.answer.Header("content-length"));
  if (!bytes.ok() || *bytes < 0) {
    return Error{Code::kCorrupt, call.doing + ": the store does not say how long it is"};
  }
  return ObjectInfo{key, static_cast<uint64_t>(*bytes),
                    ParseHttpDate(ending.answer.Header("last-modified")).value_or(0)};
}

Result<size_t> S3Objects::Get(const std::string& key, uint64_t offset, std::span<std::byte> into) {
  KEEL_TRY(CheckKey(name_, key));
  if (into.empty()) {
    KEEL_TRY(Look(key));
    return size_t{0};
  }
  RangeSink sink(offset, into);
  S3Call call{.doing = "reading " + NameOf(key), .key = key};
  call.headers = {{"Range", "bytes=" + std::to_string(offset) + "-" +
                                std::to_string(offset + into.size() - 1)}};
  call.answer_bytes = into.size();
  call.take = [&sink](const HttpAnswer& answer, std::span<const std::byte> piece) {
    return sink.Take(answer, piece);
  };
  call.flaw = [&sink](const HttpAnswer& answer) { return sink.Flaw(answer); };
  const S3Ending ending = client_.Send(call);
  if (ending.done()) has_bucket_ = true;
  if (ending.done()) return ending.answer.bytes == 0 ? 0 : sink.filled();
  if (ending.answer.status == 416) return size_t{0};   // it ends before `offset`
  return ending.error;
}

Status PutWhole(S3Client& client, const std::string& name, const std::string& key,
                std::span<const std::byte> bytes, const CancelToken& cancel, Duration first_limit) {
  S3Call call{.doing = "writing " + name, .effect = S3Effect::kSame, .method = "PUT", .key = key};
  call.first_limit = first_limit;
  call.body = bytes;
  call.has_checksum = true;
  call.cancel = cancel;
  const S3Ending ending = client.Send(call);
  return ending.done() ? Ok() : Status(ending.error);
}

Status S3Objects::Replace(const std::string& key, std::string_view bytes) {
  KEEL_TRY(CheckKey(name_, key));
  return PutWhole(client_, NameOf(key), key, BytesOf(bytes), CancelToken::Never(),
                  client_.options().beat_first_limit);
}

// Whether the object is there with just these bytes; kNotFound: it is not there.
Result<bool> S3Objects::HoldsThese(const std::string& key, std::string_view bytes) {
  std::string held(bytes.size() + 1, '\0');
  KEEL_TRY_ASSIGN(const size_t count,
                  Get(key, 0, std::as_writable_bytes(std::span(held.data(), held.size()))));
  return std::string_view(held).substr(0, count) == bytes;
}

Status S3Objects::PutIfAbsent(const std::string& key, std::string_view bytes) {
  KEEL_TRY(CheckKey(name_, key));
  if (!client_.options().is_unguarded) return PutGuarded(key, bytes);
  const std::string doing = "making " + NameOf(key);
  const Error in_the_way{Code::kExists, doing + ": it is there already, with other bytes"};
  const Result<bool> holds = HoldsThese(key, bytes);
  if (holds.ok()) return *holds ? Ok() : Status(in_the_way);
  if (holds.error().code != Code::kNotFound) return holds.error().Doing(doing);
  KEEL_TRY(PutGuarded(key, bytes));
  KEEL_TRY_ASSIGN(const bool is_ours, HoldsThese(key, bytes));
  return is_ours ? Ok() : Status(in_the_way);
}

Status S3Objects::PutGuarded(const std::string& key, std::string_view bytes) {
  S3Call call{.doing = "making " + NameOf(key), .effect = S3Effect::kOnce, .method = "PUT",
              .key = key};
  const auto& [condition, value] = client_.dialect().if_absent;
  call.headers = {{std::string(condition), std::string(value)}};
  call.body = BytesOf(bytes);
  call.has_checksum = true;
  for (int settlings = 0;; ++settlings) {
    const S3Ending ending = client_.Send(call);
    if (ending.done()) return Ok();
    if (ending.kind != Kind::kSettle) return ending.error;
    // It is there, perhaps from a try whose answer was lost: the bytes tell whose it is.
    const Result<bool> holds = HoldsThese(key, bytes);
    if (holds.ok() && *holds) return Ok();
    if (holds.ok()) {
      return Error{Code::kExists, call.doing + ": it is there already, with other bytes"};
    }
    const bool is_refused = ending.answer.status == 412;
    if (holds.error().code != Code::kNotFound || settlings == kSettlings) {
      return is_refused ? holds.error().Doing("comparing what is there") : ending.error;
    }
    // It was removed after it was in the way, or was never made.
    if (!is_refused) return ending.error;
  }
}

Status S3Objects::Remove(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) KEEL_TRY(CheckKey(name_, key));
  if (!client_.dialect().removes_many) {
    for (const std::string& key : keys) KEEL_TRY(RemoveOne(key));
    return Ok();
  }
  for (size_t at = 0; at < keys.size(); at += kRemovedAtOnce) {
    const auto first = keys.begin() + static_cast<std::ptrdiff_t>(at);
    const auto count = std::min(kRemovedAtOnce, keys.size() - at);
    KEEL_TRY(RemoveSome({first, first + static_cast<std::ptrdiff_t>(count)}));
  }
  return Ok();
}

Status S3Objects::RemoveOne(const std::string& key) {
  const S3Ending ending = client_.Send({.doing = "removing " + NameOf(key),
                                        .effect = S3Effect::kSame, .method = "DELETE",
                                        .key = key});
  if (ending.done() || ending.code == "NoSuchKey") return Ok();
  return ending.error;
}

Status S3Objects::RemoveSome(const std::vector<std::string>& keys) {
  const std::string body = DeleteBody(keys);
  S3Call call{.doing = "removing " + NameOf(keys[0]), .effect = S3Effect::kSame, .method = "POST"};
  if (keys.size() > 1) call.doing += " and " + std::to_string(keys.size() - 1) + " more";
  call.query = {{"delete", ""}};
  call.body = BytesOf(body);
  // A store refuses this request without one of them.
  const std::string md5 = Md5Base64(call.body);
  if (!md5.empty()) call.headers = {{"Content-MD5", md5}};
  call.has_checksum = md5.empty();
  call.may_hide_error = true;
  call.flaw = FlawOf(ParseDeleteFailures);
  const S3Ending ending = client_.Send(call);
  if (!ending.done()) return ending.error;
  KEEL_TRY_ASSIGN(const auto failures, ParseDeleteFailures(ending.answer.body));
  if (failures.empty()) return Ok();
  const S3DeleteFailure& one = failures[0];
  const bool is_right = one.code == "AccessDenied";
  return Error{is_right ? Code::kInvalid : Code::kIo,
               "removing " + NameOf(one.key) + ": " + one.code + ": " +
                   Printable(Beginning(one.message, 300)) + " (" +
                   CountText(failures.size(), "object") + " of " + std::to_string(keys.size()) +
                   " stayed)" +
                   (is_right ? "; check that these credentials may delete" : "; try again")};
}

Result<std::vector<UnfinishedObject>> S3Objects::Unfinished(const std::string& prefix) {
  std::vector<UnfinishedObject> all;
  S3UploadsPage page;
  do {
    S3Call call{.doing = "listing unfinished uploads to " + NameOf(prefix)};
    call.query = {{"uploads", ""}, {"prefix", prefix}, {"encoding-type", "url"},
                  {"max-uploads", std::to_string(client_.options().page_keys)}};
    if (!page.next_key.empty()) call.query.emplace_back("key-marker", page.next_key);
    if (!page.next_id.empty()) call.query.emplace_back("upload-id-marker", page.next_id);
    KEEL_TRY_ASSIGN(S3UploadsPage next, PageOf(client_, call, ParseUploadsPage));
    const bool goes_on = !next.next_key.empty() || !next.next_id.empty();
    if (goes_on && next.next_key == page.next_key && next.next_id == page.next_id) {
      return DoesNotGoOn(call);
    }
    page = std::move(next);
    for (UnfinishedObject& one : page.uploads) {
      // Some stores take the prefix for a folder.
      if (one.key.starts_with(prefix)) all.push_back(std::move(one));
    }
  } while (!page.next_key.empty() || !page.next_id.empty());
  return all;
}

// Parts are numbered, but sent several at a time: any page may have the newest.
Result<int64_t> S3Objects::LastWritten(const UnfinishedObject& unfinished) {
  KEEL_TRY(CheckKey(name_, unfinished.key));
  int64_t newest_ns = unfinished.began_at_ns;
  std::string next;
  do {
    S3Call call{.doing = "listing the parts of an upload of " + NameOf(unfinished.key),
                .key = unfinished.key};
    call.query = {{"uploadId", unfinished.id},
                  {"max-parts", std::to_string(client_.options().page_keys)}};
    if (!next.empty()) call.query.emplace_back("part-number-marker", next);
    KEEL_TRY_ASSIGN(const S3PartsPage page, PageOf(client_, call, ParsePartsPage));
    newest_ns = std::max(newest_ns, page.newest_at_ns);
    if (!page.next.empty() && page.next == next) {
      return DoesNotGoOn(call);
    }
    next = page.next;
  } while (!next.empty());
  return newest_ns;
}

Status S3Objects::Discard(const UnfinishedObject& unfinished) {
  KEEL_TRY(CheckKey(name_, unfinished.key));
  return DiscardUpload(client_, NameOf(unfinished.key), unfinished.key, unfinished.id, {});
}

S3Ending S3Objects::AskRules(const std::string& what, const char* name) {
  S3Call call{.doing = "asking for the " + what + " of " + name_};
  call.query = {{name, ""}};
  return client_.Send(call);
}

// Who may save in a bucket may often not ask for these, and some stores do not know them.
Result<BucketRules> S3Objects::Rules() {
  BucketRules rules;
  const S3Ending there = client_.Send({.doing = "looking at " + name_, .method = "HEAD"});
  if (!there.done()) return there.error;
  const std::string region = there.answer.Header("x-amz-bucket-region");
  if (!region.empty() && region != asked_region_) rules.other_region = region;
  const S3Ending lifecycle = AskRules("lifecycle", "lifecycle");
  if (lifecycle.done()) {
    KEEL_TRY_ASSIGN(rules.ends_unfinished, EndsUnfinished(lifecycle.answer.body));
  } else if (lifecycle.code == "NoSuchLifecycleConfiguration") {
    rules.ends_unfinished = false;
  }
  const S3Ending versioning = AskRules("versioning", "versioning");
  if (versioning.done()) {
    KEEL_TRY_ASSIGN(rules.keeps_versions, KeepsVersions(versioning.answer.body));
  }
  return rules;
}

Result<std::unique_ptr<ObjectUpload>> S3Objects::Upload(const std::string& key,
                                                        uint64_t bytes_max) {
  KEEL_TRY(CheckKey(name_, key));
  KEEL_TRY_ASSIGN(const uint64_t part_bytes,
                  PartBytesFor(bytes_max, client_.options().part_bytes_min));
  return std::unique_ptr<ObjectUpload>(
      std::make_unique<S3Upload>(client_, sums_, NameOf(key), key, bytes_max, part_bytes));
}

}  // namespace keel
