// Differing: the tensors in which two results of a lane differ, brought to all members, so that
// each can say in which elements.
// Threads    the training thread; all members call it for the same dispute.
// Errors     those of the group.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/group/epoch_group.h"
#include "trainer/loop/evidence.h"
#include "trainer/loop/lane_work.h"
#include "trainer/loop/recheck_plan.h"
#include "trainer/state/train_state.h"

namespace keel {

// As far as they were kept, and are not too large to be sent.
Result<std::vector<DifferingTensor>> GatherDiffering(TrainState& state, EpochGroup& group,
                                                     const Dispute& dispute,
                                                     const Testimony& testimony,
                                                     const LaneWork& work);

// To follow what differs: ", in 1 of 4096 elements, the first ..."; of several tensors that of the
// first one: "; in the gradient of layer1.weight 1 of ...". Empty: there is none.
// Throws what LibTorch throws.
std::string ElementsText(const std::vector<DifferingTensor>& differing);

}  // namespace keel
