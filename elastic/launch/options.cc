// The table. Torchrun's options come first, so that their abbreviations can be kept for them.
#include "elastic/launch/options.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "elastic/launch/token.h"
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
      WithPet(Option::Text("nproc-per-node", "1", "Workers per host: auto, cpu, gpu or a number")),
      WithPet(Option::Text("role", "default", "Name of the workers' role")),
      WithPet(Option::Flag("virtual-local-rank", false,
                           "Set LOCAL_RANK=0 in every worker, which then sees only its own GPU")),
  }};
}

Section MeetingSection() {
  return {"Meeting the other hosts", {
      WithPet(Option::Text("rdzv-backend", "static",
                           "static (fixed hosts), c10d (elastic), dir (elastic; hosts meet in a "
                           "directory that all share), s3 (likewise, below a prefix of a bucket) "
                           "or etcd (elastic, and no host keeps the store; its user is in "
                           "KEEL_ETCD_USER and KEEL_ETCD_PASSWORD)")),
      WithPet(Option::Text("rdzv-endpoint", "",
                           "Where the job begins, and may be found: HOST[:PORT][,HOST...]; with "
                           "dir, the directory; with s3, s3://BUCKET/PREFIX; with etcd, the "
                           "members of the cluster")),
      WithPet(Option::Text("rdzv-id", "none", "Name of the job")),
      WithPet(Option::Text("rdzv-conf", "",
                           "More settings, as KEY=VALUE[,KEY=VALUE...]: join_timeout, "
                           "last_call_timeout, keep_alive_interval, keep_alive_max_attempt, "
                           "read_timeout (for the store to answer at first; with static, "
                           "timeout), is_host; for etcd: protocol=https, cacert, cert, key")),
      WithPet(Option::Flag("standalone", false,
                           "Run on this host alone, with a store on a free port; no other option "
                           "of this section is needed")),
      WithPet(Option::Integer("node-rank", 0, "This host's number, for static hosts")),
      WithPet(Option::Text("master-addr", "127.0.0.1",
                           "Address of host number 0, for static hosts")),
      WithPet(Option::Integer("master-port", 0,
                              "Port of host number 0, for static hosts; default: 29500 for several "
                              "hosts, and a free one for a host alone")
                  .Optional()),
      WithPet(Option::Text("local-addr", "", "This host's address, as others reach it")),
  }};
}

Section ProgramSection() {
  return {"The program", {
      WithPet(Option::Flag("module", false, "The program is a Python module: run it by python -m")
                  .Short('m')),
      WithPet(Option::Flag("no-python", false,
                           "The program is not a Python script: run it as it is")),
      WithPet(Option::Flag("run-path", false, "Run the Python script by runpy.run_path()")),
      WithPet(Option::Integer("max-restarts", 0, "How many deaths of workers the job survives")),
      WithPet(Option::Text("signals-to-handle", "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
                           "Signals that stop the job; SIGUSR1 always does")),
      WithPet(Wait("shutdown-timeout", kShutdownLimit,
                   "How long workers may take to stop before they are killed"))
          .Env("TORCH_ELASTIC_SHUTDOWN_TIMEOUT"),
  }};
}

Section LogSection() {
  return {"Logs", {
      WithPet(Option::Text("log-dir", "", "Folder for logs and error files; default: a new one in "
                                          "the temporary folder")),
      WithPet(Option::Text("redirects", "0", "Write the output of workers to files: 0 (none), 1 "
                                             "(stdout), 2 (stderr), 3 (both), or by local rank: "
                                             "0:1,1:2").Short('r')),
      WithPet(Option::Text("tee", "0", "Write the output of workers to files in the same way, and "
                                       "to the console too. On a terminal that no worker writes to "
                                       "by itself a status line is shown")
                  .Short('t')),
      WithPet(Option::Text("log-line-prefix-template", "",
                           "What stands before each line of a tee'd stream on the console, with "
                           "${role_name}, ${local_rank}, ${rank} and ${hostname} filled in. Where "
                           "nothing is given it is [${role_name}${local_rank}]:"))
          .Env("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"),
      WithPet(Option::Text("local-ranks-filter", "",
                           "Show only these local ranks on the console: 0,1")),
      WithPet(Option::Text("duplicate-stdout-filters", "",
                           "Copy lines of tee'd stdout that contain one of these words to "
                           "filtered_stdout.log")),
      WithPet(Option::Text("duplicate-stderr-filters", "",
                           "The same for stderr, to filtered_stderr.log")),
  }};
}

Section IdleSection() {
  return {"Accepted for torchrun's sake, without effect", {
      WithPet(Option::Real("monitor-interval", 0.1,
                           "The end of a worker is seen at once, without polling")),
      WithPet(Option::Choice("start-method", {"spawn", "fork", "forkserver"}, "spawn",
                             "Workers are started as programs, not forked from Python")),
      WithPet(Option::Text("event-log-handler", "null", "Events are in the launcher's log")),
      Option::Text("logs-specs", "", "Only default: entry points of Python cannot be loaded"),
      Option::Choice("numa-binding", {"node", "socket", "exclusive", "core-complex"}, "node",
                     "Start the program with numactl instead").Optional(),
  }};
}

Section FailureSection() {
  return {"When something fails", {
      WithOwn(Wait("restart-window", kRestartWindow,
                   "How long a death counts for --max-restarts; 0s: for ever")),
      WithOwn(Option::Integer("shun-after", kShunAfter,
                              "The job goes on without a host whose workers die so many times more "
                              "often than those of others (within --restart-window, or 1h where "
                              "that is for ever; give --max-restarts, too), or which is shown to "
                              "compute wrongly, if enough hosts are left; 0: never")
                  .Range(int64_t{0}, kShunAfterMax)),
      WithOwn(Option::Flag("forgive", false,
                           "Let this host in although the job has gone on without it before, as "
                           "--shun-after says: its machine is sound now")),
      WithOwn(Option::Text("health-check", "",
                           "A command, for the shell, that says before each start of workers "
                           "whether this machine is fit: where it exits with another code than 0, "
                           "this host does not take part, or leaves. keel health is one")
                  .Placeholder("COMMAND")),
      WithOwn(SomeWait("health-limit", kHealthLimit,
                       "How long a health check may take: less than half of --start-limit. A "
                       "machine that needs longer is not fit")),
      WithOwn(Option::Text("hang-limit", "auto",
                           "How long no worker may make progress before the one that the others "
                           "wait for is killed: auto, off, or a time (at least " +
                               SecondsText(kHangLook) + ")")),
      WithOwn(SomeWait("park-limit", kParkLimit,
                       "How long a worker may take to leave a broken epoch")),
      WithOwn(SomeWait("start-limit", kStartLimit,
                       "How long a worker may take to get ready after its start")),
      WithOwn(Wait("store-limit", kStoreLimit,
                   "How long the store may be unreachable before this host gives up")),
      WithOwn(Option::Integer("spares", 1,
                              "Processes of this host that have imported PyTorch and wait to "
                              "replace a worker; only for Python scripts that train by evenkeel")
                  .Range(int64_t{0}, kSparesMax)),
  }};
}

Section OwnSection() {
  return {"Evenkeel's own", {
      WithOwn(Option::Text("lease", "none",
                           "A directory that all hosts share, or s3://BUCKET/PREFIX, where it is "
                           "kept who coordinates: by it one of two hosts goes on when the other is "
                           "out of reach. auto: the program's --checkpoint-dir; none: hosts go on "
                           "by majority only")),
      WithOwn(Option::Choice("quorum", {"on", "strict", "off"}, "on",
                             "Which hosts may go on without the others: on (more than half of "
                             "those that are not known to be dead), strict (nobody is taken for "
                             "dead because its machine refuses connections), off (any MIN hosts, "
                             "even if others go on as well)")),
      WithOwn(Option::Choice("notice", {"auto", "aws", "gcp", "azure", "slurm", "none"}, "auto",
                             "Which service announces the end of this machine (spot, "
                             "preemptible, time limit), so that this host saves and leaves in "
                             "time; auto: the cloud that its firmware names, and Slurm's time "
                             "limit")),
      WithOwn(Option::Text("notice-url", "", "Base URL of the metadata service, for tests and "
                                             "proxies: http://127.0.0.1:8080")),
      WithOwn(SomeWait("notice-lead", kNoticeLead,
                       "How long before an announced end the host leaves; until then the notice "
                       "may be withdrawn")),
      WithOwn(Option::Text("status", "",
                           "Show the job on a web page at this address (as JSON at /api, for "
                           "Prometheus at /metrics); a port alone can be reached only from this "
                           "machine")
                  .Placeholder("[ADDRESS:]PORT")),
      WithOwn(Option::Text("status-token", "",
                           "Secret that a viewer of the status page must give; needed if other "
                           "machines can reach the page. Other users can read a command line, so "
                           "use KEELRUN_STATUS_TOKEN or the config file")),
      WithOwn(Option::Text("port-range", "",
                           "Take each port that no other option gives from this range, as "
                           "29400-29499; at least 8 for each launcher of a machine. The ports of "
                           "Gloo and NCCL are the kernel's choice: set the sysctl "
                           "net.ipv4.ip_local_port_range, too")
                  .Placeholder("FIRST-LAST")),
      WithOwn(Option::Text("token-file", "",
                           "File with the job's token, a secret of 16 characters or more that is "
                           "the same on all hosts: who lacks it is not believed, whatever port he "
                           "reaches. KEELRUN_TOKEN may hold it instead; the command line, which "
                           "other users can read, cannot")
                  .Placeholder("FILE")),
      Option::Flag("doctor", false,
                   "Start no job: check on each host whether one would work with these options, "
                   "and say what is wrong and how to cure it")
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
      WithOwn(Option::Choice("log-format", {"text", "json"}, "text",
                             "Format of the launcher's own log")),
      WithOwn(Option::Choice("log-level", {"debug", "info", "warn", "error"}, "info",
                             "Lowest level of lines in the launcher's own log")),
      WithOwn(Option::Text("config", "", "Read options from this file").Placeholder("FILE")),
  }};
}

// Torchrun's word for --completion.
Section CompletionSection() {
  return {"Help", {
      Option::Choice("print-completion", {"bash", "zsh"}, "bash", "The same as --completion")
          .Optional().CommandLineOnly(),
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
      {kExitFailed, "the program failed more often than allowed, options ask for what cannot be "
                    "done here, or --doctor found what keeps a job from working"},
      {kExitUsage, "the command line was not understood, or a value is of the wrong kind; "
                   "nothing was started"},
      {kExitStopped, "stopped on request and saved: start it again to continue"},
      {kExitQuorumLost, "too few hosts for too long"},
      {kExitUnsaved, "stopped on request, but not saved in time"},
      {kExitRefused, "refused: the version, job or numerics of this host do not fit"},
      {kExitShunned, "the job goes on without this host, whose machine is not to be trusted: "
                     "replace it"},
  };
  for (const auto& [code, meaning] : codes) table.AddExitCode(code, meaning);
}

}  // namespace

OptionTable LaunchTable() {
  std::vector<Section> sections = {JobSection(), MeetingSection(), ProgramSection(), LogSection(),
                                   IdleSection(), CompletionSection()};
  const Section failure = FailureSection();
  const Section own = OwnSection();
  const Section help = HelpSection();
  KeepAbbreviations(sections, {own, failure, help});
  // Options without effect come last in the help, before those that show it.
  sections.insert(sections.end() - 2, {own, failure});
  sections.insert(sections.end() - 1, help);
  OptionTable table("keelrun", "Starts workers on this host, joins them with those of other hosts, "
                               "and keeps the job going when some of them die.");
  for (const Section& section : sections) {
    table.Section(section.heading);
    for (const Option& option : section.options) table.Add(option);
  }
  table.TakePositionals(Positionals::kRemainder, "script [args...]");
  table.EnvironmentPrefix("KEELRUN_", {kTokenVariable}).ConfigFileFrom("config");
  table.AddExample("keelrun --standalone --nproc-per-node=4 train.py",
                   "start 4 workers on this host");
  table.AddExample("keelrun --nnodes=2:4 --rdzv-backend=c10d --rdzv-endpoint=node0 --rdzv-id=run7 "
                   "./train",
                   "run this on each of 2 to 4 hosts");
  table.AddExample("keelrun --nnodes=2:4 --rdzv-backend=etcd --rdzv-endpoint=etcd0,etcd1,etcd2 "
                   "--rdzv-id=run7 ./train",
                   "the same, with an etcd cluster in place of a host that keeps the store");
  table.AddExample("keelrun --doctor --doctor-dir=/shared/run7 --nnodes=2:4 --rdzv-backend=c10d "
                   "--rdzv-endpoint=node0 --rdzv-id=run7 ./train",
                   "the same, to check first whether the job would work");
  AddExitCodes(table);
  return table;
}

}  // namespace keel
