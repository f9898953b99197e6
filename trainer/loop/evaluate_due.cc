// Evaluates, and tells the supervisor and the program.
#include "trainer/loop/evaluate_due.h"

#include <string>

#include "store/catch_torch.h"
#include "trainer/loop/evaluation.h"

namespace keel {
namespace {

// No wish to stop counts after the last step, unless what it made is there for a later start.
bool IsToldToStop(const EpochParts& parts) {
  const EpochCallbacks::Wishes wishes = parts.peer.wishes();
  // A wish to save is told only once, so it is noted for later.
  if (wishes.save && parts.keeping != nullptr) parts.saver().beside().WantSave();
  const bool is_last = parts.state.step() >= parts.state.config().steps;
  return wishes.stop && (!is_last || parts.saves());
}

}  // namespace

bool EvaluationIsDue(const EpochParts& parts) {
  return parts.state.program().evaluation.IsDue(parts.state.step());
}

Result<bool> EvaluateIfDue(const EpochParts& parts) {
  if (!EvaluationIsDue(parts)) return true;
  const EvaluationCallbacks peer{.at = [&parts](uint64_t) { parts.At(Phase::kEvaluating); },
                                 .stop = [&parts] { return IsToldToStop(parts); }};
  const EvaluationOutcome outcome = Evaluate(parts.state, parts.group, peer);
  const std::string who = parts.group.NameOf(parts.group.rank());
  if (!outcome.report.ok()) {
    const Error& error = outcome.report.error();
    if (!outcome.users_fault || error.code == Code::kNoDevice) return error;
    return Error{Code::kInvalid, who + ", " + error.message};
  }
  if (parts.peer.evaluated) parts.peer.evaluated(outcome.report->took);
  if (outcome.report->abandoned) return false;
  const TrainProgram& program = parts.state.program();
  if (!program.on_evaluation) return true;
  const std::string where =
      who + ", after evaluation at step " + std::to_string(parts.state.step());
  parts.Place("on_evaluation");
  KEEL_TRY(CallProgram(where, [&] { return program.on_evaluation(*outcome.report); }));
  KEEL_TRY(CatchTorch(where, [&] { parts.state.buffers().Restore(); }));   // it may come again
  return true;
}

}  // namespace keel
