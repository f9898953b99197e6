// S3Upload: an object that is sent in parts, several at a time; a small one in a single put.
// Promises   at most `parts_in_flight` + 1 parts are in memory, each of PartBytesFor(). All parts
//            but the last are of one size, as some stores demand. The object is what was added, or
//            Finish() fails: an end whose answer was lost is settled by looking at the object.
// Does not   check what the store has then (each part has a checksum on its way, of a kind that the
//            store was seen to compare, as far as it said: store/s3/sums.h).
// Threads    one at a time; as many as parts are in flight are its own.
// Errors     those of base/objects.h; an error of a part comes with the next call.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/objects.h"
#include "store/s3/answers.h"
#include "store/s3/client.h"
#include "store/s3/sums.h"

namespace keel {

// S3 takes 10,000 parts of an object. kInvalid: an object of that size takes too large parts.
Result<uint64_t> PartBytesFor(uint64_t bytes_max, uint64_t part_bytes_min);

struct DiscardLimits {
  Duration limit = Duration::zero();   // zero: the client's
  int tries_max = 0;                   // zero: the client's
};
// An upload that is not there counts as discarded.
Status DiscardUpload(S3Client& client, const std::string& name, const std::string& key,
                     const std::string& id, const DiscardLimits& limits);

class S3Upload : public ObjectUpload {
 public:
  // `name`: the object as its user knows it.
  S3Upload(S3Client& client, SumChoice& sums, std::string name, std::string key,
           uint64_t bytes_max, uint64_t part_bytes);
  ~S3Upload() override;

  Status Append(std::span<const std::byte> from) override;
  Status Finish() override;
  void Cancel() override;

 private:
  struct Part {
    int number = 0;
    std::unique_ptr<std::byte[]> bytes;
    size_t size = 0;
  };
  std::unique_ptr<std::byte[]> TakeBuffer();
  Status Begin();
  Status HandOver();
  void SendParts();
  Result<S3Part> Send(const Part& part);
  Status AwaitParts();
  Status Complete();
  Status Settle(const Error& error);
  void StopThreads();
  std::optional<Error> failure();

  S3Client& client_;
  SumChoice& sums_;
  const std::string name_;
  const std::string key_;
  const uint64_t bytes_max_;
  const uint64_t part_bytes_;
  const std::string mark_;           // of this upload, which its object carries
  const CancelToken cancel_;
  std::string id_;                   // empty: not begun
  uint64_t bytes_ = 0;
  Part filling_;
  int handed_over_ = 0;
  bool is_finished_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Part> waiting_;                            // all below: guarded by mutex_
  std::vector<std::unique_ptr<std::byte[]>> buffers_;   // free ones
  std::vector<S3Part> sent_;
  std::optional<Error> failure_;
  int in_flight_ = 0;
  bool is_stopping_ = false;
  std::vector<std::thread> threads_;                    // of the caller's thread
};

}  // namespace keel
