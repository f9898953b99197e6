// Decides the layout first, as plain text; then makes folders.
#include "elastic/workers/logs.h"

#include <algorithm>
#include <utility>

#include "base/file_helpers.h"
#include "base/log.h"
#include "base/text.h"
#include "base/text_template.h"
#include "base/within.h"

namespace keel {
namespace {

constexpr int kNameTries = 100;
constexpr size_t kRunIdBytesMax = 200;

StreamPlan PlanStream(const LogOptions& options, const std::string& path, bool redirected,
                      bool teed, bool is_shown_rank) {
  StreamPlan plan;
  const bool has_files = options.log_dir != kNoLogs;
  if (has_files && (redirected || teed)) {
    plan.to = StreamPlan::To::kFile;
    plan.path = path;
    plan.shown = teed && is_shown_rank;
  } else if (has_files && !is_shown_rank) {
    plan.to = StreamPlan::To::kNowhere;
  }
  return plan;
}

Status MakeFolder(Files& files, const std::string& path) {
  Status made = files.MakeDir(path);
  if (made.ok()) return made;
  if (made.error().code == Code::kNotFound && ParentDir(path) != path) {
    KEEL_TRY(MakeFolder(files, ParentDir(path)));
    made = files.MakeDir(path);
    if (made.ok()) return made;
  }
  if (made.error().code != Code::kExists) return made;
  KEEL_TRY_ASSIGN(const FileInfo info, files.Stat(path));
  if (info.kind == FileKind::kDirectory) return Ok();
  return Error{Code::kInvalid, "the log folder " + Shown(path) + " is a file"};
}

// A folder with a unique name: `beginning` and eight digits.
Result<std::string> MakeUnique(Files& files, Random& random, const std::string& beginning) {
  for (int i = 0;; ++i) {
    const std::string path = beginning + RandomId(random, 8);
    const Status made = files.MakeDir(path);
    if (made.ok()) return path;
    if (made.error().code != Code::kExists || i == kNameTries) return made.error();
  }
}

// A folder that is in use or cannot be removed stays: it is only litter.
void RemoveEmptyFolders(Files& files, const std::string& path) {
  const auto entries = files.List(path);
  if (!entries.ok()) return;
  for (const DirEntry& entry : *entries) {
    if (entry.kind != FileKind::kDirectory) continue;
    RemoveEmptyFolders(files, JoinPath(path, entry.name));
  }
  (void)files.RemoveDir(path);
}

// A run id may hold any character and be long; a folder's name may not.
std::string FolderName(std::string run_id) {
  std::replace(run_id.begin(), run_id.end(), '/', '-');
  std::replace(run_id.begin(), run_id.end(), '\0', '-');
  return Beginning(run_id, kRunIdBytesMax) + "_";
}

}  // namespace

Stream StreamPlan::AsStream() const {
  switch (to) {
    case To::kConsole: return Stream::Inherit();
    case To::kFile: return Stream::File(path);
    case To::kNowhere: return Stream::Null();
  }
  return Stream::Inherit();
}

SeatLogs PlanSeatLogs(const LogOptions& options, const std::string& run_dir, int attempt,
                      int local_rank) {
  SeatLogs logs;
  logs.attempt = attempt;
  const bool has_files = options.log_dir != kNoLogs;
  const std::string attempt_dir = JoinPath(run_dir, "attempt_" + std::to_string(attempt));
  const std::string folder = JoinPath(attempt_dir, std::to_string(local_rank));
  const StreamChoice redirects = options.redirects.Of(local_rank);
  const StreamChoice tee = options.tee.Of(local_rank);
  const bool is_shown = !options.shown_ranks || options.shown_ranks->count(local_rank) > 0;
  logs.out = PlanStream(options, JoinPath(folder, "stdout.log"), redirects.out, tee.out, is_shown);
  logs.err = PlanStream(options, JoinPath(folder, "stderr.log"), redirects.err, tee.err, is_shown);
  if (logs.out.shown && !options.out_filters.empty()) {
    logs.out.filtered_path = JoinPath(attempt_dir, "filtered_stdout.log");
  }
  if (logs.err.shown && !options.err_filters.empty()) {
    logs.err.filtered_path = JoinPath(attempt_dir, "filtered_stderr.log");
  }
  if (has_files) {
    logs.folder = folder;
    logs.error_file = JoinPath(folder, "error.json");
  }
  return logs;
}

std::string LinePrefix(const LogOptions& options, int local_rank, int rank) {
  if (options.prefix_template.empty()) {
    return "[" + options.role + std::to_string(local_rank) + "]:";
  }
  return SubstituteText(options.prefix_template, {{"role_name", options.role},
                                                  {"rank", std::to_string(rank)},
                                                  {"local_rank", std::to_string(local_rank)},
                                                  {"hostname", options.host}});
}

WorkerLogs::WorkerLogs(Files& files, LogOptions options, std::string run_dir,
                       std::string own_dir)
    : files_(files),
      options_(std::move(options)),
      run_dir_(std::move(run_dir)),
      own_dir_(std::move(own_dir)) {}

Result<WorkerLogs> WorkerLogs::Open(Files& files, Random& random, LogOptions options) {
  if (options.log_dir == kNoLogs) return WorkerLogs(files, std::move(options), "", "");
  std::string base = options.log_dir;
  const bool is_own = base.empty();
  if (is_own) {
    KEEL_TRY_ASSIGN(base, MakeUnique(files, random, JoinPath(options.temporary_dir, "keelrun_")));
  } else if (const Status made = MakeFolder(files, base); !made.ok()) {
    return made.error().Doing("making the log folder");
  }
  const std::string beginning = JoinPath(base, FolderName(options.run_id));
  Result<std::string> run_dir = MakeUnique(files, random, beginning);
  if (!run_dir.ok()) return run_dir.error().Doing("making the log folder of this run");
  return WorkerLogs(files, std::move(options), *std::move(run_dir), is_own ? base : "");
}

Result<SeatLogs> WorkerLogs::Prepare(int attempt, int local_rank) {
  int& next = next_attempt_[local_rank];
  SeatLogs logs = PlanSeatLogs(options_, run_dir_, std::max(attempt, next), local_rank);
  next = logs.attempt + 1;
  if (logs.folder.empty()) return logs;
  const auto answer = Within<Status>(kLogFolderLimit, [&files = files_, folder = logs.folder] {
    return MakeFolder(files, folder);
  });
  const Status made = answer.value_or(Error{Code::kTimeout, logs.folder + " does not answer"});
  // The output still goes to the console; what the files miss of it is reported.
  if (!made.ok() && made.error().code != Code::kInvalid) {
    LogWarn("no-log-folder", {{"local_rank", local_rank}, {"reason", made.error().message}});
    return logs;
  }
  if (!made.ok()) {
    return made.error().Doing("making the log folder of local rank " +
                              std::to_string(local_rank));
  }
  return logs;
}

void WorkerLogs::RemoveEmpty() {
  if (!own_dir_.empty()) RemoveEmptyFolders(files_, own_dir_);
}

}  // namespace keel
