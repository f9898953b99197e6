// Compares the slowest member's need with the time of the member that must be gone first.
#include "trainer/save/fit.h"

#include <algorithm>

namespace keel {
namespace {

// A save beside training gives way to it, and takes up to this many times longer than a save that
// everybody waits for.
constexpr double kBesideFactor = 2;
// Stands for a time too short to be measured.
constexpr double kSecondsLeast = 1e-9;

void KeepLeast(std::optional<double>& least, double value) {
  least = std::min(least.value_or(value), value);
}

}  // namespace

void SaveSpeed::OnWritten(uint64_t bytes, Duration took, bool awaited) {
  if (bytes == 0) return;
  const double seconds = std::max(std::chrono::duration<double>(took).count(), kSecondsLeast);
  KeepLeast(awaited ? awaited_ : beside_, seconds / static_cast<double>(bytes));
}

void SaveSpeed::OnCommitted(Duration took) { commit_ = std::min(commit_.value_or(took), took); }

std::optional<Duration> SaveSpeed::Expect(uint64_t bytes) const {
  std::optional<double> a_byte = awaited_;
  if (beside_) KeepLeast(a_byte, *beside_ / (awaited_ ? 1 : kBesideFactor));
  if (!a_byte) return std::nullopt;
  const std::chrono::duration<double> seconds(*a_byte * static_cast<double>(bytes));
  return std::chrono::ceil<Duration>(seconds) + commit_.value_or(Duration(0));
}

StopDecision DecideStopSave(const std::vector<StopVote>& votes) {
  std::optional<Duration> left;
  std::optional<Duration> needs;
  bool under_way = true;
  for (const StopVote& vote : votes) {
    if (vote.left) left = std::min(left.value_or(*vote.left), *vote.left);
    if (vote.needs) needs = std::max(needs.value_or(*vote.needs), *vote.needs);
    under_way &= vote.state == SaveState::kWriting || vote.state == SaveState::kDurable;
  }
  StopDecision decision;
  if (left) decision.left = std::max(*left, Duration(0));
  if (!left || !needs) return decision;
  decision.needs = *needs;
  if (*needs <= *left) return decision;
  decision.what = under_way ? StopSave::kFinish : StopSave::kLeave;
  return decision;
}

}  // namespace keel
