// `keelrun`: the launcher.
// Promises   exit codes as in elastic/protocol/exit_codes.h; what it was asked to show goes to
//            stdout, all else to stderr.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "base/option_completion.h"
#include "base/option_help.h"
#include "base/option_man.h"
#include "base/options_env.h"
#include "base/posix_files.h"
#include "base/process_setup.h"
#include "base/random.h"
#include "base/version.h"
#include "elastic/doctor/doctor.h"
#include "elastic/doctor/text.h"
#include "elastic/launch/etcd_values.h"
#include "elastic/launch/find_torch.h"
#include "elastic/launch/options.h"
#include "elastic/launch/policies.h"
#include "elastic/launch/token.h"
#include "elastic/process/console.h"
#include "elastic/process/log_queue.h"
#include "elastic/process/orphan_guard.h"
#include "elastic/process/program_path.h"
#include "elastic/protocol/exit_codes.h"
#include "elastic/report/error_file.h"
#include "elastic/report/event_log.h"
#include "elastic/report/failures.h"
#include "elastic/supervisor.h"
#include "store/find_module.h"
#include "store/seal/sealed_stores.h"
#include "tools/keelrun/etcd_home.h"
#include "tools/keelrun/late_stores.h"
#include "tools/keelrun/sealed_home.h"

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

int Fail(int code, const std::string& why) {
  // What cannot be told to stderr cannot be told at all.
  (void)WriteTo(STDERR_FILENO, "keelrun: " + why + "\n");
  return code;
}

int Misused(const OptionTable& table, const std::string& why) {
  return Fail(kExitUsage, why + "\nusage: keelrun [options] " + table.positional_usage() +
                                   "\n(see keelrun --help)");
}

int Show(const std::string& text) {
  const Status status = WriteTo(STDOUT_FILENO, text);
  return status.ok() ? kExitFinished : Fail(kExitFailed, status.error().message);
}

// What was run, for the report's title.
std::string TitleOf(const WorkerProgram& program) {
  return program.kind == WorkerProgram::Kind::kModule ? "-m " + program.name : program.name;
}

// For whoever started us the worker's error is ours.
void PassOn(Files& files, const JobStory& story, const Environment& environment) {
  const auto file = environment.find("TORCHELASTIC_ERROR_FILE");
  if (file == environment.end() || file->second.empty() || story.failures().empty()) return;
  const WorkerFailure& root = RootCause(story.failures());
  if (!root.error) return;
  const Status passed = PassErrorOn(files, *root.error, root.status, file->second);
  if (!passed.ok()) LogWarn("error-not-passed-on", {{"reason", passed.error().message}});
}

// A job in which nothing happened needs few words.
std::string EndText(const LaunchConfig& config, const JobStory& story) {
  const bool failed = story.summary().exit_code == kExitFailed && !story.failures().empty();
  const std::string title = TitleOf(config.program);
  if (config.log_format == LogFormat::kJson) {
    Json json = {{"summary", JobSummaryJson(story.summary())}};
    if (failed) json["report"] = FailureReportJson(title, story.failures());
    return DumpJson(json) + "\n";
  }
  const bool quiet = story.summary().exit_code == kExitFinished && story.summary().events.empty();
  const std::string quiet_text = GoodputLine(story.summary()) +
                                 LostOutputText(story.summary().lost_output);
  return (quiet ? quiet_text : JobSummaryText(story.summary())) +
         (failed ? FailureReportText(title, story.failures()) : "");
}

// Line by line, each once those before it are written: as many as there may be, none is dropped
// while somebody reads.
void ShowEnd(LogQueue& log, std::string_view text, TimePoint show_by) {
  while (!text.empty()) {
    const size_t size = std::min(text.find('\n'), text.size() - 1) + 1;
    (void)log.Flush(show_by);
    log.Add(text.substr(0, size));
    text.remove_prefix(size);
  }
  (void)log.Flush(show_by);
}

// Before another host hears of this one: it would be counted in, and the job broken for nothing.
// What an interpreter of the user's choice makes of the script's name is its own business.
Status CheckCanStart(const WorkerProgram& program, const Environment& environment) {
  using Kind = WorkerProgram::Kind;
  const std::vector<std::string> line = program.CommandLine(0);
  KEEL_TRY(CheckProgram(line.front(), SearchPath(environment)));
  const bool is_file = !environment.contains("PYTHON_EXEC") &&
                       (program.kind == Kind::kScript || program.kind == Kind::kRunPath);
  return is_file ? CheckScript(line[line.size() - program.arguments.size() - 1]) : Ok();
}

// Our workers and all that descends from them have it, by which the guard knows them.
constexpr const char* kLauncherVariable = "KEEL_LAUNCHER";

// What runs out in the middle of a job breaks it in ways that do not tell why.
Status CheckOpenFiles(const LaunchConfig& config) {
  const Result<uint64_t> limit = RaiseFileLimit();
  const Result<uint64_t> open_now = CountOpenFiles();
  if (!limit.ok() || !open_now.ok()) {
    const Error& why = limit.ok() ? open_now.error() : limit.error();
    LogWarn("file-limit", {{"reason", why.message}});
    return Ok();
  }
  const uint64_t wanted = *open_now + OpenFilesWanted(config);
  if (*limit >= wanted) return Ok();
  return Error{Code::kInvalid,
               "at most " + std::to_string(*limit) +
                   " files may be open at once, and this job needs " + std::to_string(wanted) +
                   " (workers here: " + std::to_string(config.workers_per_host) +
                   ", hosts: at least " + std::to_string(config.hosts.least) +
                   ", open already: " + std::to_string(*open_now) +
                   "): raise the limit (`ulimit -n " + std::to_string(wanted) +
                   "`, or LimitNOFILE of a service)"};
}

// The store module, and what its stores are sealed with if the job has a token.
class JobStores {
 public:
  static Result<std::unique_ptr<JobStores>> Open(const LaunchConfig& config,
                                                 const std::optional<Seal>& seal,
                                                 const Environment& environment) {
    std::unique_ptr<JobStores> stores(new JobStores);
    KEEL_TRY_ASSIGN(stores->late_, LateStores::Open(config.log_format, config.log_level,
                                                    environment, config.program.python));
    if (seal) stores->sealed_.emplace(*stores->late_, SealOfStores(*seal), OpenKeys());
    stores->maker().PickFrom(config.ports);
    return stores;
  }
  StoreMaker& maker() { return sealed_ ? static_cast<StoreMaker&>(*sealed_) : *late_; }

 private:
  JobStores() = default;

  std::unique_ptr<LateStores> late_;
  std::optional<SealedStores> sealed_;
};

HealthOutcome HealthHere(const LaunchConfig& config, const Environment& environment) {
  std::vector<int> signals = config.signals;
  signals.push_back(SIGUSR1);
  return CheckHealth(HealthPlanFrom(config, environment), signals);
}

// In place of a job.
int Examine(const LaunchConfig& config, const std::optional<Seal>& seal,
            const Environment& environment, Random random) {
  // As in a job, before other hosts hear of this one.
  const HealthOutcome health = config.health_command.empty() ? HealthOutcome()
                                                             : HealthHere(config, environment);
  if (health.verdict == HealthOutcome::Verdict::kStopped) return Fail(kExitStopped, health.reason);
  static PosixFiles& files = *new PosixFiles;   // a file system that hangs holds a thread in it
  auto stores = JobStores::Open(config, seal, environment);
  const Status can_start = config.program.name.empty()
                               ? Ok()
                               : CheckCanStart(config.program, environment);
  const std::vector<Finding> findings = RunDoctor(
      config, {.stores = stores.ok() ? &(*stores)->maker() : nullptr,
               .stores_trouble = stores.ok() ? "" : stores.error().message,
               .files = files,
               .clock = RealClock(),
               .random = std::move(random),
               .environment = environment,
               .program_trouble = can_start.ok() ? "" : can_start.error().message,
               .health_trouble = health.reason});
  const bool is_json = config.log_format == LogFormat::kJson;
  const Status shown = WriteTo(STDOUT_FILENO, is_json ? DumpJson(DoctorJson(findings)) + "\n"
                                                      : DoctorText(findings));
  if (!shown.ok()) return Fail(kExitFailed, shown.error().message);
  return CountOf(findings, Severity::kFailure) == 0 ? kExitFinished : kExitFailed;
}

// Null: the job needs none.
Result<std::unique_ptr<JobHome>> OpenHome(const LaunchConfig& config,
                                          const std::optional<Seal>& seal) {
  if (config.meeting != LaunchConfig::Meeting::kEtcd) return std::unique_ptr<JobHome>();
  EtcdAccess access;
  access.members.push_back({config.endpoint_host, config.endpoint_port});
  for (const HostPort& more : config.more_endpoints) {
    access.members.push_back({more.host, more.port.value_or(kEtcdPort)});
  }
  const LaunchConfig::Etcd& etcd = config.etcd;
  if (etcd.is_tls) access.tls = EtcdTls{etcd.ca_file, etcd.cert_file, etcd.key_file};
  access.user = etcd.user;
  access.password = etcd.password;
  KEEL_TRY_ASSIGN(std::unique_ptr<EtcdHome> home, EtcdHome::Open(access, config.run_id));
  if (!seal) return std::unique_ptr<JobHome>(std::move(home));
  return std::unique_ptr<JobHome>(
      std::make_unique<SealedHome>(std::move(home), SealOfStores(*seal), OpenKeys()));
}

// What we start inherits it, and needs no password of the cluster and no token of the job. Nor does
// what libraries of ours start. It comes before there are threads.
Environment WithoutSecrets(Environment environment) {
  const std::vector<std::string> secrets = {kEtcdPasswordVariable, kTokenVariable};
  for (const std::string& name : secrets) environment.erase(name);
  ForgetOwnEnvironment(secrets);
  return environment;
}

// Scripts find the package that came with this program, behind what the user's PYTHONPATH names.
Environment WithPackage(Files& files, const Environment& environment, const std::string& python) {
  const Result<std::string> own = OwnPrefix();
  const std::string path =
      own.ok() ? PackageForWorkers(files, *own, environment, python) : std::string();
  return path.empty() ? environment : With(environment, {{"PYTHONPATH", path}});
}

// Before another host hears of this one. Nothing: it is fit.
std::optional<int> FindUnfit(const LaunchConfig& config, const Environment& environment) {
  if (config.health_command.empty()) return std::nullopt;
  using Verdict = HealthOutcome::Verdict;
  const TimePoint began = RealClock().Monotonic();
  const HealthOutcome outcome = HealthHere(config, environment);
  if (outcome.verdict == Verdict::kStopped) return Fail(kExitStopped, outcome.reason);
  const bool is_fit = outcome.verdict == Verdict::kFit;
  LogEvent(HealthChecked{is_fit, outcome.reason, RealClock().Monotonic() - began});
  if (is_fit) return std::nullopt;
  return outcome.verdict == Verdict::kUnfit ? kExitShunned : kExitFailed;
}

int Launch(const LaunchConfig& config, const std::optional<Seal>& seal,
           const Environment& unmarked, Random random) {
  Supervisor::HoldSignalsUntilOpen(config);
  const Status open_files = CheckOpenFiles(config);
  if (!open_files.ok()) return Fail(kExitFailed, open_files.error().message);
  const std::string id = RandomId(random, 16);
  const Environment environment = With(unmarked, {{kLauncherVariable, id}});
  // The first process of a container needs none: all others end with it.
  std::unique_ptr<OrphanGuard> guard;
  if (getpid() != 1) {
    auto started = OrphanGuard::Start(kLauncherVariable + ("=" + id));
    if (!started.ok()) return Fail(kExitFailed, started.error().message);
    if (*started == nullptr) return kExitFinished;   // this is the guard, and its work is done
    guard = *std::move(started);
  }
  if (const std::optional<int> unfit = FindUnfit(config, environment)) return *unfit;
  // A job must hear of signals, and answer its workers, also while nobody reads what it says.
  Console console(STDERR_FILENO);
  LogQueue log([&](std::string_view line, const CancelToken& give_up) {
    (void)console.Write(line, give_up);
    return line.size() - console.missed();
  });
  static auto& files = *new PosixFiles;   // calls that get no answer outlive all else
  auto stores = JobStores::Open(config, seal, unmarked);
  if (!stores.ok()) return Fail(kExitFailed, stores.error().message);
  const auto home = OpenHome(config, seal);
  if (!home.ok()) return Fail(kExitFailed, home.error().message);
  auto supervisor = Supervisor::Open(config, {(*stores)->maker(), files, RealClock(),
                                              std::move(random), environment, home->get(),
                                              seal});
  if (!supervisor.ok()) return Fail(kExitFailed, supervisor.error().message);
  const int code = (*supervisor)->Run();
  const JobStory& story = (*supervisor)->story();
  PassOn(files, story, environment);
  ShowEnd(log, EndText(config, story), (*supervisor)->show_by());
  if ((*supervisor)->has_silent_logs()) (void)supervisor->release();   // all else is over
  return code;
}

// What the options ask to be shown in place of a job.
std::optional<std::string> TextToShow(const OptionTable& table, const Options& options) {
  if (options.Flag("help")) return HelpText(table, TerminalWidth());
  if (options.Flag("version")) return "keelrun (Evenkeel) " + std::string(kVersion) + "\n";
  if (options.Flag("man")) {
    return ManPage(table, {.title = "start the workers of a training job, and keep it going",
                           .notes = {"Takes torchrun's options and sets torchrun's environment. "
                                     "Dashes and underscores mean the same in names."},
                           .see_also = {"keel"}});
  }
  for (const char* name : {"completion", "print-completion"}) {
    if (!options.Has(name)) continue;
    return options.Text(name) == "bash" ? BashCompletion(table) : ZshCompletion(table);
  }
  if (options.Flag("print-config")) return options.ConfigText();
  return std::nullopt;
}

int Run(const OptionInputs& inputs) {
  const OptionTable table = LaunchTable();
  const Result<Options> options = ParseOptions(table, inputs);
  if (!options.ok()) return Misused(table, options.error().message);
  const std::optional<std::string> shown = TextToShow(table, *options);
  if (shown) return Show(*shown);
  const bool has_program = !options->positionals().empty();
  if (!has_program && !options->Flag("doctor")) {
    return Misused(table, "there is no program to run");
  }
  Random random(EntropySeed());
  const HostFacts facts = ReadHostFacts(
      inputs.environment, has_program ? options->positionals().front() : "", random);
  const Result<LaunchConfig> config = ConfigFrom(*options, inputs.environment, facts);
  if (!config.ok()) return Fail(kExitFailed, config.error().message);
  SetLogFormat(config->log_format);
  SetLogLevel(config->log_level);
  for (const std::string& note : config->notes) LogWarn("option-note", {{"note", note}});
  PosixFiles files;
  const auto seal = ReadJobSeal(files, *config, inputs.environment);
  if (!seal.ok()) return Fail(kExitFailed, seal.error().message);
  const Environment environment =
      WithPackage(files, WithoutSecrets(inputs.environment), config->program.python);
  if (config->doctor) return Examine(*config, *seal, environment, std::move(random));
  const Status can_start = CheckCanStart(config->program, environment);
  if (!can_start.ok()) return Fail(kExitFailed, can_start.error().message);
  return Launch(*config, *seal, environment, std::move(random));
}

}  // namespace

int main(int argc, char** argv) {
  const Status streams = OpenClosedStreams();
  if (!streams.ok()) return Fail(kExitFailed, streams.error().message);
  IgnoreSigpipe();
  // The standard library throws where the system gives it no thread or no memory.
  try {
    return Run(RealInputs(argc, argv));
  } catch (const std::exception& failed) {
    return Fail(kExitFailed, std::string("the system refuses what keelrun needs (") +
                                 failed.what() + "): check `ulimit -a`, and the limits of the "
                                 "container or service");
  }
}
