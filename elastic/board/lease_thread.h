// LeaseThread: the hand on the lease, on a thread of its own, since a directory of a network may
// stand still for minutes.
// Promises   nobody waits for the lease's place longer than kClaimLimit. What is seen is told when
//            it changes. The destructor leaves a call that hangs to itself.
// Does not   decide (elastic/decisions/lease_rule.h).
// Threads    any; `on_news` is called on the thread.
// Errors     of Claim(): those of LeaseHand; kTimeout: its outcome is not known yet.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "elastic/board/lease_hand.h"

namespace keel {

class LeaseThread {
 public:
  static constexpr Duration kClaimLimit = std::chrono::seconds(2);

  LeaseThread(std::unique_ptr<Lease> lease, Clock& clock, std::string incarnation,
              LeaseHand::Look look_at, std::function<void(const LinkView& view)> on_news);
  ~LeaseThread();

  void SetTask(LeaseTask task);
  LinkView View() const;
  Status Claim(const LinkRecord& link, int64_t after);
  // Waits for a moment until that is known to others.
  void Release();

 private:
  struct Shared;
  static void Run(const std::shared_ptr<Shared>& shared);
  // The job runs on the thread. Kept waiting for longer than the limit: kTimeout.
  Status Do(std::function<Status(LeaseHand& hand)> job);

  const std::shared_ptr<Shared> shared_;
};

}  // namespace keel
