// The mirror's figures against patience and deadline.
#include "trainer/save/mirror_wait.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace keel {

MirrorWait::MirrorWait(Mirror& mirror, Clock& clock, std::string from, uint64_t step, bool all)
    : mirror_(mirror), clock_(clock), from_(std::move(from)), step_(step), all_(all),
      begin_(clock.Monotonic()), patience_(begin_) {
  mirror_.Wake(step);
}

Result<bool> MirrorWait::Await(Duration limit, std::optional<TimePoint> deadline) {
  if (deadline) {
    mirror_.Prefer(step_);
    const Duration left = *deadline - kEndMargin - clock_.Monotonic();
    limit = std::clamp(left, Duration(0), limit);
  }
  if (mirror_.AwaitMirrored(step_, limit, all_)) return true;
  const TimePoint now = clock_.Monotonic();
  most_ = std::max(most_, mirror_.bytes_copied());
  if ((!deadline || now + kEndMargin < *deadline) && patience_.IsLeft(now, most_)) return false;
  const std::string why = mirror_.why_not();
  return Error{Code::kIo, "it is saved in " + from_ + ", but not in " + mirror_.to() + " after " +
                              DurationText(now - begin_) + (why.empty() ? "" : ": " + why)};
}

}  // namespace keel
