// Looks at every file each 50 ms, or at once when told that one is finished.
#include "elastic/workers/log_tail.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "base/file_helpers.h"
#include "base/log.h"
#include "elastic/process/quiet_thread.h"

namespace keel {
namespace {

constexpr Duration kGlance = std::chrono::milliseconds(50);
constexpr size_t kPieceBytes = 64 * 1024;
constexpr size_t kLineBytesMax = 1 << 20;

bool Takes(const std::vector<std::string>& filters, const std::string& line) {
  return std::any_of(filters.begin(), filters.end(), [&line](const std::string& filter) {
    return line.find(filter) != std::string::npos;
  });
}

}  // namespace

LogTail::LogTail(Files& files, LostOutput& lost, int out_fd, int err_fd, StatusLine* status)
    : files_(files), lost_(lost), out_(out_fd), err_(err_fd), status_(status) {
  thread_ = StartQuietThread("keel-logs", [this] { Run(); });
}

LogTail::~LogTail() {
  give_up_.Cancel();
  {
    const std::lock_guard lock(mutex_);
    shared_.stopping = true;
  }
  changed_.notify_all();
  thread_.join();
}

int LogTail::Follow(TailSource source) {
  auto followed = std::make_shared<Followed>();
  followed->source = std::move(source);
  const std::lock_guard lock(mutex_);
  KEEL_CHECK(!shared_.stopping, "following " << followed->source.path << " after Stop()");
  shared_.followed.emplace(shared_.next_number, std::move(followed));
  changed_.notify_all();
  return shared_.next_number++;
}

void LogTail::Finish(int number) {
  const std::lock_guard lock(mutex_);
  const auto found = shared_.followed.find(number);
  if (found != shared_.followed.end()) found->second->finished = true;
  changed_.notify_all();
}

Status LogTail::Stop(TimePoint deadline) {
  std::unique_lock lock(mutex_);
  shared_.stopping = true;
  changed_.notify_all();
  while (!shared_.done) {
    const Duration left = deadline - RealClock().Monotonic();
    if (left <= Duration(0)) {
      return Error{Code::kTimeout, "the workers' last output is only in their log files, since "
                                   "the console is not being read"};
    }
    changed_.wait_for(lock, std::min<Duration>(left, std::chrono::hours(1)));
  }
  return Ok();
}

void LogTail::Run() {
  for (;;) {
    bool is_end = false;
    bool showed = false;
    {
      const std::lock_guard lock(mutex_);
      is_end = shared_.stopping;
      for (auto& [number, followed] : shared_.followed) followed->finished |= is_end;
    }
    for (const std::shared_ptr<Followed>& followed : Current()) showed |= ReadOn(*followed);
    std::unique_lock lock(mutex_);
    if (is_end && (shared_.followed.empty() || give_up_.cancelled())) {
      shared_.done = true;
      changed_.notify_all();
      return;
    }
    if (!showed) changed_.wait_for(lock, kGlance);
  }
}

// Those that are still to be read; a finished one is removed once it was read to its end.
std::vector<std::shared_ptr<LogTail::Followed>> LogTail::Current() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Followed>> current;
  for (const auto& [number, followed] : shared_.followed) current.push_back(followed);
  return current;
}

// Returns true if there may be more at once.
bool LogTail::ReadOn(Followed& followed) {
  bool is_finished = false;
  {
    const std::lock_guard lock(mutex_);
    is_finished = followed.finished;
  }
  if (followed.source.spool) is_finished |= followed.source.spool->ended();
  if (ReadPiece(followed)) {
    ShowLines(followed, false);
    return true;
  }
  if (!is_finished) return false;
  ShowLines(followed, true);
  const auto filtered = filtered_.find(followed.source.filtered_path);
  if (filtered != filtered_.end()) filtered->second.file.reset();   // of an attempt that is over
  const std::lock_guard lock(mutex_);
  std::erase_if(shared_.followed, [&followed](const auto& entry) {
    return entry.second.get() == &followed;
  });
  return false;
}

// Returns true if there may be more: behind what a spool has lost, too.
bool LogTail::ReadPiece(Followed& followed) {
  std::array<std::byte, kPieceBytes> piece;
  const Result<size_t> got = ReadSource(followed, piece);
  const uint64_t lost = followed.source.spool ? followed.source.spool->TakeLost() : 0;
  if (lost > 0) {
    lost_.Note("the console, of " + followed.source.path, lost,
               got.ok() ? "the file was emptied" : got.error().message, RealClock().Monotonic());
  }
  if (!got.ok()) {
    if (!followed.unreadable) LogWarn("log-unreadable", {{"reason", got.error().message}});
    followed.unreadable = true;
    followed.file.reset();   // it may be another one meanwhile
    return lost > 0;
  }
  followed.unreadable = false;
  followed.partial.append(reinterpret_cast<const char*>(piece.data()), *got);
  return *got > 0;
}

Result<size_t> LogTail::ReadSource(Followed& followed, std::span<std::byte> piece) {
  if (followed.source.spool) return followed.source.spool->Read(piece);
  if (!followed.file) {
    Result<std::unique_ptr<File>> file = files_.Open(followed.source.path, {});
    if (!file.ok()) return size_t{0};
    followed.file = *std::move(file);
  }
  KEEL_TRY_ASSIGN(const size_t got, followed.file->ReadAt(followed.offset, piece));
  if (got == 0) {
    // Somebody emptied the file: what is written from now on begins at its new end.
    const Result<uint64_t> bytes = followed.file->Size();
    if (bytes.ok() && *bytes < followed.offset) followed.offset = 0;
  }
  followed.offset += got;
  return got;
}

// Shows whole lines; at the end also a rest without a line feed, which is then added. What a
// progress bar draws ends by '\r', and each state of it is a line, as with torchrun.
void LogTail::ShowLines(Followed& followed, bool is_end) {
  std::string_view rest = followed.partial;
  std::string shown;
  const auto show = [&](const std::string& line) {
    if (Takes(followed.source.filters, line)) AddFiltered(followed.source, line);
    shown += followed.source.prefix + line;
  };
  while (!rest.empty()) {
    const bool is_blank = std::exchange(followed.is_blank, false);
    if (std::exchange(followed.is_after_return, false) && rest.front() == '\n') {
      rest.remove_prefix(1);
      if (is_blank) show("\n");
      continue;
    }
    const size_t end = rest.find_first_of("\n\r");
    const bool is_whole = end != std::string_view::npos;
    if (!is_whole && !is_end && rest.size() <= kLineBytesMax) break;
    const std::string line = std::string(rest.substr(0, end)) + "\n";
    followed.is_after_return = is_whole && rest[end] == '\r';
    rest.remove_prefix(is_whole ? end + 1 : rest.size());
    followed.is_blank = followed.is_after_return && line.size() == 1;   // as a bar begins
    if (!followed.is_blank) show(line);
  }
  followed.partial.erase(0, followed.partial.size() - rest.size());
  Show(shown, followed.source.is_stderr);
}

// A console whose reader has closed it takes nothing any more, as that reader wanted; the files
// have it all. One that leads to a full disk is reported.
void LogTail::Show(std::string_view lines, bool is_stderr) {
  if (status_ != nullptr && (is_stderr || status_->covers_stdout())) {
    (void)status_->Above(lines, give_up_);
    return;
  }
  Console& console = is_stderr ? err_ : out_;
  if (console.Write(lines, give_up_) || console.error() == 0 || console.error() == EPIPE) return;
  lost_.Note(is_stderr ? "standard error" : "standard output", console.missed(),
             std::strerror(console.error()), RealClock().Monotonic());
}

void LogTail::AddFiltered(const TailSource& source, const std::string& line) {
  if (source.filtered_path.empty()) return;
  const std::string text = source.prefix + line;
  const auto lose = [&](const Error& why) {
    lost_.Note(source.filtered_path, text.size(), why.message, RealClock().Monotonic());
  };
  Filtered& filtered = filtered_[source.filtered_path];
  if (!filtered.file) {
    const bool is_new = filtered.offset == 0;   // else another worker of that attempt ended before
    Result<std::unique_ptr<File>> file =
        files_.Open(source.filtered_path, {.write = true, .create = true, .truncate = is_new});
    if (!file.ok()) return lose(file.error());
    filtered.file = *std::move(file);
  }
  const Result<uint64_t> bytes = filtered.file->Size();   // somebody may have emptied it
  if (bytes.ok()) filtered.offset = std::min(filtered.offset, *bytes);
  const Status wrote = filtered.file->WriteAt(filtered.offset, BytesOf(text));
  if (!wrote.ok()) return lose(wrote.error());
  filtered.offset += text.size();
}

}  // namespace keel
