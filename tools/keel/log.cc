// `keel log`: what the hosts and workers of a job have logged, as one story.
#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>

#include "base/file_helpers.h"
#include "base/text.h"
#include "tools/keel/commands.h"
#include "tools/keel/log_file.h"
#include "tools/keel/log_merge.h"
#include "tools/keel/log_story.h"

namespace keel {
namespace {

constexpr int kFoldersDeep = 8;
constexpr size_t kPrintedAtOnce = 65536;
constexpr uint64_t kLookedThrough = 64 << 20;   // of a file, for its first time
constexpr Duration kLookPause = std::chrono::milliseconds(250);
constexpr int kLooksBetweenLists = 4;

// A time that was given as such, or as how long ago it was.
Result<std::optional<int64_t>> ReadMoment(const std::string& text, int64_t now_nanos) {
  if (text.empty()) return std::optional<int64_t>();
  if (const auto stamp = ReadUtcStamp(text)) return stamp;
  const auto ago = ParseDuration(text);
  if (!ago.ok()) {
    return MustBe(text, "a time as 2026-11-21T08:30:00Z, or how long ago, as 10min");
  }
  return std::optional(now_nanos - ago->count());
}

Result<LogFilter> FilterOf(const Options& options, int64_t now_nanos) {
  LogFilter filter;
  filter.hosts = options.List("host");
  for (const std::string& text : options.List("local-rank")) {
    const auto rank = ParseInteger(text);
    if (!rank.ok() || *rank < 0 || *rank > 1'000'000) {
      return MustBe(text, "a local rank, as 0").Doing("--local-rank");
    }
    filter.local_ranks.push_back(static_cast<int>(*rank));
  }
  filter.least_level = options.Text("level");
  filter.only_events = options.Flag("events");
  const auto since = ReadMoment(options.Text("since"), now_nanos);
  if (!since.ok()) return since.error().Doing("--since");
  const auto until = ReadMoment(options.Text("until"), now_nanos);
  if (!until.ok()) return until.error().Doing("--until");
  filter.since = *since;
  filter.until = *until;
  return filter;
}

// One directory, or one file, of the command line.
struct LogRoot {
  std::string path;
  std::string name;   // in front of the names below; empty where there is only one
  bool is_file = false;
  bool failed = false;   // at the last look, and that was told
};

// The path without symbolic links; the same one where it is on no disk.
std::string RealPath(const std::string& path) {
  char real[PATH_MAX];
  return ::realpath(path.c_str(), real) != nullptr ? real : path;
}

bool IsLink(const std::string& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 && S_ISLNK(found.st_mode);
}

std::string LastPart(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

// Walks folders. Each is listed once, however many links lead to it, and under its own name if it
// has one below the root.
class LogList {
 public:
  explicit LogList(Files& files) : files_(files) {}

  Result<std::vector<std::string>> Below(const std::string& root) {
    found_.clear();
    KEEL_TRY(Walk({root, "", kFoldersDeep}));
    for (size_t i = 0; i < links_.size(); ++i) {   // a walk may find more
      const Folder link = links_[i];
      (void)Walk(link);
    }
    links_.clear();
    return found_;
  }

 private:
  struct Folder {
    std::string path;
    std::string name;   // below the root
    int depth = 0;      // of what may be below it
  };

  Status Walk(const Folder& folder) {
    if (!visited_.insert(RealPath(folder.path)).second) return Ok();
    KEEL_TRY_ASSIGN(const std::vector<DirEntry> entries, files_.List(folder.path));
    for (const DirEntry& entry : entries) {
      const std::string name = folder.name.empty() ? entry.name : folder.name + "/" + entry.name;
      if (entry.kind == FileKind::kFile) found_.push_back(name);
      if (entry.kind != FileKind::kDirectory || !MayHoldLogs(entry.name)) continue;
      if (folder.depth == 0) continue;
      const Folder inner{JoinPath(folder.path, entry.name), name, folder.depth - 1};
      // One that cannot be listed hides its own logs, and no others.
      IsLink(inner.path) ? links_.push_back(inner) : (void)Walk(inner);
    }
    return Ok();
  }

  Files& files_;
  std::set<std::string> visited_;   // paths without links
  std::vector<Folder> links_;
  std::vector<std::string> found_;
};

Result<std::vector<LogSource>> SourcesBelow(LogList* list, const LogRoot& root) {
  const std::string file_name = LastPart(root.path);
  std::vector<std::string> names = {file_name};
  if (!root.is_file) {
    KEEL_TRY_ASSIGN(names, list->Below(root.path));
  }
  std::vector<LogSource> sources = LogSourcesOf(names);
  if (root.is_file && sources.empty()) {
    sources.emplace_back().who = file_name;
  }
  for (LogSource& source : sources) {
    source.path = root.is_file ? root.path : JoinPath(root.path, source.path);
    source.root = root.path;
    if (root.name.empty()) continue;
    source.host = source.host.empty() ? root.name : root.name + "/" + source.host;
  }
  return sources;
}

// When a file was last written; none: that cannot be found out.
std::optional<int64_t> LastWritten(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  return int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec;
}

// The first time that a file tells; none: it tells none in its first 64 MiB.
std::optional<int64_t> FirstTold(Files& files, const std::string& path) {
  LogFile file(files, path);
  for (uint64_t bytes = 0; bytes < kLookedThrough;) {
    const auto line = file.Next(true);
    if (!line.ok() || !line->has_value()) return std::nullopt;
    const LogWords words = ReadLogWords((*line)->text);
    if (words.nanos) return words.nanos;
    bytes += (*line)->text.size() + (*line)->cut_bytes + 1;
  }
  return std::nullopt;
}

class LogTeller {
 public:
  LogTeller(const World& world, const Options& options, LogFilter filter)
      : world_(world),
        follows_(options.Flag("follow")),
        is_json_(options.Flag("json")),
        merge_([this](size_t source) { return NextOf(source); }),
        story_(std::move(filter), world.paint) {}

  Status FindRoots(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      KEEL_TRY_ASSIGN(const FileInfo info, world_.files.Stat(path));
      roots_.push_back({path, "", info.kind == FileKind::kFile});
    }
    NameRoots();
    return Ok();
  }

  // Logs that were not there before. `follows`: what a full one holds was told while it had its
  // earlier name, and a directory that cannot be listed now may be back at a later look.
  Status FindLogs(bool follows) {
    LogList list(world_.files);
    const auto known_before = known_;
    std::vector<LogSource> found;
    for (LogRoot& root : roots_) {
      Result<std::vector<LogSource>> sources = SourcesBelow(&list, root);
      if (!sources.ok() && !follows) return sources.error();
      if (!sources.ok() && !root.failed) KEEL_TRY(TellUnlisted(root, sources.error()));
      root.failed = !sources.ok();
      if (!sources.ok()) continue;
      for (LogSource& source : *sources) {
        if (known_.insert(source.path).second) found.push_back(std::move(source));
      }
    }
    const auto is_own_name = [](const LogSource& source) { return !IsLink(source.path); };
    std::stable_partition(found.begin(), found.end(), is_own_name);
    for (LogSource& source : found) {
      if (follows && known_before.contains(LogBefore(source.path))) continue;
      if (real_.insert(RealPath(source.path)).second) Add(std::move(source));
    }
    return Ok();
  }

  bool has_logs() const { return !known_.empty(); }
  size_t unreadable() const { return unreadable_; }

  Status TellAll() {
    KEEL_TRY(TellWhatIsThere());
    for (int look = 1; follows_; ++look) {
      KEEL_TRY(Rest());
      for (Log& log : logs_) {
        if (!IsFull(log.file->path())) (void)log.file->Renew();   // the next read says what failed
      }
      if (look % kLooksBetweenLists == 0) KEEL_TRY(FindLogs(true));
      merge_.SetUntold(world_.clock.WallNanos());
      KEEL_TRY(TellWhatIsThere());
    }
    return Ok();
  }

 private:
  struct Log {
    std::unique_ptr<LogFile> file;
    bool failed = false;   // at the last look, and that was told
  };

  Status Rest() const {
    if (world_.rest) return world_.rest(kLookPause);
    world_.clock.SleepFor(kLookPause);
    return Ok();
  }

  // One directory needs no name, and a file only where another one is called the same.
  void NameRoots() {
    std::map<std::string, std::vector<LogRoot*>> alike;
    for (LogRoot& root : roots_) alike[root.is_file ? LastPart(root.path) : "/"].push_back(&root);
    for (const auto& [file_name, roots] : alike) {
      if (roots.size() == 1 && (roots_.size() == 1 || roots[0]->is_file)) continue;
      std::vector<std::string> paths;
      for (const LogRoot* const root : roots) paths.push_back(root->path);
      const std::vector<std::string> names = RootNamesOf(paths);
      for (size_t i = 0; i < roots.size(); ++i) roots[i]->name = names[i];
    }
  }

  // Whether it is what a log was renamed to, and another file may get its name at any time.
  bool IsFull(const std::string& path) const { return known_.contains(LogBefore(path)); }

  void Add(LogSource source) {
    const std::string& path = source.path;
    std::optional<int64_t> begins = FirstTold(world_.files, path);
    if (!begins) begins = LastWritten(path);
    merge_.Add(begins.value_or(world_.clock.WallNanos()));
    logs_.push_back({std::make_unique<LogFile>(world_.files, path)});
    story_.Add(std::move(source));
  }

  static LogEntry Unreadable(const std::string& path, const Error& why) {
    LogEntry entry;
    entry.is_notice = true;
    entry.words.level = "warn";
    entry.words.event = "log-unreadable";
    entry.words.fields = {{"file", path}, {"reason", why.message}};
    entry.words.text = "warn log-unreadable file=" + QuoteForLog(path) +
                       " reason=" + QuoteForLog(why.message);
    return entry;
  }

  // As of a log of that name.
  Status TellUnlisted(const LogRoot& root, const Error& why) {
    ++unreadable_;
    LogSource source;
    source.host = root.name;
    source.who = LastPart(root.path);
    source.path = source.root = root.path;
    LogEntry entry = Unreadable(root.path, why);
    entry.nanos = world_.clock.WallNanos();
    LogStory story({}, world_.paint);   // of this entry alone: the other one has files
    story.Add(std::move(source));
    return world_.print(is_json_ ? story.JsonLine(entry) : story.Text(entry));
  }

  std::optional<LogEntry> NextOf(size_t source) {
    Log& log = logs_[source];
    if (log.file == nullptr) return std::nullopt;
    if (log.failed && (!follows_ || IsFull(log.file->path()))) return std::nullopt;
    const auto line = log.file->Next(!follows_);
    LogEntry entry;
    if (!line.ok()) {
      if (std::exchange(log.failed, true)) return std::nullopt;
      ++unreadable_;
      return Unreadable(log.file->path(), line.error());
    }
    log.failed = false;
    if (!line->has_value()) {
      if (!follows_) log.file.reset();
      return std::nullopt;
    }
    entry.words = ReadLogWords((*line)->text, !story_.sources()[source].local_rank);
    entry.cut_bytes = (*line)->cut_bytes;
    entry.is_torn = (*line)->is_torn;
    return entry;
  }

  Status TellWhatIsThere() {
    std::string text;
    while (const auto entry = merge_.Next()) {
      if (!story_.Tells(*entry)) continue;
      text += is_json_ ? story_.JsonLine(*entry) : story_.Text(*entry);
      if (text.size() < kPrintedAtOnce) continue;
      KEEL_TRY(world_.print(text));
      text.clear();
    }
    return text.empty() ? Ok() : world_.print(text);
  }

  const World& world_;
  const bool follows_;
  const bool is_json_;
  std::vector<LogRoot> roots_;
  std::set<std::string> known_;   // paths
  std::set<std::string> real_;    // the same without links
  std::vector<Log> logs_;
  size_t unreadable_ = 0;
  LogMerge merge_;
  LogStory story_;
};

}  // namespace

OptionTable LogTable() {
  OptionTable table = CommandTable(
      "log",
      "Tells what the hosts and workers of a job have logged as one story, by time: keelrun's own "
      "log (keep it: 2> DIR/keelrun.log), the output of workers that keelrun wrote to its "
      "--log-dir (--redirects 3 or --tee 3), and --log-jsonl of training programs. In a directory "
      "it reads what lies as keelrun lays it, and files named *.log, *.err, *.out, *.txt and "
      "*.jsonl. Each line begins with its time and with whose it is: node0/worker1.2 is local rank "
      "1 of the folder node0 in its third attempt. A line without a time of its own (a print(), a "
      "traceback) is placed at the last time that its file tells before it; where the file tells "
      "none, at the time the file was last written. Such times are marked by ~. What lies in two "
      "files is told once. Clocks of hosts are believed as they are. With --json each entry is an "
      "object on a line of its own.",
      "DIR|FILE...", "some logs could not be read: entries log-unreadable say which and why");
  table.Add(Option::Flag("follow", false, "Go on with what is logged from now on, in files that "
                                          "are there or appear, until Ctrl-C").Short('f'));
  table.Add(Option::Flag("events", false,
                         "Only events: no output of programs in other forms, and no entries of "
                         "event step"));
  table.Add(Option::List("host", "", "Only these hosts, by the names that the lines show in front "
                                     "of the slash").Placeholder("NAME,..."));
  table.Add(Option::List("local-rank", "", "Only the workers of these local ranks, and events that "
                                           "are about them").Placeholder("N,..."));
  table.Add(Option::Choice("level", {"debug", "info", "warn", "error"}, "debug",
                           "Only this level and graver ones. Lines without one count as info"));
  table.Add(Option::Text("since", "", "Only what was logged from this time on: "
                                      "2026-11-21T08:30:00Z, or how long ago: 10min")
                .Placeholder("TIME"));
  table.Add(Option::Text("until", "", "Only what was logged before this time").Placeholder("TIME"));
  table.AddExample("mkdir -p logs; keelrun --log-dir logs --redirects 3 --standalone train.py "
                   "2> logs/keelrun.log",
                   "A job that leaves all its logs in one place");
  table.AddExample("keel log logs --events", "What happened");
  table.AddExample("keel log node0/logs node1/logs --level warn", "What went wrong, on two hosts");
  table.AddExample("keel log logs --follow --since 0s", "From now on");
  table.AddExample("keel log logs --json | jq 'select(.event == \"worker-died\").fields'",
                   "For a script");
  return table;
}

Status CheckLog(const Options& options) {
  const auto filter = FilterOf(options, 0);
  return filter.ok() ? Ok() : Status(filter.error());
}

Result<Outcome> RunLog(const World& world, const Options& options) {
  KEEL_TRY_ASSIGN(LogFilter filter, FilterOf(options, world.clock.WallNanos()));
  LogTeller teller(world, options, std::move(filter));
  KEEL_TRY(teller.FindRoots(options.positionals()));
  KEEL_TRY(teller.FindLogs(false));
  if (!teller.has_logs() && !options.Flag("follow")) {
    return Error{Code::kNotFound,
                 "no logs in " + JoinList(options.positionals(), ", ") +
                     ": name the --log-dir of keelrun (workers write there with --redirects 3 or "
                     "--tee 3), or files that are logs"};
  }
  const Status told = teller.TellAll();
  if (!told.ok() && told.error().code != Code::kPeerLost) return told.error();
  Outcome outcome;
  if (teller.unreadable() > 0) outcome.exit_code = kExitNo;
  return outcome;
}

}  // namespace keel
