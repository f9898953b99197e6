// The part of Board that tells its launcher why there is no board, or none of this job.
#include "elastic/board/board.h"

namespace keel {
namespace {

// A store may answer for a moment before its coordinator has opened the job. Only a job that is
// missing for longer is told to the user.
constexpr Duration kUnknownTime = std::chrono::seconds(5);

}  // namespace

// Warns once if a store answers, but no coordinator has opened this job there.
void Board::WarnIfUnknown(const BoardClient::Step& step, TimePoint polled) {
  if (step.status.ok()) is_away_ = false;   // before what it has read is told
  if (!step.status.ok() || is_known_) return;
  is_known_ = !step.events.empty();
  if (!answered_) answered_ = polled;
  if (is_known_ || polled - *answered_ < kUnknownTime) return;
  is_known_ = true;   // so that it is told only once
  events_.on_trouble(Error{Code::kNotFound,
                           "the store at " + Target() + " has no job '" + job_ +
                               "': does the host that keeps the store run this job, with the same "
                               "--rdzv-id?"});
}

void Board::OnMemberTrouble(const Status& status) {
  if (!status.ok() && IsRefusedFor(status.error())) return events_.on_refused(status.error());
  is_away_ = !status.ok();
  events_.on_trouble(status);
  // A home that is away may come back. Whoever has decided the end waits that long for the others.
  const bool may_tell = coordinates() && (!is_cut_off() || keeper_->is_stopping());
  if (is_away_ && finishing_ && !may_tell && !has_moved_) LimitFinish(Duration(0));
}

// A newcomer that at first saw nobody may find another job there later.
void Board::OnMemberReason(const Error& reason) {
  if (IsRefusedFor(reason)) return events_.on_refused(reason);
  events_.on_reason(reason);
}

bool Board::IsRefusedFor(const Error& reason) const {
  return reason.code == Code::kExists && !has_board_ && !claimed_;
}

}  // namespace keel
