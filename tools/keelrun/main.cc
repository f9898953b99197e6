// `keelrun`: the launcher. So far it reads its options and says what it would do.
// Promises   exit codes as in elastic/job_exit.h; what it was asked to show goes to stdout, all
//            else to stderr.
// Does not   launch yet: it says so.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/log.h"
#include "base/option_help.h"
#include "base/process_setup.h"
#include "base/random.h"
#include "elastic/job_exit.h"
#include "elastic/launch_options.h"

namespace {

using namespace keel;

Status WriteTo(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(descriptor, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return Error{Code::kIo, std::string("writing output: ") + std::strerror(errno)};
    text.remove_prefix(static_cast<size_t>(wrote));
  }
  return Ok();
}

JobExit Fail(JobExit code, const std::string& why) {
  // What cannot be told to stderr cannot be told at all.
  (void)WriteTo(STDERR_FILENO, "keelrun: " + why + "\n");
  return code;
}

JobExit Misused(const OptionTable& table, const std::string& why) {
  return Fail(JobExit::kUsage, why + "\nusage: keelrun [options] " + table.positional_usage() +
                                   "\n(see keelrun --help)");
}

JobExit Show(const std::string& text) {
  const Status status = WriteTo(STDOUT_FILENO, text);
  return status.ok() ? JobExit::kFinished : Fail(JobExit::kFailed, status.error().message);
}

JobExit Run(const OptionInputs& inputs) {
  const OptionTable table = LaunchTable();
  const Result<Options> options = ParseOptions(table, inputs);
  if (!options.ok()) return Misused(table, options.error().message);
  if (options->Flag("help")) return Show(HelpText(table, TerminalWidth()));
  if (options->Flag("print-config")) return Show(options->ConfigText());
  if (options->positionals().empty()) return Misused(table, "there is no program to run");
  Random random(EntropySeed());
  const HostFacts facts =
      ReadHostFacts(inputs.environment, options->positionals().front(), random);
  const Result<LaunchConfig> config = ConfigFrom(*options, inputs.environment, facts);
  if (!config.ok()) return Fail(JobExit::kFailed, config.error().message);
  SetLogFormat(config->log_format);
  SetLogLevel(config->log_level);
  for (const std::string& note : config->notes) LogWarn("option-note", {{"note", note}});
  return Fail(JobExit::kFailed, "launching is not built yet; --print-config shows what was "
                                "understood");
}

}  // namespace

int main(int argc, char** argv) {
  IgnoreSigpipe();
  return static_cast<int>(Run(RealInputs(argc, argv)));
}
