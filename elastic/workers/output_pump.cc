// One thread polls all pipes.
#include "elastic/workers/output_pump.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/file_helpers.h"
#include "base/within.h"
#include "elastic/process/quiet_thread.h"
#include "elastic/workers/logs.h"

namespace keel {
namespace {

constexpr size_t kPieceBytes = 64 * 1024;
// Room for a burst. All pipes of a user share 64 MiB; beyond that, each new one is tiny.
constexpr int kPipeBytes = 256 * 1024;
// The most that is read after a worker's end: more than a pipe holds comes from a descendant.
constexpr size_t kDrainBytesMax = 4 << 20;

void SetNonBlocking(const Fd& fd) {
  fcntl(fd.number(), F_SETFL, fcntl(fd.number(), F_GETFL) | O_NONBLOCK);
}

}  // namespace

Result<std::unique_ptr<OutputPump>> OutputPump::Start(Files& files, LostOutput& lost) {
  KEEL_TRY_ASSIGN(PipeEnds wake, MakePipe());
  SetNonBlocking(wake.read);
  SetNonBlocking(wake.write);
  std::unique_ptr<OutputPump> pump(new OutputPump(files, lost, std::move(wake)));
  pump->thread_ = StartQuietThread("keel-output", [&pump = *pump] { pump.Run(); });
  return pump;
}

OutputPump::OutputPump(Files& files, LostOutput& lost, PipeEnds wake)
    : files_(files), lost_(lost), wake_(std::move(wake)) {}

OutputPump::~OutputPump() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  Wake();
  if (thread_.joinable()) thread_.join();
}

Result<OutputPump::Source> OutputPump::Open(std::string path, std::shared_ptr<OutputSpool> spool) {
  KEEL_TRY_ASSIGN(PipeEnds pipe, MakePipe());
  SetNonBlocking(pipe.read);
  (void)fcntl(pipe.read.number(), F_SETPIPE_SZ, kPipeBytes);
  auto stream = std::make_shared<Stream>();
  stream->path = std::move(path);
  stream->read = std::move(pipe.read);
  stream->spool = std::move(spool);
  // The file is made now for those who look for it; if that fails, Take() tries again.
  using Opened = Result<std::unique_ptr<File>>;
  auto file = Within<Opened>(kLogFolderLimit, [&files = files_, path = stream->path] {
    return files.Open(path, {.write = true, .create = true});
  });
  if (file && file->ok()) stream->file = **std::move(file);
  int number = 0;
  {
    const std::lock_guard lock(mutex_);
    KEEL_CHECK(!stopping_, "opening " << stream->path << " after Stop()");
    number = next_number_++;
    streams_.emplace(number, std::move(stream));
  }
  Wake();
  return Source{number, std::move(pipe.write)};
}

bool OutputPump::Finish(const std::vector<int>& numbers, TimePoint deadline) {
  std::unique_lock lock(mutex_);
  std::vector<std::shared_ptr<Stream>> waited;
  for (const int number : numbers) {
    const auto found = streams_.find(number);
    if (found == streams_.end()) continue;   // its pipe was closed before
    found->second->finishing = true;
    waited.push_back(found->second);
  }
  Wake();
  const auto is_over = [&] {
    return std::all_of(waited.begin(), waited.end(), [](const auto& one) { return one->finished; });
  };
  while (!is_over()) {
    if (!AwaitChange(lock, deadline)) return false;
  }
  return true;
}

bool OutputPump::Stop(TimePoint deadline) {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  Wake();
  while (!done_) {
    if (!AwaitChange(lock, deadline)) return false;
  }
  return true;
}

bool OutputPump::AwaitChange(std::unique_lock<std::mutex>& lock, TimePoint deadline) {
  const Duration left = deadline - RealClock().Monotonic();
  if (left <= Duration(0)) return false;
  changed_.wait_for(lock, std::min<Duration>(left, std::chrono::hours(1)));
  return true;
}

void OutputPump::Wake() {
  // This can fail only when the pipe is full, and then it wakes, too.
  [[maybe_unused]] const ssize_t wrote = write(wake_.write.number(), "", 1);
}

void OutputPump::Run() {
  for (bool is_end = false; !is_end;) {
    {
      const std::lock_guard lock(mutex_);
      is_end = stopping_;
      for (auto& [number, stream] : streams_) stream->finishing |= is_end;
    }
    const std::vector<std::shared_ptr<Stream>> streams = Current();
    FinishThose(streams);
    if (is_end) {
      // Takes what descendants wrote after their worker's end.
      for (const auto& stream : streams) Drain(*stream);
      break;
    }
    Await(streams);
  }
  const std::lock_guard lock(mutex_);
  streams_.clear();
  done_ = true;
  changed_.notify_all();
}

std::vector<std::shared_ptr<OutputPump::Stream>> OutputPump::Current() {
  const std::lock_guard lock(mutex_);
  std::erase_if(streams_, [](const auto& entry) {
    return entry.second->closed && entry.second->finished;
  });
  std::vector<std::shared_ptr<Stream>> current;
  for (const auto& [number, stream] : streams_) current.push_back(stream);
  return current;
}

// Waits until there is something to take or to do.
void OutputPump::Await(const std::vector<std::shared_ptr<Stream>>& streams) {
  std::vector<pollfd> polled = {{wake_.read.number(), POLLIN, 0}};
  for (const auto& stream : streams) polled.push_back({stream->read.number(), POLLIN, 0});
  if (poll(polled.data(), polled.size(), -1) <= 0) return;
  std::array<char, 64> woken;
  while (read(wake_.read.number(), woken.data(), woken.size()) > 0) {
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    if (polled[i + 1].revents != 0) TakeSome(*streams[i]);
  }
}

void OutputPump::FinishThose(const std::vector<std::shared_ptr<Stream>>& streams) {
  for (const auto& stream : streams) {
    {
      const std::lock_guard lock(mutex_);
      if (stream->finished || (!stream->finishing && !stream->closed)) continue;
    }
    Drain(*stream);
    if (stream->spool) stream->spool->End();
    stream->spool.reset();
    const std::lock_guard lock(mutex_);
    stream->finished = true;
    changed_.notify_all();
  }
}

void OutputPump::Drain(Stream& stream) {
  for (size_t taken = 0, some = 0; taken < kDrainBytesMax; taken += some) {
    some = TakeSome(stream);
    if (some == 0) return;
  }
}

// Returns 0 if there is nothing now.
size_t OutputPump::TakeSome(Stream& stream) {
  if (stream.closed) return 0;
  std::array<char, kPieceBytes> piece;
  ssize_t got = 0;
  do {
    got = read(stream.read.number(), piece.data(), piece.size());
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return 0;
  if (got <= 0) {
    stream.closed = true;
    return 0;
  }
  Take(stream, {piece.data(), static_cast<size_t>(got)});
  return static_cast<size_t>(got);
}

void OutputPump::Take(Stream& stream, std::string_view bytes) {
  std::string why;
  bytes.remove_prefix(AddToFile(stream, bytes, why));
  if (bytes.empty()) return;
  const TimePoint now = RealClock().Monotonic();
  lost_.Note(stream.path, bytes.size(), why, now);
  if (!stream.spool) return;
  const size_t kept = stream.spool->AddMemory(bytes);
  if (kept == bytes.size()) return;
  lost_.Note("the console, of " + stream.path, bytes.size() - kept,
             "the file could not be written, and the console was not read fast enough", now);
}

// Returns how much the file took, and sets `why` if that was not all. It adds at the present end of
// the file, which somebody may have emptied.
size_t OutputPump::AddToFile(Stream& stream, std::string_view bytes, std::string& why) {
  if (!stream.file) {
    auto file = files_.Open(stream.path, {.write = true, .create = true});
    if (!file.ok()) {
      why = file.error().message;
      return 0;
    }
    stream.file = *std::move(file);
  }
  const Result<uint64_t> before = stream.file->Size();
  if (!before.ok()) {
    why = before.error().message;
    stream.file.reset();
    return 0;
  }
  const Status wrote = stream.file->WriteAt(*before, BytesOf(bytes));
  uint64_t taken = bytes.size();
  if (!wrote.ok()) {
    why = wrote.error().message;
    const Result<uint64_t> after = stream.file->Size();
    taken = after.ok() && *after > *before ? std::min<uint64_t>(*after - *before, taken) : 0;
  }
  if (taken > 0 && stream.spool) stream.spool->AddFile(stream.file, *before, taken);
  // This one may never take anything again, and another one may have its name by now.
  if (!wrote.ok() && wrote.error().code != Code::kNoSpace) stream.file.reset();
  return static_cast<size_t>(taken);
}

}  // namespace keel
