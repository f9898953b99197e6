// The table's fates, carried out.
#include "trainer/save/share.h"

#include <utility>

#include "base/check.h"

namespace keel {

void Share::Begin(uint64_t step) {
  Move(ShareEvent::kBegin);
  step_ = step;
}

void Share::Wrote(std::unique_ptr<Save> file) {
  Move(ShareEvent::kWrote);
  file_ = std::move(file);
}

void Share::On(ShareEvent event) { Move(event); }

std::unique_ptr<Save> Share::TakeToCommit() {
  std::unique_ptr<Save> file = std::move(file_);
  Move(ShareEvent::kCommit);
  return file;
}

void Share::Move(ShareEvent event) {
  const ShareTransition* const transition = FindTransition(state_, event);
  KEEL_CHECK(transition != nullptr, "a share that is " << ShareStateName(state_) << " cannot "
                                                       << ShareEventName(event) << ", at step "
                                                       << step_);
  state_ = transition->to;
  if (transition->fate == ShareFate::kKeep) return;
  if (transition->fate == ShareFate::kRemove && file_ != nullptr) file_->Abandon();
  file_.reset();
}

}  // namespace keel
