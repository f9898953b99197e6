// Writes log lines to a descriptor and survives whatever that does.
#include "base/log_output.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace keel {
namespace {

// Holds back the signals by which write() kills: SIGPIPE (the reader is gone) and SIGXFSZ (the file
// has reached its limit). Both come to the writing thread itself; one that we caused is taken away.
class DeadlySignalsHeld {
 public:
  DeadlySignalsHeld() {
    sigemptyset(&deadly_);
    sigaddset(&deadly_, SIGPIPE);
    sigaddset(&deadly_, SIGXFSZ);
    sigpending(&pending_before_);
    pthread_sigmask(SIG_BLOCK, &deadly_, &mask_before_);
  }
  ~DeadlySignalsHeld() {
    if (failed_) {
      Take(SIGPIPE);
      Take(SIGXFSZ);
    }
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }
  DeadlySignalsHeld(const DeadlySignalsHeld&) = delete;
  DeadlySignalsHeld& operator=(const DeadlySignalsHeld&) = delete;

  void NoteFailure() { failed_ = true; }

 private:
  void Take(int signal) const {
    if (sigismember(&pending_before_, signal) == 1) return;
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal);
    const timespec at_once{};
    while (sigtimedwait(&one, nullptr, &at_once) == -1 && errno == EINTR) {
    }
  }

  sigset_t deadly_{}, pending_before_{}, mask_before_{};
  bool failed_ = false;
};

// Bytes written before the end or the first failure.
size_t WriteAll(int descriptor, std::string_view text) {
  DeadlySignalsHeld held;
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(descriptor, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      held.NoteFailure();
      break;
    }
    done += static_cast<size_t>(written);
  }
  return done;
}

}  // namespace

void LogDescriptor::Write(std::string_view line) {
  std::string ended;
  if (torn_) {
    ended += '\n';
    ended += line;
    line = ended;
  }
  const size_t done = WriteAll(descriptor_, line);
  if (done < line.size()) ++lost_;
  if (done > 0) torn_ = done < line.size();
}

}  // namespace keel
