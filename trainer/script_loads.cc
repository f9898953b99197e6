// A ticket tells of its end.
#include "trainer/script_loads.h"

namespace keel {

struct ScriptLoads::Ticket {
  Ticket(std::shared_ptr<ScriptLoads> issuer, uint64_t its_number)
      : loads(std::move(issuer)), number(its_number) {}
  ~Ticket() {
    const std::lock_guard lock(loads->mutex_);
    loads->news_.dropped.push_back(number);
  }
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;

  const std::shared_ptr<ScriptLoads> loads;
  const uint64_t number;
};

Batch ScriptLoads::Want(std::span<const uint64_t> indices, uint64_t seed, bool is_evaluation) {
  Batch batch;
  const std::lock_guard lock(mutex_);
  const uint64_t number = next_++;
  batch.tag = std::make_shared<const Ticket>(shared_from_this(), number);
  news_.wanted.push_back({number, is_evaluation, seed, {indices.begin(), indices.end()}});
  return batch;
}

uint64_t ScriptLoads::NumberOf(const Batch& batch) {
  return static_cast<const Ticket*>(batch.tag.get())->number;
}

ScriptLoads::News ScriptLoads::Take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

}  // namespace keel
