// ScriptLoads: which samples a script is to have ready, by numbers of batches: the loader asks for
// them as if it loaded them, and gets a ticket in place of samples.
// Promises   a batch is wanted before its lane is asked for, and dropped once its ticket is gone.
// Threads    any.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trainer/dataset.h"

namespace keel {

class ScriptLoads : public std::enable_shared_from_this<ScriptLoads> {
 public:
  struct Wanted {
    uint64_t batch = 0;
    bool is_evaluation = false;
    uint64_t seed = 0;   // for whatever its loading draws
    std::vector<uint64_t> indices = {};
  };
  struct News {
    std::vector<Wanted> wanted = {};
    std::vector<uint64_t> dropped = {};
  };

  // A batch with a ticket, and nothing else.
  Batch Want(std::span<const uint64_t> indices, uint64_t seed, bool is_evaluation);
  // Of a batch from Want().
  static uint64_t NumberOf(const Batch& batch);
  // Since the last call.
  News Take();

 private:
  struct Ticket;

  std::mutex mutex_;
  uint64_t next_ = 1;   // guarded by mutex_, as all below
  News news_;
};

class ScriptDataset final : public Dataset {
 public:
  ScriptDataset(std::shared_ptr<ScriptLoads> loads, uint64_t size, std::string identity,
                bool is_evaluation)
      : loads_(std::move(loads)), size_(size), identity_(std::move(identity)),
        is_evaluation_(is_evaluation) {}

  uint64_t size() const override { return size_; }
  Result<Batch> Load(std::span<const uint64_t> indices) override {
    return LoadSeeded(indices, 0);
  }
  Result<Batch> LoadSeeded(std::span<const uint64_t> indices, uint64_t seed) override {
    return loads_->Want(indices, seed, is_evaluation_);
  }
  Loading loading() const override { return Loading::kAhead; }
  std::string Identity() const override { return identity_; }

 private:
  const std::shared_ptr<ScriptLoads> loads_;
  const uint64_t size_;
  const std::string identity_;
  const bool is_evaluation_;
};

}  // namespace keel
