// ClaimedFinder: leads a supervisor's member to the board of whoever holds the claim of the
// coordinator's role, where that and the boards lie in a JobHome; and claims the role itself.
// Promises   whenever the board has answered, it also looks at the claim; what follows is decided
//            by elastic/decisions/claiming.h, and logged. The role that this host has claimed is
//            told once the boards before could be read, and that it is lost, each once.
// Does not   pause between attempts, or keep the board.
// Threads    as elastic/board/guide.h says; the events are called from the member's thread.
// Errors     of Connect(): those of JobHome; kTimeout: nobody coordinates yet.
// Lifetime   keeps `home` and `clock` by reference.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "elastic/board/former_board.h"
#include "elastic/board/guide.h"
#include "elastic/board/job_home.h"
#include "elastic/decisions/claiming.h"

namespace keel {

class ClaimedFinder : public BoardGuide {
 public:
  struct Config {
    std::string job;
    std::string incarnation;
    std::function<std::string()> own_peer;
    std::optional<Seal> seal = {};   // of the job's token, for those that are asked
  };
  // A board that this host is to open.
  struct Turn {
    BoardPlace next;
    // The coordinator before, if that asked this host, or lives on; else empty.
    std::string handed_over_by;
    std::optional<EpochRecord> former;      // what hosts of the board before may still run
    std::string why;
  };
  struct Events {
    // The board of that coordinator is lost.
    std::function<void(const std::string& coordinator, bool refused)> on_lost;
    std::function<void(const Turn& turn)> on_turn;
    // The claim of that term, which this host held, is in force no more.
    std::function<void(int64_t term, const std::string& why)> on_role_lost;
  };

  ClaimedFinder(Config config, Clock& clock, JobHome& home, Events events)
      : config_(std::move(config)), clock_(clock), home_(home), events_(std::move(events)) {}

  Result<std::unique_ptr<Store>> Connect(const CancelToken& ending) override;
  bool NoteSuccession(const SuccessionRecord& record) override;
  void NoteEpoch(int64_t newest) override;
  void NoteContact(TimePoint beat) override;
  int64_t newest_epoch() const override;
  void SetOwn(const std::optional<BoardPlace>&) override {}
  bool IsOver() override;
  void NotePresenceLost() override;
  void NoteFinishing() override;
  std::optional<PeerSight> Sight() const override;
  std::string Target() const override { return home_.Text(); }

 private:
  struct Claimed {
    Turn turn;
    std::optional<RoleClaim> before;
  };
  struct State {
    ClaimView view;
    RoleClaim followed;                // the claim whose board is followed
    int64_t own = 0;                   // the term that this host has claimed; 0: none
    int64_t epoch = 0;                 // the newest that any board named
    BoardPlace place;
    TimePoint heard;
    bool is_reached = false;           // that board has told of itself
    bool is_presence_lost = false;
    std::optional<Claimed> unopened;   // the own claim, before its turn was told
  };

  PeerQuestion Question() const { return {config_.job, config_.seal}; }
  Result<ClaimStep> LookAndDecide(const CancelToken& ending);
  bool IsHolderDead(const RoleClaim& holder, const CancelToken& ending);
  void NoteSeen(const std::optional<RoleClaim>& seen, bool is_dead);
  Result<std::unique_ptr<Store>> Follow(const std::string& why);
  Status Claim(const ClaimStep& step);
  Status OpenClaimed(const CancelToken& ending);
  Result<FormerBoard> ReadFormer(const std::optional<RoleClaim>& before,
                                 const CancelToken& ending) const;

  const Config config_;
  Clock& clock_;
  JobHome& home_;
  const Events events_;
  CancelToken ending_ = CancelToken::Never();   // of the last Connect(); the member's thread's own
  mutable std::mutex mutex_;
  State state_;   // mutex_ guards it; only the member's thread changes `view` and `followed`
};

}  // namespace keel
