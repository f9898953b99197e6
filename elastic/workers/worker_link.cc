// One thread polls the socket both ways; all others only touch queues.
#include "elastic/worker_link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "elastic/process/quiet_thread.h"
#include "elastic/process/stack_signal.h"

// See elastic/workers/program_mark.h. A note keeps its name when a program is stripped.
asm(".pushsection .note.evenkeel, \"a\", %note\n"
    ".balign 4\n"
    ".long 9, 4, 1\n"
    ".asciz \"Evenkeel\"\n"
    ".balign 4\n"
    ".long 1\n"
    ".popsection");

namespace keel {
namespace {

constexpr size_t kOutboxBytesMax = 1 << 20;
constexpr int64_t kAllEpochs = std::numeric_limits<int64_t>::max();
constexpr Duration kCancelGlance = std::chrono::milliseconds(5);
constexpr Duration kGlanceMax = std::chrono::hours(1);

Result<Fd> MakeEvent() {
  Fd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (event.valid()) return event;
  return Error{Code::kForeign, std::string("making an eventfd: ") + std::strerror(errno)};
}

void Raise(const Fd& event) {
  const uint64_t one = 1;
  // This can fail only when it is raised already.
  [[maybe_unused]] const ssize_t wrote = write(event.number(), &one, sizeof one);
}

void Lower(const Fd& event) {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(event.number(), &count, sizeof count);
}

// How long a wait may last before the deadline and the token are checked again.
Duration Bite(TimePoint deadline, const CancelToken& cancel) {
  const Duration left = std::max(deadline - RealClock().Monotonic(), Duration(0));
  const Duration most = cancel.can_be_cancelled() ? kCancelGlance : kGlanceMax;
  return std::min(left, most);
}

Result<Fd> InheritedSocket(const std::string& text) {
  const Result<int64_t> number = ParseInteger(text);
  const std::string where = std::string(kControlFdVariable) + "=" + Shown(text);
  if (!number.ok() || *number < 3 || *number > std::numeric_limits<int>::max()) {
    return Error{Code::kInvalid, where + " is not the number of a descriptor; only a launcher "
                                         "(keelrun) may set it"};
  }
  const int fd = static_cast<int>(*number);
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISSOCK(status.st_mode)) {
    return Error{Code::kInvalid, where + " is not an open socket: the variable was inherited "
                                         "without its descriptor; unset it to run without a "
                                         "launcher"};
  }
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
    return Error{Code::kForeign, where + ": keeping it from our children: " +
                                     std::strerror(errno)};
  }
  return Fd(fd);
}

}  // namespace

// Shared by the watch and the link, since either may go first.
struct WorkerLink::BreakWatch::State {
  explicit State(OnBreak call) : on_break(std::move(call)) {}

  void Call(const std::string& reason) {
    const std::lock_guard lock(mutex);
    if (const OnBreak call = std::exchange(on_break, nullptr)) call(reason);
  }

  std::mutex mutex;   // held while the call runs
  OnBreak on_break;   // empty: called, or not wanted any more
};

WorkerLink::BreakWatch::BreakWatch(std::shared_ptr<State> state) : state_(std::move(state)) {}

WorkerLink::BreakWatch::~BreakWatch() {
  if (!state_) return;
  const std::lock_guard lock(state_->mutex);
  state_->on_break = nullptr;
}

Result<std::unique_ptr<WorkerLink>> WorkerLink::FromEnvironment(const Environment& environment) {
  const auto found = environment.find(kControlFdVariable);
  if (found == environment.end() || found->second.empty()) {
    return Error{Code::kNotFound, std::string(kControlFdVariable) +
                                      " is not set: this program was not started by keelrun"};
  }
  KEEL_TRY_ASSIGN(Fd socket, InheritedSocket(found->second));
  InstallStackDump();
  return Open(std::move(socket));
}

Result<std::unique_ptr<WorkerLink>> WorkerLink::Open(Fd socket) {
  KEEL_TRY_ASSIGN(Fd wake, MakeEvent());
  KEEL_TRY_ASSIGN(Fd ready, MakeEvent());
  std::unique_ptr<WorkerLink> link(
      new WorkerLink(std::move(socket), std::move(wake), std::move(ready)));
  link->reader_ = StartQuietThread("keel-link", [&link = *link] { link.Run(); });
  return link;
}

WorkerLink::WorkerLink(Fd socket, Fd wake, Fd ready)
    : socket_(std::move(socket)),
      wake_(std::move(wake)),
      ready_(std::move(ready)),
      framer_(kControlLineMax) {}

WorkerLink::~WorkerLink() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  Raise(wake_);
  reader_.join();
}

void WorkerLink::TellWhere(std::function<AtMessage()> where) {
  const std::lock_guard lock(mutex_);
  where_ = std::move(where);
}

Status WorkerLink::Send(const WorkerMessage& message) {
  const std::lock_guard lock(mutex_);
  return SendLocked(message);
}

Status WorkerLink::SendLocked(const WorkerMessage& message) {
  KEEL_TRY_ASSIGN(std::string line, EncodeMessage(message));
  const bool replaces = std::holds_alternative<AtMessage>(message) ||
                        std::holds_alternative<FiguresMessage>(message);
  if (closed_) return ClosedError();
  if (const auto* const at = std::get_if<AtMessage>(&message)) {
    if (!told_) Raise(wake_);   // the reader has something to repeat from now on
    told_ = *at;
    told_at_ = RealClock().Monotonic();
  } else if (std::holds_alternative<ParkedMessage>(message) ||
             std::holds_alternative<ByeMessage>(message)) {
    told_.reset();
  }
  if (replaces) {
    // The first one may have been sent in part.
    const size_t first = std::min<size_t>(front_sent_ > 0 ? 1 : 0, outbox_.size());
    for (size_t i = outbox_.size(); i-- > first;) {
      if (outbox_[i].type != message.index()) continue;
      outbox_bytes_ -= outbox_[i].line.size();
      outbox_.erase(outbox_.begin() + static_cast<ptrdiff_t>(i));
    }
  }
  if (outbox_bytes_ + line.size() > kOutboxBytesMax) {
    return Error{Code::kNoSpace, "the launcher has not read " + std::to_string(outbox_bytes_) +
                                     " bytes of messages: is it stopped?"};
  }
  outbox_bytes_ += line.size();
  outbox_.push_back({std::move(line), message.index()});
  WriteSome();
  if (!outbox_.empty()) Raise(wake_);
  return Ok();
}

// Called with the lock held.
void WorkerLink::WriteSome() {
  while (!outbox_.empty()) {
    const std::string& line = outbox_.front().line;
    const ssize_t sent = send(socket_.number(), line.data() + front_sent_,
                              line.size() - front_sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    // Any failure but "full" also shows in reading, which first returns what the peer still said.
    if (sent < 0) return;
    front_sent_ += static_cast<size_t>(sent);
    if (front_sent_ < line.size()) continue;
    outbox_bytes_ -= line.size();
    front_sent_ = 0;
    outbox_.pop_front();
  }
  changed_.notify_all();
}

Status WorkerLink::Flush(TimePoint deadline) {
  std::unique_lock lock(mutex_);
  while (!outbox_.empty()) {
    if (closed_) return ClosedError();
    const Duration bite = Bite(deadline, CancelToken::Never());
    if (bite == Duration(0)) {
      return Error{Code::kTimeout, "the launcher has not read " +
                                       std::to_string(outbox_bytes_) + " bytes of messages"};
    }
    changed_.wait_for(lock, bite);
  }
  return Ok();
}

Result<SupervisorMessage> WorkerLink::Receive(TimePoint deadline, const CancelToken& cancel) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (auto message = PopFront()) return *std::move(message);
    if (closed_) return ClosedError();
    if (cancel.cancelled()) {
      return Error{Code::kCancelled, "waiting for the launcher was cancelled"};
    }
    const Duration bite = Bite(deadline, cancel);
    if (bite == Duration(0)) {
      return Error{Code::kTimeout, "no message from the launcher in time"};
    }
    changed_.wait_for(lock, bite);
  }
}

Result<std::optional<SupervisorMessage>> WorkerLink::TryReceive() {
  const std::lock_guard lock(mutex_);
  std::optional<SupervisorMessage> message = PopFront();
  if (!message && closed_) return ClosedError();
  return message;
}

// Called with the lock held.
std::optional<SupervisorMessage> WorkerLink::PopFront() {
  if (inbox_.empty()) return std::nullopt;
  SupervisorMessage message = std::move(inbox_.front());
  inbox_.pop_front();
  if (inbox_.empty() && !closed_) Lower(ready_);
  return message;
}

Error WorkerLink::ClosedError() const {
  return {Code::kPeerLost, "the link to the launcher is closed: " + *closed_};
}

bool WorkerLink::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_.has_value();
}

CancelToken WorkerLink::BreakToken(int64_t epoch) {
  const std::lock_guard lock(mutex_);
  if (epoch <= broken_) {
    const CancelToken raised;
    raised.Cancel();
    return raised;
  }
  return tokens_[epoch];
}

WorkerLink::BreakWatch WorkerLink::WatchBreak(int64_t epoch, OnBreak on_break) {
  auto state = std::make_shared<BreakWatch::State>(std::move(on_break));
  std::string reason;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(watches_, [](const auto& entry) { return entry.second.use_count() == 1; });
    if (epoch > broken_) {
      watches_.emplace(epoch, state);
      return BreakWatch(std::move(state));
    }
    reason = break_reason_;
  }
  state->Call(reason);
  return BreakWatch(std::move(state));
}

// Called with the lock held.
WorkerLink::Watches WorkerLink::BreakUpTo(int64_t epoch, const std::string& reason) {
  Watches freed;
  if (epoch <= broken_) return freed;
  broken_ = epoch;
  break_reason_ = reason;
  while (!tokens_.empty() && tokens_.begin()->first <= epoch) {
    tokens_.begin()->second.Cancel();
    tokens_.erase(tokens_.begin());
  }
  while (!watches_.empty() && watches_.begin()->first <= epoch) {
    freed.push_back(std::move(watches_.begin()->second));
    watches_.erase(watches_.begin());
  }
  return freed;
}

void WorkerLink::Take(SupervisorMessage message) {
  if (const auto* unknown = std::get_if<UnknownMessage>(&message)) {
    LogWarn("control-message-unknown", {{"type", unknown->type}});
    return;
  }
  if (const auto* alive = std::get_if<AliveMessage>(&message)) {
    quiet_limit_ = std::chrono::milliseconds(alive->limit_ms);
    return;
  }
  if (const auto* epoch = std::get_if<EpochMessage>(&message)) entered_ = epoch->epoch;
  Watches freed;
  std::string reason;
  {
    const std::lock_guard lock(mutex_);
    if (const auto* over = std::get_if<BreakMessage>(&message)) {
      reason = over->reason;
      freed = BreakUpTo(over->epoch, reason);
    }
    inbox_.push_back(std::move(message));
    Raise(ready_);
  }
  changed_.notify_all();
  for (const auto& watch : freed) watch->Call(reason);
}

void WorkerLink::Close(const std::string& why) {
  Watches freed;
  const std::string reason = "the link to the launcher is closed: " + why;
  {
    const std::lock_guard lock(mutex_);
    closed_ = why;
    freed = BreakUpTo(kAllEpochs, reason);
    Raise(ready_);
    // The peer must not wait for us, whatever is wrong.
    shutdown(socket_.number(), SHUT_RDWR);
  }
  changed_.notify_all();
  for (const auto& watch : freed) watch->Call(reason);
}

void WorkerLink::Run() {
  for (;;) {
    bool readable = false;
    bool writable = false;
    AwaitWork(readable, writable);
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      if (writable) WriteSome();
    }
    if (readable && !ReadSome()) return;
    if (!readable) BreakIfTooQuiet();
    TellAgain();
  }
}

// Called with the lock held.
Duration WorkerLink::UntilTold() const {
  if (!told_ || closed_) return kGlanceMax;
  return std::max(told_at_ + kTellPause - RealClock().Monotonic(), Duration(0));
}

// A position that still waits to be sent is not repeated, which would put it behind what was said
// after it. A failure here is seen by the sender of the next message.
void WorkerLink::TellAgain() {
  const std::lock_guard lock(mutex_);
  if (UntilTold() > Duration(0)) return;
  const size_t kind = WorkerMessage(AtMessage{}).index();
  const bool waits = std::any_of(outbox_.begin(), outbox_.end(),
                                 [&](const Outgoing& one) { return one.type == kind; });
  if (waits) {
    told_at_ = RealClock().Monotonic();
    return;
  }
  (void)SendLocked(where_ ? where_() : *told_);
}

Duration WorkerLink::UntilTooQuiet() const {
  if (quiet_limit_ == Duration(0) || entered_ == 0) return kGlanceMax;
  return std::max(heard_ + quiet_limit_ - RealClock().Monotonic(), Duration(0));
}

// A supervisor that stands still cannot tell that the others have gone on without it. It keeps its
// worker, which waits for it with all its state.
void WorkerLink::BreakIfTooQuiet() {
  if (UntilTooQuiet() > Duration(0)) return;
  const std::string reason =
      "its launcher has said nothing for " + DurationText(quiet_limit_) + ": is it stopped?";
  LogWarn("supervisor-silent", {{"epoch", entered_}, {"reason", reason}});
  Take(BreakMessage{std::exchange(entered_, 0), reason});
}

void WorkerLink::AwaitWork(bool& readable, bool& writable) {
  bool is_full = false;
  Duration until_told{0};
  {
    const std::lock_guard lock(mutex_);
    is_full = !outbox_.empty();
    until_told = UntilTold();
  }
  const short wanted = static_cast<short>(is_full ? POLLIN | POLLOUT : POLLIN);
  std::array<pollfd, 2> fds = {{{socket_.number(), wanted, 0}, {wake_.number(), POLLIN, 0}}};
  // Rounded up, so that the loop does not spin for the rest of a millisecond.
  const auto patience =
      std::min(UntilTooQuiet(), until_told) / std::chrono::milliseconds(1) + 1;
  if (poll(fds.data(), fds.size(), static_cast<int>(patience)) < 0) return;
  if (fds[1].revents != 0) Lower(wake_);
  readable = (fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
  writable = (fds[0].revents & POLLOUT) != 0;
}

// Returns false once the link is closed.
bool WorkerLink::ReadSome() {
  std::array<char, 16384> piece;
  const ssize_t got = recv(socket_.number(), piece.data(), piece.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got <= 0) {
    Close(got == 0 ? "keelrun has ended, or has given this worker up; its log says why"
                   : std::strerror(errno));
    return false;
  }
  heard_ = RealClock().Monotonic();
  const Status fed = framer_.Feed({piece.data(), static_cast<size_t>(got)});
  Status taken = TakeLines();
  if (taken.ok() && !fed.ok()) taken = fed;
  if (taken.ok()) return true;
  const std::string reason = taken.error().message + "; is this program built with the same "
                                                     "release of Evenkeel as keelrun?";
  LogError("control-link-garbage", {{"reason", reason}});
  Close(reason);
  return false;
}

Status WorkerLink::TakeLines() {
  while (const std::optional<std::string> line = framer_.Next()) {
    KEEL_TRY_ASSIGN(SupervisorMessage message, ParseSupervisorMessage(*line));
    Take(std::move(message));
  }
  return Ok();
}

}  // namespace keel
