// At most two puts, each of which should be refused.
#include "store/s3/sums.h"

#include "base/file_helpers.h"
#include "base/log.h"

namespace keel {

SumChoice::Answer SumChoice::Ask(S3Client& client, const std::string& name,
                                 const std::string& key, const CancelToken& cancel) {
  S3Call call{.doing = "trying checksums at " + name, .effect = S3Effect::kSame, .method = "PUT",
              .key = key};
  call.body = BytesOf("this has a wrong checksum");
  call.has_checksum = true;
  call.has_wrong_checksum = true;
  call.tries_max = 1;
  call.cancel = cancel;
  const S3Ending ending = client.Send(call);
  if (ending.done()) return Answer::kTaken;
  return ending.is_damage ? Answer::kCompared : Answer::kUnclear;
}

void SumChoice::Find(S3Client& client, const std::string& name, const std::string& key,
                     const CancelToken& cancel) {
  if (tries_left_ == 0 || is_asking_.exchange(true)) return;
  const bool had_crc = client.has_crc();
  Answer answer = Ask(client, name, key, cancel);
  if (answer == Answer::kTaken && client.has_crc()) {
    client.SendCrc(false);
    answer = Ask(client, name, key, cancel);
    if (answer == Answer::kCompared) {
      LogInfo("s3-md5-instead", {{"tried_at", name},
                                 {"reason", "the store takes bytes whose CRC32C is wrong, but none "
                                            "whose MD5 is"}});
    } else {
      client.SendCrc(had_crc);
    }
  }
  if (answer == Answer::kTaken) {
    LogWarn("s3-checksums-ignored",
            {{"tried_at", name},
             {"advice", "this store takes bytes whose checksum is wrong: reach it by https, which "
                        "finds what changes on the way; `keel verify` shows what has"}});
  }
  tries_left_ = answer == Answer::kUnclear ? tries_left_ - 1 : 0;
  is_asking_ = false;
}

}  // namespace keel
