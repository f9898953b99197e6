// CatchUp: members of an epoch that lack the state receive it while the others make steps, each of
// which they make, too, with what they have received so far. They compute no lanes until then.
//
// | it is | at a step | it becomes |
// |---|---|---|
// | moving | some parts were sent, and some are left | moving |
// | moving | the last part was sent | comparing |
// | comparing | some digests of all members were the same, and some are left | comparing |
// | comparing | all were the same | done |
// | comparing | that of a member that catches up was another one | failed |
//
// Promises   a part (trainer/state/state_parts.h) is sent within one step, before the optimizer
//            changes it, so that who receives it makes that step with it and all that follow. When
//            it is done all members hold the same bits, which were compared; until then the state
//            of who catches up counts for nothing. Holders share the bytes, and copy only what is
//            on its way, which is never much. All members see the same states at the same steps.
// Does not   save, evaluate, or end an epoch: its owner calls Rest() before, or waits.
// Threads    the training thread; another one sends and receives while it computes.
// Errors     those of the group, which is aborted if this ends while something is on its way;
//            those of HeldBits: two who hold the state differ.
#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/digest.h"
#include "base/result.h"
#include "trainer/exchange/portions.h"
#include "trainer/group/serial_queue.h"
#include "trainer/loop/epoch_parts.h"
#include "trainer/loop/vote_record.h"
#include "trainer/numerics/placement.h"

namespace keel {

class CatchUp {
 public:
  enum class State { kMoving, kComparing, kDone, kFailed };

  // `who`: by rank, the members that catch up; not all. `lanes`: those of the others meanwhile.
  CatchUp(const EpochParts& parts, std::vector<bool> who, Placement lanes);
  ~CatchUp();
  CatchUp(const CatchUp&) = delete;
  CatchUp& operator=(const CatchUp&) = delete;

  State state() const { return state_; }
  bool under_way() const { return state_ == State::kMoving || state_ == State::kComparing; }
  bool Is(size_t rank) const { return under_way() && who_[rank]; }
  const Placement& lanes() const { return lanes_; }
  // How long Rest() may take.
  Duration rest() const { return Duration(portions_.rest_ns()); }
  // Whether most is still to be sent, so that little is lost if it begins anew with others.
  bool has_hardly_begun() const { return portions_.bytes_sent() * 2 < portions_.bytes(); }

  // A step: what it sends or compares begins before its lanes, and has ended before its vote.
  Status BeginStep();
  Status EndStep();
  void FillIn(VoteRecord& record) const;
  // It was decided, and applied here.
  void Note(const std::vector<VoteRecord>& records);
  // All that is left, between two steps; nobody computes meanwhile.
  Status Rest();

 private:
  // Bytes of a tensor that go to those who catch up in one message.
  struct Message {
    at::Tensor bytes;     // of the state itself
    int from = 0;
  };
  struct Moving {
    const Message* message = nullptr;
    at::Tensor staged;    // what travels
    EpochGroup::Batch batch;
  };

  bool own() const { return who_[static_cast<size_t>(group_.rank())]; }
  void Move(const Portions::Range& range);
  void AddMessages(const at::Tensor& flat);
  Status MoveAll();
  Status Post(const Message& message, Moving& moving);
  void TellIfSlow();
  std::string Names() const;   // of who catches up
  Result<Digest> NextDigest();
  void Judge(const std::vector<Digest>& digests);
  void EndIfCompared();

  TrainState& state_of_;
  EpochGroup& group_;
  const std::vector<bool> who_;
  const Placement lanes_;
  std::vector<int> holders_;
  const Tag tag_;
  State state_ = State::kMoving;
  Portions portions_;
  Portions::Range moving_;            // on their way
  size_t messages_sent_ = 0;          // in all, by whomever
  std::vector<Message> messages_;     // of ours
  bool is_moving_ = false;
  std::atomic<uint64_t> bytes_moved_{0};
  Status moved_;                      // the other thread's while it moves, like the next one
  int64_t sent_ns_ = 0;
  uint64_t pieces_left_ = 0;
  std::optional<Digest> digest_;
  uint64_t steps_ = 0;
  bool told_slow_ = false;
  const TimePoint begun_;
  SerialQueue waiter_;                // declared last, so destroyed first
};

}  // namespace keel
