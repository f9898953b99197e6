// The engine as TorchBind classes, which every Python loads: torch.classes.evenkeel.Engine, and the
// functions of torch.ops.evenkeel. Only python/evenkeel/ uses them; what they take and give is
// described there.
#include <torch/custom_class.h>
#include <torch/torch.h>

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/json.h"
#include "base/option_help.h"
#include "base/print_out.h"
#include "base/process_setup.h"
#include "elastic/protocol/exit_codes.h"
#include "python/checked.h"
#include "python/checkpoints.h"
#include "python/stray_gradients.h"
#include "store/torch_log.h"
#include "store/torch_version.h"
#include "trainer/driver.h"
#include "trainer/file_datasets.h"
#include "trainer/group/epoch_group.h"
#include "trainer/nccl_module.h"
#include "trainer/numerics/numerics.h"
#include "trainer/run_logs.h"
#include "trainer/schedule.h"
#include "trainer/state/device.h"
#include "trainer/tell_misused.h"
#include "trainer/train_options.h"

namespace keel {
namespace {

using Names = std::vector<std::string>;
using Tensors = std::vector<at::Tensor>;

// TorchBind has no unsigned numbers; Python takes them back modulo 2^64.
int64_t Signed(uint64_t number) { return static_cast<int64_t>(number); }

// The script's own options: each setting's type is that of its value.
void AddSettings(const Json& settings, OptionTable& table) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-.";
  for (const auto& [name, value] : settings.items()) {
    const std::string help = "A setting of this script";
    if (name.empty() || name.find_first_not_of(kAllowed) != std::string::npos) {
      throw std::invalid_argument("the setting '" + name + "' needs a name of small letters, "
                                  "digits, '-' and '.', as an option has");
    }
    if (table.Find(name) != nullptr) {
      throw std::invalid_argument("the setting '" + name + "' has the name of an option of the "
                                  "job; give it another one");
    }
    if (!value.is_boolean() && !value.is_number() && !value.is_string()) {
      throw std::invalid_argument("the setting '" + name + "' must be a number, a text or a truth");
    }
    if (value.is_boolean()) {
      table.Add(Option::Flag(name, value.get<bool>(), help));
    } else if (value.is_number_integer()) {
      table.Add(Option::Integer(name, value.get<int64_t>(), help).Placeholder("N"));
    } else if (value.is_number()) {
      table.Add(Option::Real(name, value.get<double>(), help).Placeholder("NUMBER"));
    } else {
      table.Add(Option::Text(name, value.get<std::string>(), help).Placeholder("TEXT"));
    }
  }
}

// `settings`: an object of numbers, texts and truths, as JSON.
TrainOptions Declared(const std::string& name, const std::string& about,
                      const std::string& settings) {
  const Json given = Checked(ParseJson(settings));
  // A lane that is computed again is one more turn of the script's loop, so it must ask for that.
  TrainOptions declared = MakeTrainOptions(
      name, about, {.recheck_every = 0}, [&](OptionTable& table) { AddSettings(given, table); });
  declared.table.AddExitCode(kExitFinished, "the script has ended, or its launcher stopped it");
  declared.table.AddExitCode(kExitFailed, "the script failed, or the job refused it");
  declared.table.AddExitCode(kExitUsage, "the options are not valid; nothing was started");
  declared.table.AddExitCode(kExitStopped, "without a launcher: stopped, and saved if any step "
                                           "was made; the same command resumes it");
  declared.table.AddExitCode(kExitUnsaved, "without a launcher: stopped, but not saved");
  declared.table.AddExitCode(kExitRefused, "the checkpoint directory is of another job, is in "
                                           "use, or cannot be written");
  return declared;
}

OptionInputs InputsOf(const Names& arguments) {
  std::vector<const char*> words = {"evenkeel"};
  for (const std::string& argument : arguments) words.push_back(argument.c_str());
  words.push_back(nullptr);
  return RealInputs(static_cast<int>(words.size()) - 1, words.data());
}

// Whether a script can begin with these options: -1 and nothing; else what it exits with, and what
// it says before. `defaults`: the script's own, as words, too.
std::tuple<int64_t, std::string> Examine(const std::string& name, const std::string& about,
                                         const std::string& settings, const Names& defaults,
                                         const Names& arguments) {
  TrainOptions declared = Declared(name, about, settings);
  const Result<Options> options =
      ParseOptions(declared.table, InputsOf(arguments), defaults, name);
  const auto misused = [&name](const Error& error) -> std::tuple<int64_t, std::string> {
    TellMisused(name + ": " + error.message);
    return {kExitUsage, error.message};
  };
  if (!options.ok()) return misused(options.error());
  if (options->Flag("help")) return {kExitFinished, HelpText(declared.table, TerminalWidth())};
  if (options->Flag("print-config")) return {kExitFinished, options->ConfigText()};
  const Result<TrainRunOptions> read = ReadTrainOptions(*options, declared, {});
  if (!read.ok()) return misused(read.error());
  return {-1, ""};
}

// All samples of a dataset of ours, in order.
std::tuple<at::Tensor, at::Tensor> AllOf(Result<std::unique_ptr<Dataset>> made) {
  const auto dataset = Checked(std::move(made));
  std::vector<uint64_t> indices(dataset->size());
  std::iota(indices.begin(), indices.end(), 0);
  Batch all = Checked(dataset->Load(indices));
  return {std::move(all.data), std::move(all.target)};
}

std::tuple<at::Tensor, at::Tensor> MadeClasses(int64_t seed, int64_t samples,
                                               std::vector<int64_t> shape, int64_t classes) {
  return AllOf(SyntheticClasses({static_cast<uint64_t>(seed), samples, std::move(shape),
                                 classes}));
}

std::tuple<at::Tensor, at::Tensor> MadeText(int64_t seed, int64_t samples, int64_t length,
                                            int64_t vocabulary) {
  return AllOf(SyntheticText({static_cast<uint64_t>(seed), samples, length, vocabulary}));
}

std::tuple<at::Tensor, at::Tensor> ReadRecords(const std::string& path, const std::string& data,
                                               const std::string& target) {
  return AllOf(RecordDataset({.path = path, .data = data, .target = target}));
}

// As it was when the library was loaded: scripts may change theirs.
const Environment& EnvironmentAtStart() {
  static const Environment at_start = OwnEnvironment();
  return at_start;
}

void Prepare(bool pins) {
  (void)EnvironmentAtStart();
  Check(CheckTorchVersion());
  if (pins) Check(PrepareNumerics(Numerics::kPortable));
}

void SetUpProcess() {
  static const bool is_done = [] {
    KeepFreedMemory();
    PrepareForGroups();
    RouteTorchLog();
    OpenCudaWhereThereIsADriver();
    return true;
  }();
  (void)is_done;
}

NamedTensors Named(const Names& names, const Tensors& tensors) {
  if (names.size() != tensors.size()) {
    throw std::invalid_argument(std::to_string(names.size()) + " names for " +
                                std::to_string(tensors.size()) + " tensors");
  }
  NamedTensors named;
  for (size_t i = 0; i < names.size(); ++i) named.push_back({names[i], tensors[i]});
  return named;
}

// What is no number in JSON goes by its name, as Python's float() reads it.
Json Number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

Json JsonOf(const StepReport& report) {
  Json lane_losses = Json::array();
  for (const float loss : report.lane_losses) lane_losses.push_back(Number(loss));
  const std::optional<double> norm = report.outcome.gradient_norm;
  return {{"step", report.step}, {"loss", Number(report.loss)},
          {"lane_losses", std::move(lane_losses)}, {"applied", report.outcome.applied},
          {"learning_rate", Number(report.outcome.learning_rate)},
          {"gradient_norm", norm ? Number(*norm) : Json(nullptr)},
          {"note", report.outcome.note}, {"rank", report.rank}, {"world", report.world},
          {"data_epoch", report.data_epoch}};
}

Json JsonOf(const EvaluationReport& report) {
  return {{"step", report.step}, {"value", Number(report.value)}, {"samples", report.samples},
          {"seconds", std::chrono::duration<double>(report.took).count()},
          {"rank", report.rank}, {"world", report.world}};
}

std::string ReportOf(const ScriptTask& task) {
  using Kind = ScriptTask::Kind;
  if (task.kind == Kind::kStep) return DumpJson(JsonOf(task.step));
  if (task.kind == Kind::kEvaluated) return DumpJson(JsonOf(task.evaluation));
  return {};
}

// Batch, whether of the evaluation, seed, indices.
using Wanted = std::tuple<int64_t, bool, int64_t, std::vector<int64_t>>;
// Kind (-1: nothing to do yet), batch, seed, number, whether all was replaced, batches wanted,
// batches dropped, report, steps made.
using Task = std::tuple<int64_t, int64_t, int64_t, double, bool, std::vector<Wanted>,
                        std::vector<int64_t>, std::string, int64_t>;

Task TaskOf(const ScriptTask& task) {
  std::vector<Wanted> wanted;
  for (const ScriptLoads::Wanted& one : task.news.wanted) {
    wanted.emplace_back(Signed(one.batch), one.is_evaluation, Signed(one.seed),
                        std::vector<int64_t>(one.indices.begin(), one.indices.end()));
  }
  return {static_cast<int64_t>(task.kind), Signed(task.batch), Signed(task.seed), task.number,
          task.is_replaced, std::move(wanted),
          {task.news.dropped.begin(), task.news.dropped.end()}, ReportOf(task),
          Signed(task.made)};
}

class Engine : public torch::CustomClassHolder {
 public:
  Engine(const std::string& name, const std::string& about, const std::string& settings,
         const Names& defaults, const Names& arguments)
      : declared_(Declared(name, about, settings)),
        options_(Checked(ParseOptions(declared_.table, InputsOf(arguments), defaults, name))) {
    SetUpProcess();
    TrainRunOptions wanted = Checked(ReadTrainOptions(options_, declared_, {}));
    wanted.environment = EnvironmentAtStart();
    run_ = Checked(TrainRun::Open(std::move(wanted)));
  }

  // In a child that the script has forked there is none of the threads that would be waited for.
  ~Engine() override {
    if (getpid() == owner_) return;
    (void)driver_.release();
    (void)stray_.release();
    (void)run_.release();
  }

  // The options that shape the loop.
  std::string Config() const {
    const TrainConfig& config = run_->config();
    return DumpJson({{"steps", config.steps}, {"lanes", config.lanes},
                     {"lane_batch", config.lane_batch}, {"seed", config.seed},
                     {"precision", PrecisionName(config.precision)},
                     {"device", config.device.str()},
                     {"schedule", config.update.schedule.Text()},
                     {"learning_rate", config.update.learning_rate},
                     {"load_threads", config.loader.threads},
                     {"numerics", std::string(NumericsName(config.numerics.numerics))}});
  }

  // The settings, as they are.
  std::string Settings() const {
    Json settings = Json::object();
    for (size_t i = declared_.own_from; i < options_.settings().size(); ++i) {
      const auto& [option, value, text, source] = options_.settings()[i];
      switch (option.type) {
        case OptionType::kFlag: settings[option.name] = options_.Flag(option.name); break;
        case OptionType::kInteger: settings[option.name] = options_.Integer(option.name); break;
        case OptionType::kReal: settings[option.name] = options_.Real(option.name); break;
        default: settings[option.name] = options_.Text(option.name);
      }
    }
    return DumpJson(settings);
  }

  void SetModel(const Names& parameters, const Tensors& of_parameters, const Names& buffers,
                const Tensors& of_buffers, const Names& frozen, const Tensors& of_frozen,
                const Names& derived) {
    program_.model = {Named(parameters, of_parameters), Named(buffers, of_buffers),
                      Named(frozen, of_frozen), derived};
  }
  void SetOptimizer(const std::string& text, const Names& names, const Tensors& state) {
    program_.optimizer_text = text;
    program_.optimizer_state = Named(names, state);
  }
  // By name, with the settings that its options have, as JSON.
  void SetOwnOptimizer(const std::string& name, const std::string& settings) {
    const Json given = Checked(ParseJson(settings));
    const NamedTensors& parameters = program_.model.parameters;
    DecayRule decay{.spare_vectors = Checked(Field<bool>(given, "spare_vectors")),
                    .spare_names = Checked(Field<Names>(given, "spare_names"))};
    const double weight_decay = Checked(Field<double>(given, "weight_decay"));
    if (name == "adamw") {
      program_.optimizer = Checked(MakeAdamW(
          parameters, {.beta1 = Checked(Field<double>(given, "beta1")),
                       .beta2 = Checked(Field<double>(given, "beta2")),
                       .eps = Checked(Field<double>(given, "eps")),
                       .weight_decay = weight_decay, .decay = std::move(decay)}));
      return;
    }
    program_.optimizer = Checked(MakeSgd(
        parameters, {.momentum = Checked(Field<double>(given, "momentum")),
                     .nesterov = Checked(Field<bool>(given, "nesterov")),
                     .weight_decay = weight_decay, .decay = std::move(decay)}));
  }
  void SetKept(const Names& names, const Tensors& tensors) {
    program_.kept = Named(names, tensors);
  }
  void SetData(int64_t samples, const std::string& identity) {
    program_.samples = static_cast<uint64_t>(samples);
    program_.data_identity = identity;
  }
  void SetEvaluation(int64_t samples, int64_t every, int64_t batch) {
    program_.evaluation_samples = static_cast<uint64_t>(samples);
    program_.evaluation_every = static_cast<uint64_t>(every);
    program_.evaluation_batch = static_cast<uint64_t>(batch);
  }

  void Begin(bool wants_steps, bool wants_evaluations) {
    program_.wants_steps = wants_steps;
    program_.wants_evaluations = wants_evaluations;
    // Only then is a compiled model taken (_job.py).
    program_.may_compile = run_->config().numerics.numerics == Numerics::kNative;
    program_.add_logs = [this](TrainProgram& program) {
      LogRun(options_, run_->config(), program);
    };
    stray_ = std::make_unique<StrayGradients>(JustTensors(program_.model.parameters));
    // The script prints the last line itself.
    driver_ = Checked(Driver::Begin(*run_, std::move(program_), {.print = [](const auto& line) {
      if (line.starts_with("resumed ")) (void)PrintOutText(line + "\n");
    }}));
  }

  Task Next(int64_t limit_ms) {
    if (answer_) Check(Begun().Answer(*std::exchange(answer_, std::nullopt)));
    const std::optional<ScriptTask> task =
        Checked(Begun().Next(std::chrono::milliseconds(limit_ms)));
    using Kind = ScriptTask::Kind;
    if (task) is_backward_ = task->kind == Kind::kBackward;
    stray_->Forbid(task && task->kind == Kind::kLane);
    return task ? TaskOf(*task) : Task{-1, 0, 0, 0.0, false, {}, {}, "", 0};
  }
  void LeaveOut() { Begun().LeaveOut(); }

  // Heard with the next Next(): after a lane's backward the loop's body goes on until then.
  void Answer(double number, const std::string& error) {
    stray_->Forbid(is_backward_);
    answer_ = ScriptAnswer{number, error};
  }
  void Fail(const std::string& why) { Begun().Fail(why); }
  bool Ended() { return Begun().ended(); }

  // Waits for the end; how it ended, as JSON.
  std::string Join() {
    const Result<TrainResult> result = Begun().Join();
    if (!result.ok()) {
      return DumpJson({{"error", result.error().message}, {"code", kExitFailed}});
    }
    return DumpJson({{"error", ""}, {"code", ExitCodeOf(*result)},
                     {"finished", result->finished}, {"refused", result->refused},
                     {"step", result->step}, {"last_line", result->last_line},
                     {"supervised", result->supervised}, {"lost", result->lost},
                     {"saved_step", result->saved_step ? Json(*result->saved_step) :
                                                         Json(nullptr)}});
  }

  // Signals do again what they did before, and the launcher is told goodbye.
  void Close() {
    driver_.reset();
    stray_.reset();
    run_.reset();
  }

 private:
  Driver& Begun() {
    if (driver_ == nullptr) throw std::runtime_error("the training has not begun, or was closed");
    return *driver_;
  }

  const pid_t owner_ = getpid();
  TrainOptions declared_;
  const Options options_;
  std::unique_ptr<TrainRun> run_;
  ScriptProgram program_;
  std::unique_ptr<StrayGradients> stray_;
  std::optional<ScriptAnswer> answer_;   // what the driver has not heard yet
  bool is_backward_ = false;   // the last task was a lane's backward
  std::unique_ptr<Driver> driver_;
};

std::tuple<Names, Tensors> LoadedState(const std::string& path, const Names& only,
                                       const Names& if_there) {
  std::tuple<Names, Tensors> state;
  for (NamedTensor& one : Checked(ReadState(path, only, if_there))) {
    std::get<Names>(state).push_back(std::move(one.name));
    std::get<Tensors>(state).push_back(std::move(one.tensor));
  }
  return state;
}

void SavedState(const Names& names, const Tensors& tensors, const std::string& path,
                bool replace) {
  Check(WriteState(Named(names, tensors), path, replace));
}

TORCH_LIBRARY(evenkeel, library) {
  library.def("examine(str name, str about, str settings, str[] defaults, "
              "str[] arguments) -> (int, str)", Examine);
  library.def("prepare(bool pins) -> ()", Prepare);
  library.def("synthetic_classes(int seed, int samples, int[] shape, int classes) "
              "-> (Tensor, Tensor)", MadeClasses);
  library.def("synthetic_text(int seed, int samples, int length, int vocabulary) "
              "-> (Tensor, Tensor)", MadeText);
  library.def("records(str path, str data, str target) -> (Tensor, Tensor)", ReadRecords);
  library.def("load_state(str path, str[] only, str[] if_there) -> (str[], Tensor[])", LoadedState);
  library.def("save_state(str[] names, Tensor[] tensors, str path, bool replace) -> ()",
              SavedState);
  library.class_<Engine>("Engine")
      .def(torch::init<const std::string&, const std::string&, const std::string&,
                       const Names&, const Names&>())
      .def("config", &Engine::Config)
      .def("settings", &Engine::Settings)
      .def("set_model", &Engine::SetModel)
      .def("set_optimizer", &Engine::SetOptimizer)
      .def("set_own_optimizer", &Engine::SetOwnOptimizer)
      .def("set_kept", &Engine::SetKept)
      .def("set_data", &Engine::SetData)
      .def("set_evaluation", &Engine::SetEvaluation)
      .def("begin", &Engine::Begin)
      .def("next", &Engine::Next)
      .def("answer", &Engine::Answer)
      .def("leave_out", &Engine::LeaveOut)
      .def("fail", &Engine::Fail)
      .def("ended", &Engine::Ended)
      .def("join", &Engine::Join)
      .def("close", &Engine::Close);
}

}  // namespace
}  // namespace keel
