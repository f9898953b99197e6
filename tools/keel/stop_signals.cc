// A handler that notes and rings, files that look at the note, and who waits for the bell.
#include "tools/keel/stop_signals.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/clock.h"
#include "elastic/process/quiet_thread.h"
#include "tools/keel/stoppable_objects.h"

namespace keel {
namespace {

constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP};

// `timeout` sends its signal to the program and to its group, and a terminal that closes reaches it
// from the kernel and from the shell: what comes so soon after the first is no second request.
constexpr Duration kSameRequest = std::chrono::seconds(1);

std::atomic<int> noted{0};
std::atomic<int64_t> noted_at_ns{0};   // when the first one came; 0: none did
std::atomic<int> bell{-1};   // what a handler writes to: the other end of Bell()
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free,
              "a signal handler writes them");

// Another thread may handle another signal at the same time. The clock was made before the first.
void Note(int signal) {
  const int error = errno;
  const int64_t now_ns = RealClock().Monotonic().since_start.count();
  int64_t first_ns = 0;
  if (noted_at_ns.compare_exchange_strong(first_ns, now_ns)) {
    noted = signal;
    (void)!::write(bell, "", 1);
  } else if (signal == SIGINT || now_ns - first_ns >= kSameRequest.count()) {
    (void)std::signal(signal, SIG_DFL);
    (void)std::raise(signal);   // it takes effect once this returns
  }
  errno = error;
}

// It can be read once a signal is noted, and is never emptied, so that all see it. Not valid where
// the system had no pipe.
const Fd& Bell() {
  static const Fd& read_end = *[] {
    Result<PipeEnds> ends = MakePipe();
    if (!ends.ok()) return new Fd;
    bell = ends->write.Release();
    return new Fd(std::move(ends->read));
  }();
  return read_end;
}

void SetUnlessSet(int signal, void (*handler)(int)) {
  struct sigaction current {};
  if (sigaction(signal, nullptr, &current) != 0 || current.sa_handler != SIG_DFL) return;
  struct sigaction wanted {};
  wanted.sa_handler = handler;   // without SA_RESTART: a blocked write() returns
  (void)sigaction(signal, &wanted, nullptr);
}

class StoppableFile : public File {
 public:
  explicit StoppableFile(std::unique_ptr<File> below) : below_(std::move(below)) {}

  const std::string& path() const override { return below_->path(); }
  bool direct() const override { return below_->direct(); }
  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> into) override {
    KEEL_TRY(CheckStop());
    return below_->ReadAt(offset, into);
  }
  Status WriteAt(uint64_t offset, std::span<const std::byte> from) override {
    KEEL_TRY(CheckStop());
    return below_->WriteAt(offset, from);
  }
  Status Truncate(uint64_t bytes) override { return below_->Truncate(bytes); }
  Result<bool> Allocate(uint64_t bytes) override {
    KEEL_TRY(CheckStop());
    return below_->Allocate(bytes);
  }
  Status Sync() override {
    KEEL_TRY(CheckStop());
    return below_->Sync();
  }
  Result<uint64_t> Size() override { return below_->Size(); }

 private:
  const std::unique_ptr<File> below_;
};

}  // namespace

void NoteSignalsFromNowOn() {
  static std::once_flag once;
  std::call_once(once, [] {
    (void)Bell();
    (void)RealClock();
    for (const int signal : kStopSignals) SetUnlessSet(signal, Note);
    // A file beyond `ulimit -f` is an error of the write() then, and no death.
    SetUnlessSet(SIGXFSZ, SIG_IGN);
  });
}

int StopSignal() { return noted; }

Status CheckStop() {
  if (noted == 0) return Ok();
  return Error{Code::kCancelled, "a signal asked to stop"};
}

void EndByStopSignal() {
  if (noted == 0) return;
  (void)std::signal(noted, SIG_DFL);
  (void)std::raise(noted);
}

StopWatch::StopWatch(std::function<void()> on_stop) {
  Result<PipeEnds> ends = MakePipe();
  if (!ends.ok() || !Bell().valid()) return;
  end_ = *std::move(ends);
  thread_ = StartQuietThread("keel-stop", [this, on_stop = std::move(on_stop)] {
    pollfd either[] = {{Bell().number(), POLLIN, 0}, {end_.read.number(), POLLIN, 0}};
    while (::poll(either, 2, -1) < 0 && errno == EINTR) {
    }
    if (either[1].revents == 0 && either[0].revents != 0) on_stop();
  });
}

StopWatch::~StopWatch() {
  end_.write.Close();
  if (thread_.joinable()) thread_.join();
}

StoppableFiles::StoppableFiles(Files& below) : below_(below) {}
StoppableFiles::~StoppableFiles() = default;

Result<std::unique_ptr<File>> StoppableFiles::Open(const std::string& path, OpenFlags flags) {
  if (flags.write) NoteSignalsFromNowOn();
  KEEL_TRY(CheckStop());
  KEEL_TRY_ASSIGN(std::unique_ptr<File> file, below_.Open(path, flags));
  return std::unique_ptr<File>(std::make_unique<StoppableFile>(std::move(file)));
}

Status StoppableFiles::Rename(const std::string& from, const std::string& to) {
  KEEL_TRY(CheckStop());
  return below_.Rename(from, to);
}

Status StoppableFiles::MakeDir(const std::string& path) {
  NoteSignalsFromNowOn();
  KEEL_TRY(CheckStop());
  return below_.MakeDir(path);
}

Result<std::unique_ptr<FileLock>> StoppableFiles::Lock(const std::string& path,
                                                       const std::string& owner) {
  NoteSignalsFromNowOn();
  KEEL_TRY(CheckStop());
  return below_.Lock(path, owner);
}

Result<BucketPlace> StoppableFiles::Bucket(const std::string& path) {
  KEEL_TRY_ASSIGN(BucketPlace place, below_.Bucket(path));
  if (place.bucket == nullptr) return place;
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Objects>& stoppable = buckets_[place.bucket];
  if (stoppable == nullptr) stoppable = std::make_unique<StoppableObjects>(*place.bucket);
  place.bucket = stoppable.get();
  return place;
}

}  // namespace keel
