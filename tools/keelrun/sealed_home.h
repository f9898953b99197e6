// SealedHome: a home of the job's boards whose stores are sealed (store/seal/sealed_store.h).
// Promises   as elastic/board/job_home.h.
// Does not   seal the claims: whoever may write to the place can disturb who coordinates.
// Threads    and errors as elastic/board/job_home.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "elastic/board/job_home.h"
#include "store/seal/sealed_store.h"

namespace keel {

class SealedHome : public JobHome {
 public:
  SealedHome(std::unique_ptr<JobHome> home, Seal seal, std::set<std::string> open_keys)
      : home_(std::move(home)), seal_(std::move(seal)), open_keys_(std::move(open_keys)) {}

  Result<std::optional<RoleClaim>> Look() override { return home_->Look(); }
  Result<bool> Claim(const RoleClaim& claim) override { return home_->Claim(claim); }
  void Release() override { home_->Release(); }
  void End(const RoleClaim& own) override { home_->End(own); }
  Result<std::unique_ptr<Store>> Connect(const RoleClaim& claim) override {
    return Sealed(home_->Connect(claim), claim.term);
  }
  Result<std::unique_ptr<Store>> ConnectCoordinator(int64_t term) override {
    return Sealed(home_->ConnectCoordinator(term), term);
  }
  Result<std::optional<RoleClaim>> LookUntil(const CancelToken& ending) override {
    return home_->LookUntil(ending);
  }
  Result<std::unique_ptr<Store>> ConnectCoordinatorUntil(int64_t term,
                                                         const CancelToken& ending) override {
    return Sealed(home_->ConnectCoordinatorUntil(term, ending), term);
  }
  Result<std::unique_ptr<Store>> ConnectReader(const RoleClaim& claim) override {
    return Sealed(home_->ConnectReader(claim), claim.term);
  }
  std::string Text() const override { return home_->Text(); }

 private:
  // Each term has a board of its own, and what is of one is nothing on another.
  Result<std::unique_ptr<Store>> Sealed(Result<std::unique_ptr<Store>> store, int64_t term) {
    if (!store.ok()) return store;
    const std::string number = std::to_string(term);
    const std::lock_guard lock(mutex_);
    std::shared_ptr<SealedPast>& past = pasts_[term];
    if (past == nullptr) past = std::make_shared<SealedPast>(seal_.For({"term", number}));
    return std::unique_ptr<Store>(std::make_unique<SealedStore>(
        *std::move(store), past, SealedStore::Config{"board " + number, open_keys_}));
  }

  const std::unique_ptr<JobHome> home_;
  const Seal seal_;
  const std::set<std::string> open_keys_;
  std::mutex mutex_;
  std::map<int64_t, std::shared_ptr<SealedPast>> pasts_;   // guarded by mutex_; by term
};

}  // namespace keel
