// From options to config, to a TrainRun, to exit code.
#include "trainer/train_main.h"

#include <torch/utils.h>

#include <csignal>
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
#include "store/torch_version.h"
#include "trainer/early_stop.h"
#include "trainer/group/epoch_group.h"
#include "trainer/group/nccl_links.h"
#include "trainer/nccl_module.h"
#include "trainer/run_logs.h"
#include "trainer/tell_misused.h"
#include "trainer/train_options.h"
#include "trainer/train_run.h"

namespace keel {
namespace {

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

TrainOptions MakeTable(const TrainMainSpec& spec) {
  TrainOptions declared =
      MakeTrainOptions(spec.name, spec.about, spec.defaults, spec.add_options);
  AddEpilogue(declared.table, spec);
  return declared;
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

Result<int> Train(const TrainMainSpec& spec, const TrainRunOptions& wanted,
                  const Options& options) {
  const TrainConfig& config = wanted.config;
  KEEL_TRY_ASSIGN(const std::unique_ptr<TrainRun> run, TrainRun::Open(wanted));
  EndEarlyStop();
  KEEL_TRY_ASSIGN(Result<TrainProgram> program,
                  CatchTorch("building the program", [&] { return spec.make(config, options); }));
  if (!program.ok()) return program.error();
  LogRun(options, config, *program);
  KEEL_TRY_ASSIGN(const TrainResult result, run->Run(*std::move(program), ToStdout()));
  if (!result.refused.empty()) Complain(spec, result.refused);
  return ExitCodeOf(result);
}

// A file that grows beyond `ulimit -f` is an error of the write() then, which costs a log or a
// checkpoint, and no death. What somebody has set on purpose stays.
void IgnoreFileSizeSignal() {
  struct sigaction current {};
  const bool is_known = sigaction(SIGXFSZ, nullptr, &current) == 0;
  const bool has_handler = (current.sa_flags & SA_SIGINFO) != 0;
  if (!is_known || has_handler || current.sa_handler != SIG_DFL) return;
  (void)std::signal(SIGXFSZ, SIG_IGN);
}

int Report(const TrainMainSpec& spec, const Result<int>& code) {
  if (code.ok()) return *code;
  Complain(spec, code.error().message);
  return kExitFailed;
}

int Misused(const TrainMainSpec& spec, const Error& error) {
  Complain(spec, error.message);
  TellMisused(spec.name + ": " + error.message);
  return kExitUsage;
}

}  // namespace

int TrainMain(int argc, char** argv, const TrainMainSpec& spec) {
  const Status streams = OpenClosedStreams();
  if (!streams.ok()) return Report(spec, streams.error());
  const Status fits = CheckTorchVersion();
  if (!fits.ok()) return Report(spec, fits.error());
  IgnoreFileSizeSignal();
  KeepFreedMemory();
  PrepareForGroups();
  RouteTorchLog();
  OpenCudaWhereThereIsADriver();
  const TrainOptions declared = MakeTable(spec);
  const Result<Options> options = ParseOptions(declared.table, RealInputs(argc, argv));
  if (!options.ok()) return Misused(spec, options.error());
  if (options->Flag("help")) {
    return CodeOfOutput(spec, PrintOutText(HelpText(declared.table, TerminalWidth())));
  }
  if (options->Flag("print-config")) {
    return CodeOfOutput(spec, PrintOutText(options->ConfigText()));
  }
  Result<TrainRunOptions> wanted = ReadTrainOptions(*options, declared, spec.defaults);
  if (!wanted.ok()) return Misused(spec, wanted.error());
  wanted->environment = OwnEnvironment();
  const bool asks_other = spec.instead.wanted && spec.instead.wanted(*options);
  const int code = Report(spec, asks_other ? DoInstead(spec, wanted->config, *options) :
                                             Train(spec, *wanted, *options));
  EndBesideNccl(code);
  return code;
}

}  // namespace keel
