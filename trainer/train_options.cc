// Declares the options of TrainConfig, of the log and of what is kept; reads them back.
#include "trainer/train_options.h"

#include <utility>

#include "base/environment.h"
#include "base/text.h"
#include "trainer/group/epoch_group.h"
#include "trainer/job_fingerprint.h"
#include "trainer/numerics/numerics.h"
#include "trainer/run_logs.h"
#include "trainer/save/keep_options.h"
#include "trainer/state/device.h"

namespace keel {
namespace {

void AddRecheckOptions(OptionTable& table, const TrainConfig& preset) {
  const std::string every = preset.recheck_every ? std::to_string(*preset.recheck_every) : "auto";
  table.Add(Option::Text("recheck-every", every,
                         "Steps between those in which each worker computes a lane of another host "
                         "again, and all compare the results; auto: what costs about half a "
                         "percent; 0: never")
                .Placeholder("N"));
  table.Add(Option::Choice("on-corruption", {"stop", "continue"},
                           preset.on_corruption == OnCorruption::kStop ? "stop" : "continue",
                           "What to do where two workers come to other results of a lane each "
                           "time, and nobody can tell which one is wrong"));
  table.Add(Option::Text("evidence-dir", preset.evidence_dir,
                         "Where to save what shows that a lane was computed wrongly, for keel "
                         "recompute: a directory or s3://BUCKET/PREFIX; without it the checkpoint "
                         "directory, if there is one; none: nowhere")
                .Placeholder("DIR"));
}

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
                           "What to do at a step whose loss is NaN or infinite, or whose gradients "
                           "are with fp16 at the lowest loss scale: stop, or skip it"));
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
  table.Add(Option::Choice("lane-placement", {"auto", "even"},
                           preset.places_lanes ? "auto" : "even",
                           "Who computes which lanes: auto: as it takes least time, by what lanes "
                           "and the network are measured to take; even: an even split"));
  table.Add(Option::Choice("joins", {"beside", "wait"}, preset.joins_beside ? "beside" : "wait",
                           "How a newcomer receives a large state: beside: while the others make "
                           "their steps; wait: all wait for it"));
  AddRecheckOptions(table, preset);
  table.Add(Option::Integer("load-threads", preset.loader.threads,
                            "Threads that load samples ahead, if the dataset allows it; 0: none")
                .Range(0, 1024).Placeholder("N"));
  count("load-ahead", preset.loader.ahead, 1024, "Micro-batches of a lane that are loaded ahead");
  table.Add(Option::Bytes("read-memory-from", std::to_string(preset.read_bytes_min >> 10) + "KiB",
                          "From this size on, workers on one host read gradients and the state "
                          "directly from each other's memory instead of sending them; 0: never")
                .Placeholder("BYTES"));
}

// "auto", or a number.
Result<std::optional<uint64_t>> ParseRecheckEvery(const std::string& text) {
  if (text == "auto") return std::optional<uint64_t>();
  const Result<int64_t> number = ParseInteger(text);
  if (number.ok() && *number >= 0) return std::optional<uint64_t>(*number);
  return Error{Code::kInvalid, "--recheck-every: '" + text + "' is neither a number of steps nor "
                               "auto"};
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
  KEEL_TRY_ASSIGN(config.recheck_every, ParseRecheckEvery(options.Text("recheck-every")));
  config.on_corruption = options.Text("on-corruption") == "stop" ? OnCorruption::kStop
                                                                 : OnCorruption::kContinue;
  config.evidence_dir = options.Text("evidence-dir");
  KEEL_TRY(CheckIsNoForeignUrl("evidence-dir", config.evidence_dir));
  config.joins_beside = options.Text("joins") == "beside";
  config.places_lanes = options.Text("lane-placement") == "auto";
  config.loader.threads = static_cast<int>(options.Integer("load-threads"));
  config.loader.ahead = static_cast<size_t>(options.Integer("load-ahead"));
  config.read_bytes_min = options.Bytes("read-memory-from");
  if (config.read_bytes_min == 0) config.read_bytes_min = EpochGroup::kNeverRead;
  config.reduce = options.Text("reduce") == ReduceName(Reduce::kTree) ? Reduce::kTree :
                                                                         Reduce::kAllReduce;
  return config;
}

}  // namespace

TrainOptions MakeTrainOptions(const std::string& name, const std::string& about,
                              const TrainConfig& defaults,
                              const std::function<void(OptionTable& table)>& add_own) {
  OptionTable table(name, about);
  AddTrainOptions(table, defaults);
  AddLogOptions(table);
  AddKeepOptions(table);
  const size_t own_from = table.options().size();
  if (add_own) {
    table.Section("This program's own");
    add_own(table);
  }
  return {std::move(table), own_from};
}

Result<TrainRunOptions> ReadTrainOptions(const Options& options, const TrainOptions& declared,
                                         const TrainConfig& defaults) {
  TrainRunOptions read;
  KEEL_TRY_ASSIGN(read.config, ConfigFrom(options, defaults));
  KEEL_TRY_ASSIGN(read.keep, KeepConfigFrom(options));
  KEEL_TRY(CheckLogOptions(options));
  read.keep.resume.config = RunConfigOf(options, declared.own_from);
  read.keep.checkpoint.config = SavedOf(read.keep.resume.config);
  return read;
}

}  // namespace keel
