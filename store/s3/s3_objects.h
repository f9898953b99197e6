// S3Objects: a bucket of S3, of a store that speaks its language, or of Google's dialect of it.
// Promises   those of base/objects.h, on a store that honours `If-None-Match: *` (AWS, R2, Ceph,
//            SeaweedFS and others do; whoever needs PutIfAbsent() asks with a put of its own). On
//            others only with S3Options::is_unguarded, and then two puts of one key at one moment
//            may both succeed.
// Does not   ask the store anything when it is made.
// Threads    as base/objects.h says.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/files.h"
#include "base/objects.h"
#include "store/s3/client.h"
#include "store/s3/sums.h"

namespace keel {

class S3Objects : public Objects {
 public:
  // `files` must outlive it. kInvalid: the bucket's name, or AWS's settings.
  static Result<std::unique_ptr<S3Objects>> Open(const std::string& bucket,
                                                 const Environment& environment, Files& files,
                                                 const S3Options& options = {},
                                                 const S3Dialect& dialect = kAwsDialect);

  const std::string& name() const override { return name_; }
  Result<ObjectListing> List(const std::string& prefix, Depth depth) override;
  Result<ObjectInfo> Look(const std::string& key) override;
  Result<size_t> Get(const std::string& key, uint64_t offset, std::span<std::byte> into) override;
  Result<std::unique_ptr<ObjectUpload>> Upload(const std::string& key,
                                               uint64_t bytes_max) override;
  Status PutIfAbsent(const std::string& key, std::string_view bytes) override;
  bool is_guarded() const override { return !client_.options().is_unguarded; }
  Status Replace(const std::string& key, std::string_view bytes) override;
  Status Remove(const std::vector<std::string>& keys) override;
  Result<std::vector<UnfinishedObject>> Unfinished(const std::string& prefix) override;
  Result<int64_t> LastWritten(const UnfinishedObject& unfinished) override;
  Status Discard(const UnfinishedObject& unfinished) override;
  int64_t StoreNanos() override { return client_.StoreNanos(); }
  Result<BucketRules> Rules() override;

 private:
  S3Objects(const S3Address& address, const Environment& environment, const AwsProfile& profile,
            Files& files, const S3Options& options);
  std::string NameOf(const std::string& key) const { return name_ + "/" + key; }
  // Relies on the store alone.
  Status PutGuarded(const std::string& key, std::string_view bytes);
  Result<bool> HoldsThese(const std::string& key, std::string_view bytes);
  Status RemoveSome(const std::vector<std::string>& keys);
  Status RemoveOne(const std::string& key);
  S3Ending AskRules(const std::string& what, const char* name);

  const std::string name_;
  const std::string asked_region_;
  S3Client client_;
  SumChoice sums_;
  std::atomic<bool> has_bucket_{false};   // the store has shown that the bucket is there
};

// Puts one object in one request, in place of one that is there.
Status PutWhole(S3Client& client, const std::string& name, const std::string& key,
                std::span<const std::byte> bytes,
                const CancelToken& cancel = CancelToken::Never(),
                Duration first_limit = Duration::zero());

}  // namespace keel
