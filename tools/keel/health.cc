// `keel health`: whether this machine is fit to train.
#include <memory>

#include "base/environment.h"
#include "base/text.h"
#include "elastic/process/program_path.h"
#include "store/find_module.h"
#include "tools/keel/commands.h"
#include "tools/keel/health_cpu.h"
#include "tools/keel/health_gpu_product.h"
#include "tools/keel/health_look.h"
#include "tools/keel/text_table.h"

namespace keel {
namespace {

constexpr double kSecondsMost = 86400;
// Lies with what programs load, in the build as when installed.
constexpr const char* kGpuProductModule = "gpu_product.py";

std::vector<HealthFinding> LookAtProcessors(Duration duration, Clock& clock) {
  const auto exact = std::make_unique<SquareMatrix>(ExactProduct(KnownFactors()));
  return ProcessorFindings(ComputeOnEach(OwnProcessors(), ProductKernels(), duration, clock),
                           *exact);
}

bool IsNamed(const Options& options, const std::string& name) {
  return options.Source(name).kind != OptionSource::Kind::kDefault;
}

Result<std::vector<HealthFinding>> LookAtKernelLog(const Options& options) {
  const std::string& path = options.Text("kernel-log");
  if (path.empty()) {
    return std::vector<HealthFinding>{
        {"xid", Fitness::kUnknown, "the kernel's log was not to be read (--kernel-log is empty)"}};
  }
  return LookAtXids(IsNamed(options, "kernel-log") ? path : "", options.Time("limit"), "");
}

// What the user named, else the Python that keelrun would take.
std::string PythonFor(const Options& options) {
  const std::string own = VariableOf(OwnEnvironment(), "PYTHON_EXEC");
  return IsNamed(options, "python") || own.empty() ? options.Text("python") : own;
}

// What was named and is not there is told before anything takes its time.
Status CheckNamed(const Options& options) {
  if (!IsNamed(options, "python") || options.Text("python").empty()) return Ok();
  return CheckProgram(options.Text("python"), SearchPath(OwnEnvironment()));
}

Result<std::vector<HealthFinding>> ComputeOn(const GpuLook& look, const Options& options) {
  const auto nothing = [](const std::string& why, const std::string& cure = "") {
    return std::vector<HealthFinding>{NoGpuProduct(why, cure)};
  };
  const ProgramQuestion question{PythonFor(options), IsNamed(options, "python"),
                                 options.Time("python-limit")};
  if (question.program.empty()) {
    return nothing("GPUs were not to be computed with (--python is empty)");
  }
  if (!look.has_gpu) return nothing("there is no GPU of NVIDIA's to compute with");
  if (look.is_silent) {
    return nothing("GPUs are not computed with, since " + options.Text("nvidia-smi") +
                   " could not ask all of them");
  }
  KEEL_TRY_ASSIGN(const std::string prefix, OwnPrefix());
  const Result<std::string> module = FindModule(prefix, kGpuProductModule);
  if (!module.ok()) {
    return nothing("this keel lacks what computes on GPUs: " + module.error().message,
                   "install keel with the files that come with it");
  }
  return ComputeOnGpus(question, *module, options.Real("seconds"));
}

Result<std::vector<HealthFinding>> LookAtGpus(const World& world, const Options& options) {
  const ProgramQuestion question{options.Text("nvidia-smi"), IsNamed(options, "nvidia-smi"),
                                 options.Time("limit")};
  if (question.program.empty()) {
    const std::string why = "GPUs were not to be asked (--nvidia-smi is empty)";
    return std::vector<HealthFinding>{{"gpu", Fitness::kUnknown, why},
                                      NoGpuProduct(why + ", nor to be computed with")};
  }
  KEEL_TRY_ASSIGN(GpuLook look, AskGpus(question, world.files, ""));
  KEEL_TRY_ASSIGN(const std::vector<HealthFinding> of_products, ComputeOn(look, options));
  look.findings.insert(look.findings.end(), of_products.begin(), of_products.end());
  return look.findings;
}

TextTable::Cell FitnessCell(Fitness fitness, const Paint& paint) {
  const std::string name(FitnessName(fitness));
  switch (fitness) {
    case Fitness::kFit: return {name, paint.Good(name)};
    case Fitness::kUnfit: return {name, paint.Bad(name)};
    case Fitness::kUnknown: break;
  }
  return {name, paint.Warn(name)};
}

Outcome OutcomeOf(const std::vector<HealthFinding>& findings, const Paint& paint) {
  Outcome outcome;
  const std::string sentence = HealthSentence(findings);
  outcome.exit_code = IsFit(findings) ? 0 : kExitNo;
  outcome.json = {{"fit", IsFit(findings)}, {"sentence", sentence}, {"findings", Json::array()}};
  TextTable table({"CHECK", "VERDICT", "FOUND"});
  for (const HealthFinding& one : findings) {
    table.Add({{one.check},
               FitnessCell(one.fitness, paint),
               {one.what + (one.cure.empty() ? "" : "; cure: " + one.cure)}});
    Json json = {{"check", one.check}, {"verdict", FitnessName(one.fitness)}, {"found", one.what}};
    if (!one.cure.empty()) json["cure"] = one.cure;
    outcome.json["findings"].push_back(std::move(json));
  }
  outcome.text = table.Text() + sentence + "\n";
  return outcome;
}

}  // namespace

OptionTable HealthTable() {
  OptionTable table = CommandTable(
      "health",
      "Says whether this machine is fit to train. Each processor that this process may run on "
      "computes a matrix product that is known; the kernel is asked for uncorrected errors of "
      "memory and for machine checks, its log for errors of NVIDIA's GPUs (Xid), which may take "
      "root to read, and nvidia-smi for their faults. Then each GPU computes known products, too, "
      "with the PyTorch of a Python. What nobody tells is not known, and does not make the "
      "machine unfit. The last line says in a sentence what is unfit.",
      "", "the machine is unfit: the last line says why");
  table.Add(Option::Real("seconds", 1,
                         "How long the processors compute, about, and then all GPUs at the same "
                         "time; 0: once in each way")
                .RealRange(0, kSecondsMost));
  table.Add(Option::Text("nvidia-smi", "nvidia-smi",
                         "The program that is asked for GPUs; empty: they are neither asked for "
                         "nor computed with")
                .Placeholder("PATH"));
  table.Add(Option::Text("python", "python3",
                         "The Python whose PyTorch computes on GPUs, where there are any; where "
                         "it is not named, $PYTHON_EXEC comes before it; empty: nothing is "
                         "computed on them")
                .Placeholder("PATH"));
  table.Add(Option::Text("kernel-log", "/dev/kmsg",
                         "The kernel's log, or a file that was kept of one, as of dmesg or of a "
                         "system's log; empty: it is not read")
                .Placeholder("FILE"));
  table.Add(Option::Time("limit", "20s",
                         "How long nvidia-smi may take, and reading the kernel's log. Where there "
                         "is a GPU, it makes the machine unfit if nvidia-smi takes longer")
                .Range(std::chrono::milliseconds(1), std::chrono::hours(1)));
  table.Add(Option::Time("python-limit", "30s",
                         "How long the Python may take beside --seconds, as to import PyTorch. "
                         "Where it takes longer, GPUs that it has not told of are not known")
                .Range(std::chrono::milliseconds(1), std::chrono::hours(1)));
  table.AddExample("keel health", "Before a job begins, on each of its machines");
  table.AddExample("keelrun --health-check=\"keel health\" --standalone train.py",
                   "Before workers start, and start again");
  table.AddExample("keel health --seconds 600 --nvidia-smi ''",
                   "Ten minutes of all processors, and nothing of GPUs");
  table.AddExample("keel health --python /opt/job/bin/python --seconds 60",
                   "A minute of all processors and one of all GPUs, by the job's own PyTorch");
  table.AddExample("keel health --json | jq -r '.findings[] | select(.cure) | .cure'",
                   "What to do");
  return table;
}

Result<Outcome> RunHealth(const World& world, const Options& options) {
  KEEL_TRY(CheckNamed(options));
  KEEL_TRY_ASSIGN(const std::vector<HealthFinding> of_log, LookAtKernelLog(options));
  const Duration duration(static_cast<int64_t>(options.Real("seconds") * 1e9));
  std::vector<HealthFinding> findings = LookAtProcessors(duration, world.clock);
  for (HealthFinding& one : LookAtMemory(world.files, "")) findings.push_back(std::move(one));
  findings.push_back(LookAtMachineChecks(world.files, ""));
  findings.insert(findings.end(), of_log.begin(), of_log.end());
  KEEL_TRY_ASSIGN(const std::vector<HealthFinding> of_gpus, LookAtGpus(world, options));
  findings.insert(findings.end(), of_gpus.begin(), of_gpus.end());
  return OutcomeOf(findings, world.paint);
}

}  // namespace keel
