// The alternate screen of xterm and its like, a signalfd, and poll().
#include "tools/keel/terminal_screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "tools/keel/output_stream.h"

namespace keel {
namespace {

constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
// The alternate screen, without a cursor, where what is too wide is cut off; and back.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J";
constexpr std::string_view kLeave = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

sigset_t Watched() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kEnding) sigaddset(&set, signal);
  sigaddset(&set, SIGWINCH);
  sigaddset(&set, SIGTSTP);
  return set;
}

int MillisUntil(TimePoint deadline, Clock& clock) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - clock.Monotonic()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 3'600'000));
}

}  // namespace

Result<std::unique_ptr<TerminalScreen>> TerminalScreen::Open() {
  std::unique_ptr<TerminalScreen> screen(new TerminalScreen);
  if (::isatty(STDOUT_FILENO) != 1 || ::tcgetattr(STDIN_FILENO, &screen->before_) != 0) {
    return Error{Code::kInvalid, "stdin and stdout must be a terminal"};
  }
  const sigset_t watched = Watched();
  screen->signals_ = Fd(::signalfd(-1, &watched, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!screen->signals_.valid()) {
    return Error{Code::kIo, std::string("signals cannot be watched: ") + std::strerror(errno)};
  }
  (void)pthread_sigmask(SIG_BLOCK, &watched, &screen->mask_before_);
  screen->Enter();
  return screen;
}

TerminalScreen::~TerminalScreen() {
  if (!signals_.valid()) return;
  Leave();
  (void)pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void TerminalScreen::Enter() {
  termios typing = before_;
  typing.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  typing.c_cc[VMIN] = 1;
  typing.c_cc[VTIME] = 0;
  (void)::tcsetattr(STDIN_FILENO, TCSADRAIN, &typing);
  (void)WriteToDescriptor(STDOUT_FILENO, kEnter, "the terminal");
}

void TerminalScreen::Leave() {
  (void)WriteToDescriptor(STDOUT_FILENO, kLeave, "the terminal");
  (void)::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
}

TerminalScreen::Size TerminalScreen::size() const {
  winsize told{};
  Size size;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &told) != 0) return size;
  if (told.ws_col > 0) size.width = told.ws_col;
  if (told.ws_row > 0) size.height = told.ws_row;
  return size;
}

Status TerminalScreen::Draw(const std::vector<std::string>& lines) {
  std::string text = "\x1b[H";
  for (size_t i = 0; i < lines.size(); ++i) {
    text += lines[i] + "\x1b[0m\x1b[K" + (i + 1 < lines.size() ? "\r\n" : "");
  }
  return WriteToDescriptor(STDOUT_FILENO, text + "\x1b[J", "the terminal");
}

TerminalScreen::Woke TerminalScreen::OnSignal() {
  signalfd_siginfo told{};
  if (::read(signals_.number(), &told, sizeof told) != sizeof told) return Woke::kRedraw;
  const int signal = static_cast<int>(told.ssi_signo);
  if (signal == SIGTSTP) {
    Leave();
    (void)::raise(SIGSTOP);   // goes on here, after `fg`
    Enter();
  }
  if (signal == SIGTSTP || signal == SIGWINCH) return Woke::kRedraw;
  ended_by_ = signal;
  return Woke::kEnd;
}

TerminalScreen::Woke TerminalScreen::OnTyped() {
  char typed[256];
  const ssize_t got = ::read(STDIN_FILENO, typed, sizeof typed);
  if (got <= 0 && errno == EINTR) return Woke::kRedraw;
  if (got <= 0) {   // the terminal is gone
    ended_by_ = SIGHUP;
    return Woke::kEnd;
  }
  keys_.append(typed, static_cast<size_t>(got));
  return Woke::kKeys;
}

TerminalScreen::Woke TerminalScreen::Wait(int socket, bool to_write, TimePoint deadline,
                                          Clock& clock) {
  for (;;) {
    pollfd watched[] = {{signals_.number(), POLLIN, 0},
                        {STDIN_FILENO, POLLIN, 0},
                        {socket, static_cast<short>(to_write ? POLLOUT : POLLIN), 0}};
    const int ready = ::poll(watched, std::size(watched), MillisUntil(deadline, clock));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return Woke::kTime;
    if (watched[0].revents != 0) return OnSignal();
    if (watched[1].revents != 0) return OnTyped();
    return Woke::kSocket;
  }
}

std::string TerminalScreen::TakeKeys() { return std::exchange(keys_, {}); }

}  // namespace keel
