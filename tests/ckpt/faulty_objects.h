// FaultyObjects: a bucket whose n-th request goes wrong.
// Promises   requests are counted in the order of arrival, those of uploads too. After a crash no
//            request reaches the bucket below.
// Threads    one at a time. Lifetime: keeps the bucket below by reference.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/objects.h"

namespace keel {

class FaultyObjects : public Objects {
 public:
  enum class Fault {
    kFails,          // nothing happens, and the caller is told
    kLosesAnswer,    // it happens, and the caller does not learn that
    kDies,           // nothing happens, now and from here on
    kDiesAfter,      // it happens, and nothing from here on
  };
  // `at`: the number of the request, from 1; 0: none.
  FaultyObjects(Objects& below, Fault fault, int at) : below_(below), fault_(fault), at_(at) {}

  bool has_struck() const { return has_struck_; }

  const std::string& name() const override { return below_.name(); }
  Result<ObjectListing> List(const std::string& prefix, Depth depth) override {
    return Do<Result<ObjectListing>>([&] { return below_.List(prefix, depth); });
  }
  Result<ObjectInfo> Look(const std::string& key) override {
    return Do<Result<ObjectInfo>>([&] { return below_.Look(key); });
  }
  Result<size_t> Get(const std::string& key, uint64_t offset,
                     std::span<std::byte> into) override {
    return Do<Result<size_t>>([&] { return below_.Get(key, offset, into); });
  }
  Result<std::unique_ptr<ObjectUpload>> Upload(const std::string& key,
                                               uint64_t bytes_max) override {
    using Made = Result<std::unique_ptr<ObjectUpload>>;
    Made made = Do<Made>([&] { return below_.Upload(key, bytes_max); });
    if (!made.ok()) return made;
    return Made(std::make_unique<Sending>(*this, *std::move(made)));
  }
  Status PutIfAbsent(const std::string& key, std::string_view bytes) override {
    return Do<Status>([&] { return below_.PutIfAbsent(key, bytes); });
  }
  Status Replace(const std::string& key, std::string_view bytes) override {
    return Do<Status>([&] { return below_.Replace(key, bytes); });
  }
  Status Remove(const std::vector<std::string>& keys) override {
    return Do<Status>([&] { return below_.Remove(keys); });
  }
  int64_t StoreNanos() override { return below_.StoreNanos(); }
  Result<std::vector<UnfinishedObject>> Unfinished(const std::string& prefix) override {
    using Found = Result<std::vector<UnfinishedObject>>;
    return Do<Found>([&] { return below_.Unfinished(prefix); });
  }
  Result<int64_t> LastWritten(const UnfinishedObject& unfinished) override {
    return Do<Result<int64_t>>([&] { return below_.LastWritten(unfinished); });
  }
  Status Discard(const UnfinishedObject& unfinished) override {
    return Do<Status>([&] { return below_.Discard(unfinished); });
  }
  Result<BucketRules> Rules() override {
    return Do<Result<BucketRules>>([&] { return below_.Rules(); });
  }

 private:
  class Sending : public ObjectUpload {
   public:
    Sending(FaultyObjects& bucket, std::unique_ptr<ObjectUpload> below)
        : bucket_(bucket), below_(std::move(below)) {}
    // Whoever has died discards nothing.
    ~Sending() override {
      if (bucket_.is_dead_) bucket_.left_behind_.push_back(std::move(below_));
    }
    Status Append(std::span<const std::byte> from) override {
      return bucket_.Do<Status>([&] { return below_->Append(from); });
    }
    Status Finish() override {
      return bucket_.Do<Status>([&] { return below_->Finish(); });
    }
    void Cancel() override { below_->Cancel(); }

   private:
    FaultyObjects& bucket_;
    std::unique_ptr<ObjectUpload> below_;
  };

  template <class T, class F>
  T Do(F request) {
    const Error lost{Code::kPeerLost, "the store has not answered"};
    if (is_dead_) return lost;
    if (++requests_ != at_) return request();
    has_struck_ = true;
    is_dead_ = fault_ == Fault::kDies || fault_ == Fault::kDiesAfter;
    if (fault_ == Fault::kLosesAnswer || fault_ == Fault::kDiesAfter) (void)request();
    return lost;
  }

  Objects& below_;
  std::vector<std::unique_ptr<ObjectUpload>> left_behind_;   // by whoever has died
  const Fault fault_;
  const int at_;
  int requests_ = 0;
  bool has_struck_ = false;
  bool is_dead_ = false;
};

}  // namespace keel
