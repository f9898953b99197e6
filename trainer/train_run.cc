// Signals, numerics, link, state, Trainer, in the order in which they need each other.
#include "trainer/train_run.h"

#include <torch/utils.h>

#include <utility>

#include "base/file_helpers.h"
#include "base/json.h"
#include "base/log.h"
#include "base/posix_files.h"
#include "base/process_setup.h"
#include "elastic/protocol/exit_codes.h"
#include "store/bucket_files.h"
#include "store/catch_torch.h"
#include "trainer/group/epoch_group.h"
#include "trainer/job_fingerprint.h"
#include "trainer/loop/recompute.h"
#include "trainer/loop/recompute_variables.h"
#include "trainer/numerics/numerics.h"
#include "trainer/save/resume_ahead.h"
#include "trainer/state/device.h"

namespace keel {
namespace {

constexpr Duration kTeardownLimit = std::chrono::seconds(5);

std::string Value(const Environment& environment, const char* name, const char* otherwise) {
  const auto found = environment.find(name);
  return found == environment.end() ? otherwise : found->second;
}

std::string WhereItIs(TrainState& state, const Digest& digest) {
  return "step=" + std::to_string(state.step()) + " trail=" + state.trail().Hex() +
         " digest=" + digest.Hex();
}

// A worker that needs more threads than there are processors waits for itself. The first worker of
// a host logs that for all.
void TellOfThreads(int threads, const Environment& environment) {
  const int processors = UsableProcessors();
  const bool is_first = Value(environment, "LOCAL_RANK", "0") == "0";
  if (!is_first || threads <= processors) return;
  LogWarn("threads-above-processors",
          {{"threads", threads},
           {"processors", processors},
           {"note", "this will be slow; results depend on --threads, so a job that has begun "
                    "keeps it"}});
}

}  // namespace

int ExitCodeOf(const TrainResult& result) {
  if (!result.refused.empty()) return kExitRefused;
  if (result.finished || result.supervised) return kExitFinished;
  return result.lost ? kExitUnsaved : kExitStopped;
}

Status BeginComputing(const TrainConfig& config, const Environment& environment) {
  TellOfThreads(config.numerics.threads, environment);
  KEEL_TRY(PinNumerics(config.numerics));
  return OpenDevice(config.device);
}

Result<std::unique_ptr<TrainRun>> TrainRun::Open(TrainRunOptions options) {
  std::unique_ptr<TrainRun> run(new TrainRun(std::move(options)));
  // This comes before the first thread of ours.
  const bool saves = !run->options_.keep.checkpoint.root.empty();
  if (run->options_.takes_signals && (saves || run->IsAlone())) {
    KEEL_TRY_ASSIGN(run->signals_, SignalWishes::Open());
  }
  KEEL_TRY(BeginComputing(run->config(), run->options_.environment));
  // This comes before threads, and before LibTorch is busy: a break must be heard while the model
  // is built.
  Result<std::unique_ptr<WorkerLink>> link =
      WorkerLink::FromEnvironment(run->options_.environment);
  if (!link.ok() && link.error().code != Code::kNotFound) return link.error();
  if (link.ok()) run->link_ = *std::move(link);
  run->ahead_.emplace(run->MayResume() ? run->options_.keep.resume.root : "");
  KEEL_TRY(CatchTorch("seeding", [&] { torch::manual_seed(run->config().seed); }));
  return run;
}

TrainRun::~TrainRun() {
  ahead_.reset();
  link_.reset();
  signals_.reset();
  (void)EpochGroup::AwaitTeardown(kTeardownLimit);
}

// Whether no supervisor has started this process.
bool TrainRun::IsAlone() const { return options_.environment.count(kControlFdVariable) == 0; }

// Whether this is the first rank of the job's first epoch, which looks for a checkpoint. A worker
// that is started later receives the state from others.
bool TrainRun::MayResume() const {
  const ResumeConfig& resume = options_.keep.resume;
  if (!resume.resume || resume.root.empty()) return false;
  const auto rank = options_.environment.find("RANK");
  return rank == options_.environment.end() ? IsAlone() : rank->second == "0";
}

bool TrainRun::StoppedBeforeItsFirstStep() const {
  return link_ == nullptr && StopWanted();
}

KeepConfig TrainRun::KeepOf(const std::string& fingerprint) const {
  KeepConfig keep = options_.keep;
  keep.checkpoint.fingerprint = keep.resume.fingerprint = fingerprint;
  keep.checkpoint.job = Value(options_.environment, "TORCHELASTIC_RUN_ID", "alone");
  if (!IsAlone()) keep.checkpoint.lease = Value(options_.environment, kLeaseVariable, "");
  return keep;
}

Result<TrainResult> TrainRun::Run(TrainProgram program, const TrainOutput& output) {
  if (std::exchange(has_run_, true)) return Error{Code::kInvalid, "a TrainRun trains once"};
  KEEL_TRY_ASSIGN(const auto state, TrainState::Make(config(), std::move(program)));
  return Train(*state, output);
}

Result<TrainResult> TrainRun::Train(TrainState& state, const TrainOutput& output) {
  KEEL_TRY_ASSIGN(const std::string fingerprint,
                  FingerprintOf(state, options_.keep.resume.config));
  const std::string evidence = Value(options_.environment, kRecomputeVariable, "");
  if (!evidence.empty()) {
    KEEL_TRY(TellRecomputed(state, fingerprint, evidence));
    return TrainResult{};
  }
  const KeepConfig keep = KeepOf(fingerprint);
  BucketFiles& files = OwnBuckets();
  files.SetUnguarded(keep.checkpoint.unguarded);
  KEEL_TRY_ASSIGN(const auto checkpointer,
                  Checkpointer::Open(state, keep.checkpoint, files, RealClock()));
  Keeping keeping{*checkpointer, keep.resume, files,
                  [&](const std::string& from, const Digest& digest) {
                    output.print("resumed " + WhereItIs(state, digest) + " from=" + from);
                  }};
  std::optional<ResumeAhead> ahead;
  // Not for a GPU: copies to it would come from another thread, and another stream.
  if (MayResume() && config().device.is_cpu()) {
    keeping.ahead = &ahead.emplace(state, files,
                                   ResumeAhead::What{keep.resume.root, fingerprint,
                                                     keep.resume.allow_inexact});
  }
  Keeping* const kept = keep.wanted() ? &keeping : nullptr;
  Trainer trainer(state, fingerprint,
                  {.link = link_.get(), .keeping = kept, .signals = signals_.get()});
  TrainResult result{.supervised = link_ != nullptr};
  if (StoppedBeforeItsFirstStep()) return result;
  KEEL_TRY_ASSIGN(const TrainOutcome outcome, trainer.Run());
  result.finished = outcome.finished;
  result.refused = outcome.refused;
  result.step = state.step();
  result.saved_step = outcome.saved_step;
  result.lost = !outcome.finished && !outcome.saved_step;
  if (outcome.finished) TellFinished(state, outcome, output, result);
  return result;
}

// In place of training.
Status TrainRun::TellRecomputed(TrainState& state, const std::string& fingerprint,
                                const std::string& evidence) const {
  if (!IsAlone()) {
    return Error{Code::kInvalid, std::string(kRecomputeVariable) +
                                     " is for a program without a launcher"};
  }
  KEEL_TRY_ASSIGN(const Recomputed recomputed,
                  Recompute(state, fingerprint, OwnBuckets(), evidence));
  PosixFiles files;
  return WriteDurably(files, Value(options_.environment, kRecomputedVariable, ""),
                      DumpJson(RecomputedJson(recomputed)) + "\n");
}

// The first rank of a job that has finished tells its last line. If not all output arrives, the
// reason says so and contains that line.
void TrainRun::TellFinished(TrainState& state, const TrainOutcome& outcome,
                            const TrainOutput& output, TrainResult& result) {
  result.last_line = "final " + WhereItIs(state, state.registry().StateDigest());
  if (outcome.first_rank) output.print(result.last_line);
  const Status printed = output.status();
  if (printed.ok() && outcome.not_mirrored.empty()) return;
  std::string text = "training has finished";
  if (!outcome.not_mirrored.empty()) {
    text += "; " + outcome.not_mirrored + "; `keel cp` copies it";
  } else if (outcome.saved_step) {
    text += " and is saved";
  }
  if (!printed.ok()) {
    text += ", but not all of its output could be written (" + printed.error().message + ")";
    if (outcome.first_rank) text += "; its last line is: " + result.last_line;
  }
  result.refused = text;
  // Another attempt would only train again, or fail to print again: nobody shall begin one.
  if (link_ == nullptr) return;
  (void)link_->Send(ByeMessage{kExitRefused, text});
  (void)link_->Flush(RealClock().Monotonic() + kTeardownLimit);
}

}  // namespace keel
