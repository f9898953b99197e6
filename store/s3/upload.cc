// The caller fills one part while threads send those before it.
#include "store/s3/upload.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/file_helpers.h"
#include "base/log.h"
#include "base/text.h"
#include "store/s3/own_thread.h"
#include "store/s3/s3_objects.h"

namespace keel {
namespace {

using Kind = S3Verdict::Kind;

constexpr uint64_t kMiB = uint64_t{1} << 20;
// Fewer than the 10,000 that S3 takes.
constexpr uint64_t kPartsMax = 9500;
constexpr uint64_t kPartBytesMax = uint64_t{5} << 30;

// What tells this upload's object from another's.
std::string MarkHeader(const S3Client& client) {
  return std::string(client.dialect().headers) + "meta-keel-upload";
}

}  // namespace

Result<uint64_t> PartBytesFor(uint64_t bytes_max, uint64_t part_bytes_min) {
  const uint64_t least = bytes_max / kPartsMax + (bytes_max % kPartsMax == 0 ? 0 : 1);
  if (least <= part_bytes_min) return part_bytes_min;
  const uint64_t part = (least + kMiB - 1) / kMiB * kMiB;
  if (part <= kPartBytesMax) return part;
  return Error{Code::kInvalid, "an object of up to " + BytesText(bytes_max) +
                                   " is larger than S3 takes; save in more shards"};
}

Status DiscardUpload(S3Client& client, const std::string& name, const std::string& key,
                     const std::string& id, const DiscardLimits& limits) {
  S3Call call{.doing = "discarding an unfinished upload of " + name, .effect = S3Effect::kSame,
              .method = "DELETE", .key = key};
  call.query = {{"uploadId", id}};
  call.limit = limits.limit;
  call.tries_max = limits.tries_max;
  const S3Ending ending = client.Send(call);
  if (ending.done() || ending.error.code == Code::kNotFound) return Ok();
  return ending.error;
}

S3Upload::S3Upload(S3Client& client, SumChoice& sums, std::string name, std::string key,
                   uint64_t bytes_max, uint64_t part_bytes)
    : client_(client),
      sums_(sums),
      name_(std::move(name)),
      key_(std::move(key)),
      bytes_max_(bytes_max),
      part_bytes_(part_bytes),
      mark_(client.NewId()) {}

S3Upload::~S3Upload() {
  Cancel();
  StopThreads();
  if (id_.empty() || is_finished_) return;
  const DiscardLimits limits{client_.options().discard_limit, 1};
  const Status discarded = DiscardUpload(client_, name_, key_, id_, limits);
  if (!discarded.ok()) {
    LogWarn("s3-upload-not-discarded", {{"object", name_}, {"upload", id_},
                                        {"reason", discarded.error().message}});
  }
}

// What waits for room or for parts sees the failure; what waits for the store sees the token.
void S3Upload::Cancel() {
  cancel_.Cancel();
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = Error{Code::kCancelled, "writing " + name_ + " was cancelled"};
  }
  changed_.notify_all();
  client_.Wake();
}

std::optional<Error> S3Upload::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

// Waits until a part of those before has been sent, if there are as many as may be.
std::unique_ptr<std::byte[]> S3Upload::TakeBuffer() {
  const auto most = static_cast<size_t>(client_.options().parts_in_flight);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return failure_ || waiting_.size() + static_cast<size_t>(in_flight_) <= most;
  });
  if (!buffers_.empty()) {
    std::unique_ptr<std::byte[]> buffer = std::move(buffers_.back());
    buffers_.pop_back();
    return buffer;
  }
  lock.unlock();
  return std::make_unique_for_overwrite<std::byte[]>(std::min(part_bytes_, bytes_max_));
}

Status S3Upload::Append(std::span<const std::byte> from) {
  KEEL_CHECK(!is_finished_, "an upload is added to after its end");
  if (from.size() > bytes_max_ - bytes_) {
    return Error{Code::kInvalid, "writing " + name_ + ": it was begun for at most " +
                                     std::to_string(bytes_max_) + " bytes, and gets more"};
  }
  bytes_ += from.size();
  while (!from.empty()) {
    if (filling_.size == part_bytes_) KEEL_TRY(HandOver());
    if (filling_.bytes == nullptr) filling_.bytes = TakeBuffer();
    const size_t count = std::min<size_t>(from.size(), part_bytes_ - filling_.size);
    std::memcpy(filling_.bytes.get() + filling_.size, from.data(), count);
    filling_.size += count;
    from = from.subspan(count);
  }
  const std::optional<Error> failed = failure();
  return failed ? Status(*failed) : Ok();
}

Status S3Upload::Begin() {
  sums_.Find(client_, name_, key_, cancel_);
  S3Call call{.doing = "beginning to write " + name_, .effect = S3Effect::kSame, .method = "POST",
              .key = key_};
  call.query = {{"uploads", ""}};
  call.headers = {{MarkHeader(client_), mark_}};
  call.begins_checksums = true;
  call.cancel = cancel_;
  call.flaw = [](const HttpAnswer& answer) {
    const Result<std::string> id = ParseUploadId(answer.body);
    return id.ok() ? "" : id.error().message;
  };
  const S3Ending ending = client_.Send(call);
  if (!ending.done()) return ending.error;
  KEEL_TRY_ASSIGN(id_, ParseUploadId(ending.answer.body));
  return Ok();
}

// Gives the part that is full to the threads, and starts one more if all are busy.
Status S3Upload::HandOver() {
  if (const std::optional<Error> failed = failure()) return *failed;
  if (id_.empty()) {
    const Status begun = Begin();
    if (!begun.ok()) {
      const std::lock_guard lock(mutex_);
      failure_ = begun.error();   // what was added since is lost
      return begun;
    }
  }
  filling_.number = ++handed_over_;
  const auto most = static_cast<size_t>(client_.options().parts_in_flight);
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(filling_));
    const bool is_wanted = waiting_.size() + static_cast<size_t>(in_flight_) > threads_.size();
    if (is_wanted && threads_.size() < most) {
      threads_.push_back(OwnThread([this] { SendParts(); }));
    }
  }
  changed_.notify_all();
  filling_ = Part();
  return Ok();
}

void S3Upload::SendParts() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return is_stopping_ || !waiting_.empty(); });
    if (is_stopping_) return;
    Part part = std::move(waiting_.front());
    waiting_.pop_front();
    ++in_flight_;
    lock.unlock();
    Result<S3Part> sent = Send(part);
    lock.lock();
    --in_flight_;
    buffers_.push_back(std::move(part.bytes));
    if (sent.ok()) {
      sent_.push_back(std::move(*sent));
    } else if (!failure_) {
      failure_ = sent.error();
    }
    if (failure_) waiting_.clear();
    changed_.notify_all();
  }
}

Result<S3Part> S3Upload::Send(const Part& part) {
  S3Call call{.doing = "writing part " + std::to_string(part.number) + " of " + name_,
              .effect = S3Effect::kSame, .method = "PUT", .key = key_};
  call.query = {{"partNumber", std::to_string(part.number)}, {"uploadId", id_}};
  call.body = {part.bytes.get(), part.size};
  call.has_checksum = true;
  call.cancel = cancel_;
  call.flaw = [](const HttpAnswer& answer) {
    return answer.Header("etag").empty() ? "its answer has no ETag" : "";
  };
  const S3Ending ending = client_.Send(call);
  if (!ending.done()) return ending.error;
  return S3Part{part.number, ending.answer.Header("etag"),
                client_.dialect().announces_sums ? ending.crc : ""};
}

Status S3Upload::AwaitParts() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failure_ || (waiting_.empty() && in_flight_ == 0); });
  if (failure_) return *failure_;
  const auto by_number = [](const S3Part& a, const S3Part& b) { return a.number < b.number; };
  std::sort(sent_.begin(), sent_.end(), by_number);
  for (size_t i = 0; i < sent_.size(); ++i) {
    KEEL_CHECK(sent_[i].number == static_cast<int>(i) + 1, "part " << i + 1 << " was not sent");
  }
  KEEL_CHECK(static_cast<int>(sent_.size()) == handed_over_, "parts were lost");
  // Parts that were sent after the store had refused a checksum have none.
  if (!client_.has_crc()) {
    for (S3Part& part : sent_) part.crc.clear();
  }
  return Ok();
}

void S3Upload::StopThreads() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

Status S3Upload::Finish() {
  KEEL_CHECK(!is_finished_, "an upload is finished twice");
  if (id_.empty() && filling_.size == bytes_) {
    if (const std::optional<Error> failed = failure()) return *failed;
    sums_.Find(client_, name_, key_, cancel_);
    KEEL_TRY(PutWhole(client_, name_, key_, {filling_.bytes.get(), filling_.size}, cancel_));
    is_finished_ = true;
    return Ok();
  }
  if (filling_.size > 0) KEEL_TRY(HandOver());
  KEEL_TRY(AwaitParts());
  StopThreads();
  KEEL_TRY(Complete());
  is_finished_ = true;
  return Ok();
}

Status S3Upload::Complete() {
  const std::string body = CompleteBody(sent_);
  S3Call call{.doing = "finishing " + name_, .effect = S3Effect::kCompletes, .method = "POST",
              .key = key_};
  call.query = {{"uploadId", id_}};
  call.body = BytesOf(body);
  call.limit = client_.options().complete_limit;
  call.cancel = cancel_;
  call.may_hide_error = true;
  call.flaw = [](const HttpAnswer& answer) {
    const Status completed = CheckCompleted(answer.body);
    return completed.ok() ? "" : completed.error().message;
  };
  const S3Ending ending = client_.Send(call);
  if (ending.done()) return Ok();
  return ending.kind == Kind::kSettle ? Settle(ending.error) : Status(ending.error);
}

// Looks whether the object is the one that this upload has made.
Status S3Upload::Settle(const Error& error) {
  S3Call call{.doing = "looking at " + name_, .method = "HEAD", .key = key_};
  const S3Ending ending = client_.Send(call);
  if (!ending.done()) return error;
  const Result<int64_t> bytes = ParseInteger(ending.answer.Header("content-length"));
  const bool is_ours = bytes.ok() && static_cast<uint64_t>(*bytes) == bytes_ &&
                       ending.answer.Header(MarkHeader(client_)) == mark_;
  return is_ours ? Ok() : Status(error);
}

}  // namespace keel
