// The table. Torchrun's options come first, so that their abbreviations can be kept for them.
#include "elastic/launch/options.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "elastic/protocol/exit_codes.h"
#include "elastic/protocol/limits.h"

namespace keel {
namespace {

struct Section {
  std::string heading;
  std::vector<Option> options;
};

// PET_NPROC_PER_NODE for nproc-per-node.
Option WithPet(Option option) {
  std::string variable = "PET_";
  for (const char c : option.name) {
    variable += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return option.Env(variable);
}

// KEELRUN_HANG_LIMIT for hang-limit.
Option WithOwn(Option option) {
  Option named = WithPet(option);
  named.environment.back().replace(0, 4, "KEELRUN_");
  return named;
}

// "30s"
std::string SecondsText(Duration limit) {
  const auto seconds = limit / std::chrono::seconds(1);
  KEEL_CHECK(limit == std::chrono::seconds(seconds), "a default of no whole seconds");
  return std::to_string(seconds) + "s";
}

// A wait that may be zero, and one that may not.
Option Wait(const std::string& name, Duration preset, const std::string& help) {
  return Option::Time(name, SecondsText(preset), help).Range(Duration(0), kLongestWait);
}
Option SomeWait(const std::string& name, Duration preset, const std::string& help) {
  return Option::Time(name, SecondsText(preset), help)
      .Range(std::chrono::milliseconds(1), kLongestWait);
}

Section JobSection() {
  return {"Job, hosts and workers", {
      WithPet(Option::Text("nnodes", "1:1", "How many hosts: a number, or MIN:MAX")),
      WithPet(Option::Text("nproc-per-node", "1", "Workers a host: auto, cpu, gpu or a number")),
      WithPet(Option::Text("role", "default", "Name of the workers' role")),
      WithPet(Option::Flag("virtual-local-rank", false,
                           "LOCAL_RANK=0 for every worker, each with its own GPU as the only one")),
  }};
}

Section MeetingSection() {
  return {"Meeting the other hosts", {
      WithPet(Option::Text("rdzv-backend", "static", "static (fixed hosts) or c10d (elastic)")),
      WithPet(Option::Text("rdzv-endpoint", "", "Where the store is: HOST[:PORT]")),
      WithPet(Option::Text("rdzv-id", "none", "Name of the job")),
      WithPet(Option::Text("rdzv-conf", "", "Limits and more: KEY=VALUE[,KEY=VALUE...]")),
      WithPet(Option::Flag("standalone", false, "One host, a free port: nothing else to say")),
      WithPet(Option::Integer("node-rank", 0, "This host's number, for static hosts")),
      WithPet(Option::Text("master-addr", "127.0.0.1", "Host number 0, for static hosts")),
      WithPet(Option::Integer("master-port", 29500, "Its port, for static hosts")),
      WithPet(Option::Text("local-addr", "", "This host's address, as others reach it")),
  }};
}

Section ProgramSection() {
  return {"The program", {
      WithPet(Option::Flag("module", false, "It is a Python module: python -m").Short('m')),
      WithPet(Option::Flag("no-python", false, "It is no Python script: run it as it is")),
      WithPet(Option::Flag("run-path", false, "Run the Python script by runpy.run_path()")),
      WithPet(Option::Integer("max-restarts", 0, "How many deaths the job survives")),
      WithPet(Option::Text("signals-to-handle", "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
                           "Signals that stop the job; SIGUSR1 always does")),
      WithPet(Wait("shutdown-timeout", kShutdownLimit, "What workers have to stop before SIGKILL"))
          .Env("TORCH_ELASTIC_SHUTDOWN_TIMEOUT"),
  }};
}

Section LogSection() {
  return {"Logs", {
      WithPet(Option::Text("log-dir", "", "Folder for logs and error files; default: a new one in "
                                          "the temporary folder")),
      WithPet(Option::Text("redirects", "0", "Write to files: 0, 1 (stdout), 2 (stderr), 3 (both), "
                                             "or by local rank: 0:1,1:2").Short('r')),
      WithPet(Option::Text("tee", "0", "The same, and to the console too. On a terminal that no "
                                       "worker writes to by itself there is a status line")
                  .Short('t')),
      WithPet(Option::Text("local-ranks-filter", "", "Only these local ranks on the console: 0,1")),
      WithPet(Option::Text("duplicate-stdout-filters", "",
                           "Tee'd lines with one of these words go to filtered_stdout.log too")),
      WithPet(Option::Text("duplicate-stderr-filters", "", "The same for stderr")),
  }};
}

Section IdleSection() {
  return {"Taken for torchrun's sake, without effect", {
      WithPet(Option::Real("monitor-interval", 0.1, "Ends are seen at once, without looking")),
      WithPet(Option::Choice("start-method", {"spawn", "fork", "forkserver"}, "spawn",
                             "Workers are programs, not forks of Python")),
      WithPet(Option::Text("event-log-handler", "null", "Events are in the log")),
      Option::Text("logs-specs", "", "Python entry points cannot be loaded"),
      Option::Choice("numa-binding", {"node", "socket", "exclusive", "core-complex"}, "node",
                     "Start the program with numactl instead").Optional(),
  }};
}

Section OwnSection() {
  return {"Our own", {
      WithOwn(Wait("restart-window", kRestartWindow,
                   "Only deaths within it count for --max-restarts; 0s: all")),
      WithOwn(Option::Text("hang-limit", "auto",
                           "How long nothing may move before the one the others wait for is "
                           "killed: auto, off, or a time (" + SecondsText(kHangLook) +
                               " at least)")),
      WithOwn(SomeWait("park-limit", kParkLimit, "What a worker has to leave a broken epoch")),
      WithOwn(SomeWait("start-limit", kStartLimit, "What a worker has to get ready")),
      WithOwn(Wait("store-limit", kStoreLimit, "How long the store may be away")),
      WithOwn(Option::Choice("notice", {"auto", "aws", "gcp", "azure", "slurm", "none"}, "auto",
                             "Who announces the end of this machine (spot, preemptible, time "
                             "limit), upon which this host saves and leaves; auto: the cloud that "
                             "its firmware names, and Slurm's time limit")),
      WithOwn(Option::Text("notice-url", "", "Base URL of the metadata service, for tests and "
                                             "proxies: http://127.0.0.1:8080")),
      WithOwn(SomeWait("notice-lead", kNoticeLead,
                       "How long before an announced end the host leaves; until then it may be "
                       "withdrawn")),
      WithOwn(Option::Text("status", "",
                           "Show the job on a page at this address (and as JSON at /api, for "
                           "Prometheus at /metrics); a port alone is of this machine only")
                  .Placeholder("[ADDRESS:]PORT")),
      WithOwn(Option::Text("status-token", "",
                           "What whoever watches must know, where others can reach --status; "
                           "others can read a command line, so take KEELRUN_STATUS_TOKEN or the "
                           "config file")),
      Option::Flag("doctor", false,
                   "Start no job: look whether one would work with these options, on each of its "
                   "hosts, and say what is wrong and how to cure it")
          .CommandLineOnly(),
      WithOwn(Option::Text("doctor-dir", "",
                           "A directory that all hosts should share, such as that of the "
                           "checkpoints: the doctor writes a small file there and removes it")
                  .Placeholder("DIR")),
      WithOwn(SomeWait("doctor-limit", kDoctorLimit,
                       "How long the doctor waits for the other hosts")),
      WithOwn(Option::Flag("numeric-names", true,
                           "Keep workers from asking the name service for every peer's name")),
      WithOwn(Option::Flag("allow-inexact", false,
                           "Let in workers whose numbers may differ in the last bits")),
      WithOwn(Option::Choice("log-format", {"text", "json"}, "text", "Of the launcher's own log")),
      WithOwn(Option::Choice("log-level", {"debug", "info", "warn", "error"}, "info",
                             "Of the launcher's own log")),
      WithOwn(Option::Text("config", "", "Config file").Placeholder("FILE")),
  }};
}

// Besides --help and --print-config, which every program has.
Section HelpSection() {
  return {"Help", {
      Option::Flag("version", false, "Show the version and exit").CommandLineOnly(),
      Option::Choice("completion", {"bash", "zsh"}, "bash",
                     "Print a script that completes command lines in that shell, and exit")
          .Optional().CommandLineOnly(),
      Option::Flag("man", false, "Print the man page, for man(1), and exit").CommandLineOnly(),
  }};
}

std::vector<std::string> NamesOf(const std::vector<Section>& sections) {
  std::vector<std::string> names;
  for (const Section& section : sections) {
    for (const Option& option : section.options) names.push_back(option.name);
  }
  return names;
}

size_t CountFrom(const std::vector<std::string>& names, const std::string& beginning) {
  return static_cast<size_t>(std::count_if(names.begin(), names.end(), [&](const auto& name) {
    return name.starts_with(beginning);
  }));
}

// An abbreviation that torchrun accepts for one of its options, but that would be ambiguous beside
// ours, becomes a second name of that option.
void KeepAbbreviations(std::vector<Section>& torchrun, const std::vector<Section>& own) {
  std::vector<std::string> theirs = NamesOf(torchrun);
  theirs.push_back("help");
  std::vector<std::string> ours = NamesOf(own);
  ours.push_back("print-config");
  // Flags can also be given as --no-<flag>, including torchrun's.
  for (const std::string& name : NamesOf(torchrun)) ours.push_back("no-" + name);
  for (const std::string& name : NamesOf(own)) ours.push_back("no-" + name);
  for (Section& section : torchrun) {
    for (Option& option : section.options) {
      for (size_t size = 1; size < option.name.size(); ++size) {
        const std::string beginning = option.name.substr(0, size);
        if (CountFrom(theirs, beginning) == 1 && CountFrom(ours, beginning) > 0) {
          option.Alias(beginning);
        }
      }
    }
  }
}

void AddExitCodes(OptionTable& table) {
  const std::pair<int, const char*> codes[] = {
      {kExitFinished, "the job finished"},
      {kExitFailed, "the program failed more often than allowed, a value makes no sense, or "
                    "--doctor found what keeps a job from working"},
      {kExitUsage, "the command line was not understood; nothing was started"},
      {kExitStopped, "stopped on request and saved: start it again to continue"},
      {kExitQuorumLost, "too few hosts for too long"},
      {kExitUnsaved, "stopped on request, but not saved in time"},
      {kExitRefused, "refused: version, job or numerics do not fit"},
  };
  for (const auto& [code, meaning] : codes) table.AddExitCode(code, meaning);
}

}  // namespace

OptionTable LaunchTable() {
  std::vector<Section> sections = {JobSection(), MeetingSection(), ProgramSection(), LogSection(),
                                   IdleSection()};
  const Section own = OwnSection();
  const Section help = HelpSection();
  KeepAbbreviations(sections, {own, help});
  // Options without effect come last in the help.
  sections.insert(sections.end() - 1, own);
  sections.push_back(help);
  OptionTable table("keelrun", "Starts workers on this host, joins them with those of other hosts, "
                               "and keeps the job going when some of them die.");
  for (const Section& section : sections) {
    table.Section(section.heading);
    for (const Option& option : section.options) table.Add(option);
  }
  table.TakePositionals(Positionals::kRemainder, "script [args...]");
  table.EnvironmentPrefix("KEELRUN_").ConfigFileFrom("config");
  table.AddExample("keelrun --standalone --nproc-per-node=4 train.py", "4 workers on this host");
  table.AddExample("keelrun --nnodes=2:4 --rdzv-backend=c10d --rdzv-endpoint=node0 --rdzv-id=run7 "
                   "./train",
                   "on each of 2 to 4 hosts");
  table.AddExample("keelrun --doctor --doctor-dir=/shared/run7 --nnodes=2:4 --rdzv-backend=c10d "
                   "--rdzv-endpoint=node0 --rdzv-id=run7 ./train",
                   "the same, to look first whether it would work");
  AddExitCodes(table);
  return table;
}

}  // namespace keel
