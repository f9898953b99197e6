// At most two uploads of one part, which should be refused.
#include "store/s3/sums.h"

#include "base/file_helpers.h"
#include "base/log.h"
#include "store/s3/answers.h"
#include "store/s3/upload.h"

namespace keel {
namespace {

// A store that is silent holds an upload up for so long at most, each time.
constexpr Duration kSumLimit = std::chrono::seconds(5);

enum class Answer { kCompared, kTaken, kUnclear };

Answer Ask(S3Client& client, const std::string& name, const std::string& key, S3Sum sum,
           const CancelToken& cancel) {
  const std::string doing = "trying checksums at " + name;
  S3Call begin{.doing = doing, .effect = S3Effect::kSame, .method = "POST", .key = key};
  begin.query = {{"uploads", ""}};
  begin.begins_checksums = true;
  S3Call part{.doing = doing, .effect = S3Effect::kSame, .method = "PUT", .key = key};
  part.body = BytesOf("this has a wrong checksum");
  part.has_checksum = true;
  for (S3Call* const call : {&begin, &part}) {
    call->wrong_sum = sum;
    call->limit = kSumLimit;
    call->tries_max = 1;
    call->cancel = cancel;
  }
  const S3Ending begun = client.Send(begin);
  const Result<std::string> id =
      begun.done() ? ParseUploadId(begun.answer.body) : Result<std::string>(begun.error);
  if (!id.ok()) return Answer::kUnclear;
  part.query = {{"partNumber", "1"}, {"uploadId", *id}};
  const S3Ending sent = client.Send(part);
  (void)DiscardUpload(client, name, key, *id, {kSumLimit, 0});
  return sent.is_damage ? Answer::kCompared : sent.done() ? Answer::kTaken : Answer::kUnclear;
}

}  // namespace

void SumChoice::Learn(S3Client& client, const std::string& name, const std::string& key,
                      const CancelToken& cancel) {
  // A store that refused CRCs gets MD5s already.
  Answer answer =
      client.has_crc() ? Ask(client, name, key, S3Sum::kCrc, cancel) : Answer::kTaken;
  if (answer == Answer::kTaken) {
    answer = Ask(client, name, key, S3Sum::kMd5, cancel);
    if (answer == Answer::kCompared) client.SendMd5();
  }
  if (answer == Answer::kUnclear) {
    --tries_left_;
    return;
  }
  tries_left_ = 0;
  found_ = answer == Answer::kCompared ? Found::kCompared : Found::kIgnored;
  if (answer == Answer::kCompared) return;
  LogWarn("s3-checksums-ignored",
          {{"tried_at", name},
           {"advice", "this store takes bytes whose checksum is wrong: reach it by https, which "
                      "finds what changes on the way; `keel verify` shows what has"}});
}

void SumChoice::Find(S3Client& client, const std::string& name, const std::string& key,
                     const CancelToken& cancel) {
  if (!client.options().tries_sums) return;
  if (tries_left_ == 0 || is_asking_.exchange(true)) return;
  if (tries_left_ > 0) Learn(client, name, key, cancel);
  is_asking_ = false;
}

}  // namespace keel
