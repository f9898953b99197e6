// A handler that notes, and files that look at the note.
#include "tools/keel/stop_signals.h"

#include <atomic>
#include <csignal>
#include <mutex>
#include <utility>

namespace keel {
namespace {

constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP};

std::atomic<int> noted{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler writes it");

void Note(int signal) { noted = signal; }

void SetUnlessSet(int signal, void (*handler)(int)) {
  struct sigaction current {};
  if (sigaction(signal, nullptr, &current) != 0 || current.sa_handler != SIG_DFL) return;
  struct sigaction wanted {};
  wanted.sa_handler = handler;
  wanted.sa_flags = static_cast<int>(SA_RESETHAND);  // no SA_RESTART: a blocked write() returns
  (void)sigaction(signal, &wanted, nullptr);
}

void NoteSignalsFromNowOn() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const int signal : kStopSignals) SetUnlessSet(signal, Note);
    // A file beyond `ulimit -f` is an error of the write() then, and no death.
    SetUnlessSet(SIGXFSZ, SIG_IGN);
  });
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

}  // namespace keel
