// Exchange: makes every worker's gradients the mean over all lanes, with the same bits for every
// number of workers. A bucket is exchanged while backward makes the next one.
// Promises   after a Finish() that succeeded, each parameter's grad() holds the complete mean, the
//            same bits on all workers, until the next step begins, here or in another exchange
//            with these buckets; no other worker needs it any more. Before that, from a worker's
//            last backward on, it may hold anything. If only some workers share a host, this is
//            certain only once a later vote has said that all have finished, since a worker that
//            breaks off may overwrite what others still read. After an error nothing is in flight
//            any more, the group is aborted, and gradients are undefined.
// Does not   decide a step (trainer/loop/vote.h), or scale for mixed precision: scale the loss.
//            Parameters that a lane's loss does not reach count as a gradient of zero.
// Threads    one; a thread of its own finishes buckets in order. Abort() of the group, from
//            anywhere, ends every call here.
// Errors     those of the group; kForeign with backward's message if it threw.
// Lifetime   the group outlives it, and is aborted if this object ends in the middle of a step.
//            Each epoch makes a new one, with the same buckets.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/digest.h"
#include "base/result.h"
#include "trainer/exchange/gradient_buckets.h"
#include "trainer/exchange/sum_claims.h"
#include "trainer/group/epoch_group.h"
#include "trainer/numerics/lanes.h"
#include "trainer/numerics/placement.h"
#include "trainer/train_config.h"

namespace keel {

// What is noted of the gradients that a lane makes, by parameter, as they are made.
struct LaneNotes {
  std::vector<Digest>* digests = nullptr;      // zeros remain where the loss does not reach
  std::vector<at::Tensor>* copies = nullptr;   // on the CPU; null: none are kept
};

class Exchange {
 public:
  struct Options {
    int lanes = 1;
    Reduce reduce = Reduce::kTree;
  };
  // Of the parameters that require a gradient, in the same order on all workers.
  static Result<std::unique_ptr<Exchange>> Open(std::shared_ptr<GradientBuckets> gradients,
                                                EpochGroup& group, const Options& options);
  ~Exchange();

  // Who computes which lanes from the next step on; an even split at first. All members call it
  // between the same steps.
  Status Place(const Placement& placement);
  // The lanes that this worker computes; may be empty.
  LaneRange lanes() const;
  // Those of the group.
  Whereabouts& whereabouts();

  // For a worker that has to wait before its first step: a background thread makes the system hand
  // out the memory in which sums will arrive. The first step ends that.
  void WarmUp();

  // Of the step that begins: its sums are made twice, by other workers each time, one bucket after
  // the other. All members call it. Not on a GPU, and not of a plain all-reduce.
  void ProveSums(int turn);
  // What came of it, means of other tensors included; nothing where sums were made once.
  std::optional<SumsMade> TakeSumsMade();

  // A step: call Backward() for each of lanes() in order, with that lane's loss, then Finish(). The
  // first Backward() drops the gradients of the last step; between two of them there are none. A
  // hook on a gradient (torch::Tensor::register_hook) sees that of one lane; a hook after
  // accumulation sees a sum of lanes.
  Status Backward(const at::Tensor& loss);
  // The same around a backward that somebody else runs in between, in whatever thread: EndLane() is
  // told how that ended. If the exchange broke meanwhile it gives the group's error, whatever the
  // backward made of that: an exception of other words, or nothing.
  Status BeginLane();
  Status EndLane(const Status& backward);
  // Of the next lane. The vectors stay where they are until that has ended.
  void NoteNextLane(const LaneNotes& notes);
  // Before a step's own lanes, or after Finish(): the next lane counts for nothing. What it makes
  // is noted and thrown away; gradients that were there are there again when it has ended.
  Status BeginAgain(const LaneNotes& notes);
  // How long the step's last Backward() waited for others after its own gradients were there.
  Duration waited() const;
  // A worker without lanes takes part here. For the others it returns as soon as nobody reads their
  // memory any more. It checks that all lanes were given.
  Status Finish();

  // The mean over all lanes of other tensors (buffers), added in the same order. `of_lanes` has one
  // list for each of lanes(). `into` gets the means: the same shapes and floating types on all
  // workers; it may share memory with `of_lanes`.
  Status Mean(const std::vector<std::vector<at::Tensor>>& of_lanes,
              const std::vector<at::Tensor>& into);

 private:
  class Impl;
  explicit Exchange(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace keel
