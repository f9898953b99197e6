// From options to config, to state, to Trainer, to exit code.
#include "trainer/train_main.h"

#include <torch/utils.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/environment.h"
#include "base/log.h"
#include "base/option_help.h"
#include "base/posix_files.h"
#include "base/print_out.h"
#include "base/process_setup.h"
#include "base/text.h"
#include "ckpt/read_ahead.h"
#include "elastic/protocol/exit_codes.h"
#include "elastic/worker_link.h"
#include "store/catch_torch.h"
#include "store/torch_log.h"
#include "trainer/early_stop.h"
#include "trainer/group/epoch_group.h"
#include "trainer/loop/signal_wishes.h"
#include "trainer/loop/trainer.h"
#include "trainer/nccl_module.h"
#include "trainer/numerics/numerics.h"
#include "trainer/run_logs.h"
#include "trainer/save/keep_options.h"
#include "trainer/save/resume_ahead.h"
#include "trainer/state/device.h"

namespace keel {
namespace {

constexpr Duration kTeardownLimit = std::chrono::seconds(5);
constexpr const char* kReduceNames[] = {"tree", "allreduce"};

struct ProgramTable {
  OptionTable table;
  size_t own_from = 0;   // index of the first option of the program's own
};

void AddTrainOptions(OptionTable& table, const TrainConfig& preset) {
  table.Add(Option::Text("config", "",
                         "Read options from this file, one per line as `lr = 0.1`; those of the "
                         "command line win. --print-config prints such a file")
                .Placeholder("FILE").CommandLineOnly());
  table.ConfigFileFrom("config");
  // The limits are far above any real need, and keep a typo from taking the whole machine.
  const auto count = [&](const char* name, uint64_t value, int64_t most, const char* help) {
    table.Add(
        Option::Integer(name, static_cast<int64_t>(value), help).Range(1, most).Placeholder("N"));
  };
  table.Add(Option::Integer("steps", static_cast<int64_t>(preset.steps), "Optimizer steps")
                .AtLeast(1).Placeholder("N"));
  count("lanes", preset.lanes, 65536,
        "Micro-batches per step, shared among all workers; results depend on it");
  count("lane-batch", preset.lane_batch, 1 << 20, "Samples in each of these micro-batches");
  table.Add(Option::Integer("seed", static_cast<int64_t>(preset.seed),
                            "Seed of the model, the order of samples and dropout")
                .AtLeast(0).Placeholder("N"));
  table.Add(Option::Real("lr", preset.update.learning_rate, "Learning rate")
                .RealRange(0, 1e6).Placeholder("RATE"));
  table.Add(Option::Text("schedule", preset.update.schedule.Text(),
                         "Schedule of the learning rate: constant, "
                         "cosine:warmup=100,total=1000,min=0.1, linear:..., "
                         "step:every=30,factor=0.1")
                .Placeholder("TEXT"));
  table.Add(Option::Real("clip-norm", preset.update.clip_norm.value_or(0),
                         "Clip the gradients to this global norm; 0: do not clip")
                .RealRange(0, 1e30).Placeholder("NORM"));
  table.Add(Option::Choice("non-finite", {"stop", "skip"},
                           std::string(NonFiniteName(preset.update.non_finite)),
                           "What to do at a step whose loss is NaN or infinite: stop, or skip it"));
  table.Add(Option::Choice("precision", {"fp32", "bf16", "fp16"},
                           std::string(PrecisionName(preset.precision)),
                           "Precision of the forward pass"));
  table.Add(Option::Text("device", preset.device.str(),
                         "Device to compute on: cpu; cuda, which gives each worker the GPU with "
                         "the number of its LOCAL_RANK; cuda:N")
                .Placeholder("NAME"));
  table.Add(Option::Choice("numerics", {"portable", "native"},
                           std::string(NumericsName(preset.numerics.numerics)),
                           "portable: the same bits on all hosts; native: the kernels that "
                           "LibTorch picks for this host"));
  count("threads", static_cast<uint64_t>(preset.numerics.threads), 1024,
        "Threads that compute one operation; results depend on it");
  table.Add(Option::Choice("reduce", {kReduceNames[0], kReduceNames[1]},
                           kReduceNames[static_cast<int>(preset.reduce)],
                           "tree: the same bits for any number of workers; allreduce: a plain "
                           "all-reduce, for comparison"));
  table.Add(Option::Integer("load-threads", preset.loader.threads,
                            "Threads that load samples ahead, if the dataset allows it; 0: none")
                .Range(0, 1024).Placeholder("N"));
  count("load-ahead", preset.loader.ahead, 1024, "Micro-batches of a lane that are loaded ahead");
  table.Add(Option::Bytes("read-memory-from", std::to_string(preset.read_bytes_min >> 10) + "KiB",
                          "From this size on, workers on one host read gradients and the state "
                          "directly from each other's memory instead of sending them; 0: never")
                .Placeholder("BYTES"));
}

void AddEpilogue(OptionTable& table, const TrainMainSpec& spec) {
  table.AddExample("keelrun --standalone --nproc-per-node 3 " + spec.name + " --steps 60",
                   "three workers on this host, of which two may be killed at any time");
  table.AddExample(spec.name + " --steps 60", "without a launcher; the last line is the same");
  table.AddExample(spec.name + " --steps 60 --checkpoint-dir /tmp/ckpts --save-every 20",
                   "stop it at any time (SIGTERM): the same command resumes it");
  table.AddExitCode(kExitFinished, "finished, or stopped by its launcher");
  table.AddExitCode(kExitFailed,
                    "failed, or refused by the job for its numerics or protocol version");
  table.AddExitCode(kExitUsage, "the options are not valid; nothing was started");
  table.AddExitCode(kExitStopped, "without a launcher: stopped, and saved if any step was made; "
                                  "the same command resumes it");
  table.AddExitCode(kExitUnsaved, "without a launcher: stopped, but not saved");
  table.AddExitCode(kExitRefused, "the checkpoint directory is of another job, is in use, or "
                                  "cannot be written; or training has finished, but its output "
                                  "could not be written to stdout");
}

ProgramTable MakeTable(const TrainMainSpec& spec) {
  OptionTable table(spec.name, spec.about);
  AddTrainOptions(table, spec.defaults);
  AddLogOptions(table);
  AddKeepOptions(table);
  const size_t own_from = table.options().size();
  if (spec.add_options) {
    table.Section("This program's own");
    spec.add_options(table);
  }
  AddEpilogue(table, spec);
  return {std::move(table), own_from};
}

Result<TrainConfig> ConfigFrom(const Options& options, TrainConfig config) {
  config.steps = static_cast<uint64_t>(options.Integer("steps"));
  config.lanes = static_cast<uint64_t>(options.Integer("lanes"));
  config.lane_batch = static_cast<uint64_t>(options.Integer("lane-batch"));
  config.seed = static_cast<uint64_t>(options.Integer("seed"));
  config.update.learning_rate = options.Real("lr");
  KEEL_TRY_ASSIGN(config.update.schedule, Schedule::Parse(options.Text("schedule")));
  config.update.clip_norm.reset();
  if (options.Real("clip-norm") > 0) config.update.clip_norm = options.Real("clip-norm");
  KEEL_TRY_ASSIGN(config.update.non_finite, ParseNonFinite(options.Text("non-finite")));
  KEEL_TRY_ASSIGN(config.precision, ParsePrecision(options.Text("precision")));
  if (config.precision == Precision::kFp16) config.update.loss_scale.emplace();
  const Result<c10::Device> device = ParseDevice(options.Text("device"), OwnEnvironment());
  if (!device.ok()) return device.error().Doing("--device");
  config.device = *device;
  KEEL_TRY_ASSIGN(config.numerics.numerics, ParseNumerics(options.Text("numerics")));
  config.numerics.threads = static_cast<int>(options.Integer("threads"));
  config.loader.threads = static_cast<int>(options.Integer("load-threads"));
  config.loader.ahead = static_cast<size_t>(options.Integer("load-ahead"));
  config.read_bytes_min = options.Bytes("read-memory-from");
  if (config.read_bytes_min == 0) config.read_bytes_min = EpochGroup::kNeverRead;
  config.reduce = options.Text("reduce") == kReduceNames[0] ? Reduce::kTree : Reduce::kAllReduce;
  return config;
}

// As std::to_string() writes it, with six digits after the point, if that is exact.
std::string ExactText(double number) {
  const std::string usual = std::to_string(number);
  return std::strtod(usual.c_str(), nullptr) == number ? usual : NumberText(number);
}

// All that must be the same on every worker; a worker that differs is refused at the door.
Result<std::string> FingerprintOf(TrainState& state, const RunConfig& run) {
  const TrainConfig& config = state.config();
  KEEL_TRY_ASSIGN(std::string device_name, DeviceName(config.device));
  KEEL_TRY_ASSIGN(Fingerprint fingerprint,
                  HostFingerprint({.numerics = config.numerics.numerics,
                                   .device = config.device,
                                   .device_name = std::move(device_name),
                                   .precision = config.precision,
                                   .lanes = config.lanes,
                                   .lane_batch = config.lane_batch}));
  // A worker that stopped earlier would leave the others waiting for its lanes.
  fingerprint.Add("steps", std::to_string(config.steps));
  fingerprint.Add("seed", std::to_string(config.seed));
  fingerprint.Add("samples", std::to_string(state.program().dataset->size()));
  if (const std::string data = state.program().dataset->Identity(); !data.empty()) {
    fingerprint.Add("data", data);
  }
  fingerprint.Add("reduce", kReduceNames[static_cast<int>(config.reduce)]);
  fingerprint.Add("rate", ExactText(config.update.learning_rate));
  fingerprint.Add("schedule", config.update.schedule.Text());
  fingerprint.Add("clip_norm", ExactText(config.update.clip_norm.value_or(0)));
  fingerprint.Add("non_finite", NonFiniteName(config.update.non_finite));
  fingerprint.Add("optimizer", state.program().optimizer->Text());
  AddOptions(run, &fingerprint);
  fingerprint.Add("layout", state.registry().LayoutDigest().Hex().substr(0, 16));
  return fingerprint.Text();
}

std::string LastLine(TrainState& state) {
  return "final step=" + std::to_string(state.step()) + " trail=" + state.trail().Hex() +
         " digest=" + state.registry().StateDigest().Hex();
}

void PrintResumed(const TrainState& state, const std::string& from, const Digest& digest) {
  PrintOut("resumed step=%s trail=%s digest=%s from=%s\n", std::to_string(state.step()).c_str(),
           state.trail().Hex().c_str(), digest.Hex().c_str(), from.c_str());
}

// The first rank of a program that has finished prints its last line. If stdout did not take all
// output, the error says so and contains that line.
Status TellFinished(TrainState& state, const TrainOutcome& outcome) {
  const std::string last = outcome.first_rank ? LastLine(state) : "";
  if (!last.empty()) (void)PrintOutText(last + "\n");
  const Status printed = OutputStatus();
  if (printed.ok()) return printed;
  std::string text = "training has finished";
  if (outcome.saved_step) text += " and is saved";
  text += ", but not all of its output could be written (" + printed.error().message + ")";
  if (!last.empty()) text += "; its last line is: " + last;
  return Error{printed.error().code, text};
}

void Complain(const TrainMainSpec& spec, const std::string& text) {
  std::fprintf(stderr, "%s: %s\n", spec.name.c_str(), text.c_str());
}

// The exit code of a program that only prints. A reader that has gone has seen all it wants.
int CodeOfOutput(const TrainMainSpec& spec, const Status& printed) {
  if (printed.ok() || printed.error().code == Code::kPeerLost) return kExitFinished;
  Complain(spec, printed.error().message);
  return kExitFailed;
}

int CodeOf(const TrainOutcome& outcome, bool supervised) {
  if (!outcome.refused.empty()) return kExitRefused;
  if (outcome.finished || supervised) return kExitFinished;
  return outcome.saved_step ? kExitStopped : kExitUnsaved;
}

// Whether no supervisor has started this program.
bool IsAlone() { return OwnEnvironment().count(kControlFdVariable) == 0; }

// The launcher's name of the job.
std::string JobName(const Environment& environment) {
  const auto found = environment.find("TORCHELASTIC_RUN_ID");
  return found == environment.end() ? "alone" : found->second;
}

// The folder of the lease of the launcher's job; empty: there is none.
std::string LeaseFolder(const Environment& environment) {
  const auto found = environment.find(kLeaseVariable);
  return found == environment.end() || IsAlone() ? "" : found->second;
}

// Whether this is the first rank of the job's first epoch, which looks for a checkpoint. A worker
// that is started later receives the state from others.
bool MayResume(const ResumeConfig& config) {
  if (!config.resume || config.root.empty()) return false;
  const Environment environment = OwnEnvironment();
  const auto rank = environment.find("RANK");
  return rank == environment.end() ? IsAlone() : rank->second == "0";
}

Result<int> RunTrainer(const TrainMainSpec& spec, TrainState& state, WorkerLink* link,
                       SignalWishes* signals, KeepConfig keep) {
  KEEL_TRY_ASSIGN(const std::string fingerprint, FingerprintOf(state, keep.resume.config));
  PosixFiles files;
  keep.checkpoint.fingerprint = keep.resume.fingerprint = fingerprint;
  keep.checkpoint.job = JobName(OwnEnvironment());
  keep.checkpoint.lease = LeaseFolder(OwnEnvironment());
  KEEL_TRY_ASSIGN(const auto checkpointer,
                  Checkpointer::Open(state, keep.checkpoint, files, RealClock()));
  Keeping keeping{*checkpointer, keep.resume, files,
                  [&](const std::string& from, const Digest& digest) {
                    PrintResumed(state, from, digest);
                  }};
  std::optional<ResumeAhead> ahead;
  // Not for a GPU: copies to it would come from another thread, and another stream.
  if (MayResume(keep.resume) && state.config().device.is_cpu()) {
    keeping.ahead = &ahead.emplace(state, files,
                                   ResumeAhead::What{keep.resume.root, fingerprint,
                                                     keep.resume.allow_inexact});
  }
  Keeping* const kept = keep.wanted() ? &keeping : nullptr;
  Trainer trainer(state, fingerprint, {.link = link, .keeping = kept, .signals = signals});
  if (link == nullptr && signals != nullptr && signals->stop().cancelled()) {
    return kExitStopped;   // before its first step: nothing is lost
  }
  KEEL_TRY_ASSIGN(TrainOutcome outcome, trainer.Run());
  if (outcome.finished) {
    // Another attempt would only train again, or fail to print again: nobody shall begin one.
    const Status told = TellFinished(state, outcome);
    if (!told.ok()) outcome.refused = told.error().message;
    if (!told.ok() && link != nullptr) {
      (void)link->Send(ByeMessage{kExitRefused, outcome.refused});
      (void)link->Flush(RealClock().Monotonic() + kTeardownLimit);
    }
  }
  if (!outcome.refused.empty()) Complain(spec, outcome.refused);
  return CodeOf(outcome, link != nullptr);
}

// Does what the options ask for instead of training.
Result<int> DoInstead(const TrainMainSpec& spec, const TrainConfig& config,
                      const Options& options) {
  torch::manual_seed(config.seed);
  KEEL_TRY_ASSIGN(const Status done, CatchTorch("doing what the options ask for", [&] {
                    return spec.instead.run(config, options);
                  }));
  if (!done.ok() && done.error().code != Code::kPeerLost) return done.error();
  return CodeOfOutput(spec, OutputStatus());
}

// A worker that needs more threads than there are processors waits for itself. The first worker of
// a host logs that for all.
void TellOfThreads(int threads) {
  const Environment environment = OwnEnvironment();
  const auto local_rank = environment.find("LOCAL_RANK");
  const int processors = UsableProcessors();
  const bool is_first = local_rank == environment.end() || local_rank->second == "0";
  if (!is_first || threads <= processors) return;
  LogWarn("threads-above-processors",
          {{"threads", threads},
           {"processors", processors},
           {"note", "this will be slow; results depend on --threads, so a job that has begun "
                    "keeps it"}});
}

Result<int> Train(const TrainMainSpec& spec, const TrainConfig& config, const KeepConfig& keep,
                  const Options& options) {
  const bool asks_other = spec.instead.wanted && spec.instead.wanted(options);
  // This comes before the first thread. A supervised worker with nowhere to save leaves signals
  // alone: its supervisor ends it by them.
  std::unique_ptr<SignalWishes> signals;
  if (!asks_other && (!keep.checkpoint.root.empty() || IsAlone())) {
    KEEL_TRY_ASSIGN(signals, SignalWishes::Open());
  }
  EndEarlyStop();
  TellOfThreads(config.numerics.threads);
  KEEL_TRY(PinNumerics(config.numerics));
  KEEL_TRY(OpenDevice(config.device));
  if (asks_other) return DoInstead(spec, config, options);
  // This comes before threads, and before LibTorch is busy: a break must be heard while the model
  // is built.
  Result<std::unique_ptr<WorkerLink>> link = WorkerLink::FromEnvironment(OwnEnvironment());
  if (!link.ok() && link.error().code != Code::kNotFound) return link.error();
  const ReadAhead ahead(MayResume(keep.resume) ? keep.resume.root : "");
  torch::manual_seed(config.seed);
  KEEL_TRY_ASSIGN(Result<TrainProgram> program,
                  CatchTorch("building the program", [&] { return spec.make(config, options); }));
  if (!program.ok()) return program.error();
  LogRun(options, config, *program);
  KEEL_TRY_ASSIGN(const auto state, TrainState::Make(config, *std::move(program)));
  return RunTrainer(spec, *state, link.ok() ? link->get() : nullptr, signals.get(), keep);
}

int Report(const TrainMainSpec& spec, const Result<int>& code) {
  if (code.ok()) return *code;
  Complain(spec, code.error().message);
  return kExitFailed;
}

int Misused(const TrainMainSpec& spec, const Error& error) {
  Complain(spec, error.message);
  return kExitUsage;
}

}  // namespace

int TrainMain(int argc, char** argv, const TrainMainSpec& spec) {
  const Status streams = OpenClosedStreams();
  if (!streams.ok()) return Report(spec, streams.error());
  KeepFreedMemory();
  PrepareForGroups();
  RouteTorchLog();
  OpenCudaWhereThereIsADriver();
  const auto [table, own_from] = MakeTable(spec);
  const Result<Options> options = ParseOptions(table, RealInputs(argc, argv));
  if (!options.ok()) return Misused(spec, options.error());
  if (options->Flag("help")) {
    return CodeOfOutput(spec, PrintOutText(HelpText(table, TerminalWidth())));
  }
  if (options->Flag("print-config")) {
    return CodeOfOutput(spec, PrintOutText(options->ConfigText()));
  }
  const Result<TrainConfig> config = ConfigFrom(*options, spec.defaults);
  if (!config.ok()) return Misused(spec, config.error());
  Result<KeepConfig> keep = KeepConfigFrom(*options);
  if (!keep.ok()) return Misused(spec, keep.error());
  keep->resume.config = RunConfigOf(*options, own_from);
  keep->checkpoint.config = SavedOf(keep->resume.config);
  const int code = Report(spec, Train(spec, *config, *keep, *options));
  (void)EpochGroup::AwaitTeardown(kTeardownLimit);
  return code;
}

}  // namespace keel
