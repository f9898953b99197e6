// From options to config, to a TrainRun, to exit code.
#include "trainer/train_main.h"

#include <torch/utils.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "base/environment.h"
#include "base/option_help.h"
#include "base/print_out.h"
#include "base/process_setup.h"
#include "elastic/protocol/exit_codes.h"
#include "store/catch_torch.h"
#include "store/torch_log.h"
#include "trainer/early_stop.h"
#include "trainer/group/epoch_group.h"
#include "trainer/job_fingerprint.h"
#include "trainer/nccl_module.h"
#include "trainer/numerics/numerics.h"
#include "trainer/run_logs.h"
#include "trainer/save/keep_options.h"
#include "trainer/state/device.h"
#include "trainer/train_run.h"

namespace keel {
namespace {

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
  table.Add(Option::Choice("reduce",
                           {ReduceName(Reduce::kTree), ReduceName(Reduce::kAllReduce)},
                           ReduceName(preset.reduce),
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
  config.reduce = options.Text("reduce") == ReduceName(Reduce::kTree) ? Reduce::kTree :
                                                                         Reduce::kAllReduce;
  return config;
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

int CodeOf(const TrainResult& result) {
  if (!result.refused.empty()) return kExitRefused;
  if (result.finished || result.supervised) return kExitFinished;
  return result.lost ? kExitUnsaved : kExitStopped;
}

// All lines go to stdout; what it does not take shows in OutputStatus().
TrainOutput ToStdout() {
  return {.print = [](const std::string& line) { (void)PrintOutText(line + "\n"); },
          .status = OutputStatus};
}

// Does what the options ask for instead of training.
Result<int> DoInstead(const TrainMainSpec& spec, const TrainConfig& config,
                      const Options& options) {
  EndEarlyStop();
  KEEL_TRY(BeginComputing(config, OwnEnvironment()));
  torch::manual_seed(config.seed);
  KEEL_TRY_ASSIGN(const Status done, CatchTorch("doing what the options ask for", [&] {
                    return spec.instead.run(config, options);
                  }));
  if (!done.ok() && done.error().code != Code::kPeerLost) return done.error();
  return CodeOfOutput(spec, OutputStatus());
}

Result<int> Train(const TrainMainSpec& spec, const TrainConfig& config, const KeepConfig& keep,
                  const Options& options) {
  KEEL_TRY_ASSIGN(const std::unique_ptr<TrainRun> run,
                  TrainRun::Open({.config = config, .keep = keep,
                                  .environment = OwnEnvironment()}));
  EndEarlyStop();
  KEEL_TRY_ASSIGN(Result<TrainProgram> program,
                  CatchTorch("building the program", [&] { return spec.make(config, options); }));
  if (!program.ok()) return program.error();
  LogRun(options, config, *program);
  KEEL_TRY_ASSIGN(const TrainResult result, run->Run(*std::move(program), ToStdout()));
  if (!result.refused.empty()) Complain(spec, result.refused);
  return CodeOf(result);
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
  const bool asks_other = spec.instead.wanted && spec.instead.wanted(*options);
  return Report(spec, asks_other ? DoInstead(spec, *config, *options) :
                                   Train(spec, *config, *keep, *options));
}

}  // namespace keel
