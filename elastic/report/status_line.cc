// Wipes, writes what goes above, and draws again, under one lock, so that nothing gets in between.
#include "elastic/report/status_line.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "elastic/report/blame_words.h"

namespace keel {
namespace {

constexpr std::string_view kWipe = "\r\x1b[K";
constexpr int kColumnsUnknown = 80;
// How long Hide() waits until lines of other threads are written.
constexpr Duration kHideLimit = std::chrono::seconds(5);

// A terminal that was stopped takes nothing.
bool HasRoom(Duration limit) {
  pollfd room{STDERR_FILENO, POLLOUT, 0};
  return poll(&room, 1, static_cast<int>(limit / std::chrono::milliseconds(1))) == 1;
}

}  // namespace

std::string StatusText(const MemberRecord& host, const std::optional<EpochRecord>& epoch) {
  std::string text;
  if (host.state != MemberState::kMember) {   // comes first, since the end may be cut
    text = "stopping";
    if (!host.reason.empty()) text += " (" + Printable(host.reason) + ")";
    if (!epoch) return text;
    text += ", ";
  }
  if (!epoch) return "waiting for the first epoch";
  int64_t step = -1;
  for (const SeatRecord& seat : host.seats) step = std::max(step, seat.position.step);
  text += "epoch " + std::to_string(epoch->number) + ": " +
          CountText(epoch->workers.size(), "worker") + " on " +
          CountText(epoch->hosts.size(), "host");
  if (step >= 0) text += ", step " + std::to_string(step);
  const int64_t deaths = DeathCount(host.blame);
  if (deaths > 0) {
    text += ", " + std::to_string(deaths) + (deaths == 1 ? " failure" : " failures") + " here";
  }
  return text;
}

int TerminalColumns() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kColumnsUnknown;
}

StatusLine::StatusLine(bool drawn)
    : covers_stdout_(IsOneTerminal(STDOUT_FILENO, STDERR_FILENO)),
      console_(STDERR_FILENO),
      hidden_(!drawn) {
  log_ = std::make_unique<LogQueue>(
      [this](std::string_view line, const CancelToken& give_up) { return Log(line, give_up); });
}

StatusLine::~StatusLine() {
  log_.reset();
  Hide();
}

void StatusLine::Show(const std::string& text) {
  {
    const std::lock_guard lock(text_mutex_);
    text_ = text;
  }
  // Where somebody writes just now, or there is no room, the next line brings it.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || hidden_ || !HasRoom(Duration(0))) return;
  Write("", CancelToken::Never());
}

// On a terminal that takes nothing the line stays: whoever ends must not wait for it.
void StatusLine::Hide() {
  const std::unique_lock lock(mutex_, kHideLimit);
  if (hidden_.exchange(true) || !lock.owns_lock() || !HasRoom(kHideLimit)) return;
  Write("", CancelToken::Never());
}

bool StatusLine::Above(std::string_view lines, const CancelToken& give_up) {
  return Log(lines, give_up) == lines.size();
}

size_t StatusLine::Log(std::string_view lines, const CancelToken& give_up) {
  const std::lock_guard lock(mutex_);
  if (!hidden_) return Write(lines, give_up) ? lines.size() : 0;
  (void)console_.Write(lines, give_up);
  return lines.size() - console_.missed();
}

// Call it under the lock. The last column stays free, since a terminal may wrap there already.
bool StatusLine::Write(std::string_view above, const CancelToken& give_up) {
  const size_t columns = static_cast<size_t>(TerminalColumns());
  std::string all(kWipe);
  all += above;
  if (!hidden_) {
    const std::lock_guard lock(text_mutex_);
    all += text_.substr(0, columns - 1);
  }
  return console_.Write(all, give_up);
}

}  // namespace keel
