// `keel health`: whether this machine is fit to train.
#include <memory>

#include "base/text.h"
#include "tools/keel/commands.h"
#include "tools/keel/health_cpu.h"
#include "tools/keel/health_look.h"
#include "tools/keel/text_table.h"

namespace keel {
namespace {

constexpr double kSecondsMost = 86400;

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

Result<std::vector<HealthFinding>> LookAtGpus(const World& world, const Options& options) {
  const std::string& program = options.Text("nvidia-smi");
  if (program.empty()) {
    return std::vector<HealthFinding>{
        {"gpu", Fitness::kUnknown, "GPUs were not to be asked (--nvidia-smi is empty)"}};
  }
  return AskGpus({program, IsNamed(options, "nvidia-smi"), options.Time("limit")}, world.files, "");
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
      "root to read, and nvidia-smi for their faults. What nobody tells is not known, and does "
      "not make the machine unfit. GPUs are asked, and not computed with. The last line says in a "
      "sentence what is unfit.",
      "", "the machine is unfit: the last line says why");
  table.Add(Option::Real("seconds", 1,
                         "How long the processors compute, about; 0: once in each way")
                .RealRange(0, kSecondsMost));
  table.Add(Option::Text("nvidia-smi", "nvidia-smi",
                         "The program that is asked for GPUs; empty: they are not asked for")
                .Placeholder("PATH"));
  table.Add(Option::Text("kernel-log", "/dev/kmsg",
                         "The kernel's log, or a file that was kept of one, as of dmesg or of a "
                         "system's log; empty: it is not read")
                .Placeholder("FILE"));
  table.Add(Option::Time("limit", "20s",
                         "How long nvidia-smi may take, and reading the kernel's log. Where there "
                         "is a GPU, it makes the machine unfit if nvidia-smi takes longer")
                .Range(std::chrono::milliseconds(1), std::chrono::hours(1)));
  table.AddExample("keel health", "Before a job begins, on each of its machines");
  table.AddExample("keelrun --health-check=\"keel health\" --standalone train.py",
                   "Before workers start, and start again");
  table.AddExample("keel health --seconds 600 --nvidia-smi ''",
                   "Ten minutes of all processors, and no question of GPUs");
  table.AddExample("keel health --json | jq -r '.findings[] | select(.cure) | .cure'",
                   "What to do");
  return table;
}

Result<Outcome> RunHealth(const World& world, const Options& options) {
  const Duration duration(static_cast<int64_t>(options.Real("seconds") * 1e9));
  std::vector<HealthFinding> findings = LookAtProcessors(duration, world.clock);
  for (HealthFinding& one : LookAtMemory(world.files, "")) findings.push_back(std::move(one));
  findings.push_back(LookAtMachineChecks(world.files, ""));
  KEEL_TRY_ASSIGN(const std::vector<HealthFinding> of_log, LookAtKernelLog(options));
  findings.insert(findings.end(), of_log.begin(), of_log.end());
  KEEL_TRY_ASSIGN(const std::vector<HealthFinding> of_gpus, LookAtGpus(world, options));
  findings.insert(findings.end(), of_gpus.begin(), of_gpus.end());
  return OutcomeOf(findings, world.paint);
}

}  // namespace keel
