// SumChoice: which checksum of a body a store compares with the bytes that it got. Some take a
// header that they do not know, and store whatever came.
// Promises   sends a part with a wrong sum, which a store that compares refuses: a CRC32C, and
//            where that is taken, a Content-MD5. It is of an upload that is discarded, so no object
//            comes of it. The client sends from then on what is compared; a store that compares
//            neither is told of in the log. Once for a bucket and process, unless the store gives
//            no clear answer; then at most kSumTriesMax times.
// Does not   wait for another thread that asks just now, or fail: what it cannot find out, the
//            upload after it will say.
// Threads    any.
#pragma once

#include <atomic>
#include <string>

#include "store/s3/client.h"

namespace keel {

inline constexpr int kSumTriesMax = 3;

class SumChoice {
 public:
  enum class Found { kNothing, kCompared, kIgnored };

  // `key`: of an object that is about to be written; `name` as its user knows it.
  void Find(S3Client& client, const std::string& name, const std::string& key,
            const CancelToken& cancel);
  Found found() const { return found_; }

 private:
  void Learn(S3Client& client, const std::string& name, const std::string& key,
             const CancelToken& cancel);

  std::atomic<bool> is_asking_{false};
  std::atomic<int> tries_left_{kSumTriesMax};
  std::atomic<Found> found_{Found::kNothing};
};

}  // namespace keel
