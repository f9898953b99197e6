// Waits for two things: bytes on the link, and the pidfd.
#include "elastic/workers/process.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/log.h"

namespace keel {
namespace {

using boost::system::error_code;

// The most unknown types that are logged for one worker.
constexpr size_t kUnknownTypesMax = 8;

struct SocketPair {
  Fd ours;
  Fd theirs;
};

Result<SocketPair> MakeSocketPair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error{Code::kForeign, std::string("making a control link: ") + std::strerror(errno)};
  }
  return SocketPair{Fd(ends[0]), Fd(ends[1])};
}

}  // namespace

Result<std::shared_ptr<WorkerProcess>> WorkerProcess::Start(boost::asio::io_context& loop,
                                                            ChildSpec spec, Events events,
                                                            const Starter& starter) {
  KEEL_TRY_ASSIGN(SocketPair link, MakeSocketPair());
  spec.fds.push_back({link.theirs.number(), kWorkerControlFd});
  KEEL_TRY_ASSIGN(Child child, starter(spec));
  std::shared_ptr<WorkerProcess> worker(
      new WorkerProcess(loop, std::move(child), std::move(events)));
  KEEL_TRY(worker->Watch(std::move(link.ours)));
  return worker;
}

WorkerProcess::WorkerProcess(boost::asio::io_context& loop, Child child, Events events)
    : child_(std::move(child)),
      pid_(child_->pid()),
      events_(std::move(events)),
      ended_(loop),
      link_(loop),
      framer_(kControlLineMax) {}

Status WorkerProcess::Watch(Fd link) {
  Fd pidfd(fcntl(child_->pidfd().number(), F_DUPFD_CLOEXEC, 0));
  error_code failure;
  if (pidfd.valid()) ended_.assign(pidfd.number(), failure);
  if (!pidfd.valid() || failure) {
    return Error{Code::kForeign, "watching process " + std::to_string(pid_) + ": " +
                                     (failure ? failure.message() : std::strerror(errno))};
  }
  pidfd.Release();
  link_.assign(boost::asio::local::stream_protocol(), link.number(), failure);
  if (failure) return Error{Code::kForeign, "watching a control link: " + failure.message()};
  link.Release();
  link_.non_blocking(true, failure);
  AwaitEnd();
  Read();
  return Ok();
}

void WorkerProcess::AwaitEnd() {
  ended_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                    [self = shared_from_this()](const error_code& failure) {
                      if (!failure) self->OnEnd();
                    });
}

void WorkerProcess::OnEnd() {
  if (!child_) return;
  const Result<std::optional<ExitStatus>> status = child_->TryWait();
  if (status.ok() && !*status) return AwaitEnd();
  DrainLink();
  const auto on_end = std::exchange(events_, {}).on_end;
  Forget();
  if (!status.ok()) LogError("worker-lost", {{"pid", pid_}, {"reason", status.error().message}});
  // An error means that somebody else reaped it, so nobody knows how it ended.
  if (on_end) on_end(status.ok() ? **status : ExitStatus::Killed(SIGKILL));
}

void WorkerProcess::Forget() {
  events_ = {};
  error_code ignored;
  ended_.close(ignored);
  link_.close(ignored);
  child_.reset();
}

void WorkerProcess::SignalGroup(int signal) {
  if (!child_) return;
  const Status sent = child_->SignalGroup(signal);
  if (!sent.ok()) LogWarn("signal-failed", {{"pid", pid_}, {"reason", sent.error().message}});
}

// --- Its link ---

void WorkerProcess::Read() {
  link_.async_read_some(boost::asio::buffer(buffer_),
                        [self = shared_from_this()](const error_code& failure, size_t bytes) {
                          if (!self->link_.is_open()) return;
                          if (failure) {
                            return self->BreakLink({Code::kPeerLost, "it closed its end"});
                          }
                          self->TakeBytes({self->buffer_.data(), bytes});
                          if (self->link_.is_open()) self->Read();
                        });
}

void WorkerProcess::TakeBytes(std::string_view bytes) {
  const Status fed = framer_.Feed(bytes);
  while (std::optional<std::string> line = framer_.Next()) {
    const Result<WorkerMessage> message = ParseWorkerMessage(*line);
    if (!message.ok()) return BreakLink(message.error());
    if (const auto* unknown = std::get_if<UnknownMessage>(&*message)) {
      TellUnknown(unknown->type);
      continue;
    }
    if (events_.on_message) events_.on_message(*message);
  }
  if (!fed.ok()) BreakLink(fed.error());
}

// Logs each unknown type once: a newer program may use it all the time.
void WorkerProcess::TellUnknown(const std::string& type) {
  if (unknown_types_.size() >= kUnknownTypesMax || !unknown_types_.insert(type).second) return;
  const bool is_last = unknown_types_.size() == kUnknownTypesMax;
  LogInfo("unknown-message",
          {{"pid", pid_},
           {"type", type},
           {"note", is_last ? "further unknown types are not logged" : ""}});
}

// Reads what the worker said before it ended.
void WorkerProcess::DrainLink() {
  while (link_.is_open()) {
    const ssize_t bytes = recv(link_.native_handle(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return;
    TakeBytes({buffer_.data(), static_cast<size_t>(bytes)});
  }
}

void WorkerProcess::BreakLink(const Error& why) {
  // Logged here: a worker that ends at once leaves no other trace of what it said.
  if (why.code != Code::kPeerLost) {
    LogError("control-link-garbage", {{"pid", pid_}, {"reason", why.message}});
  }
  error_code ignored;
  link_.close(ignored);
  if (events_.on_link_broken) events_.on_link_broken(why);
}

void WorkerProcess::Send(const SupervisorMessage& message) {
  Result<std::string> line = EncodeMessage(message);
  if (!line.ok()) return LogError("message-not-sent", {{"reason", line.error().message}});
  if (!link_.is_open()) return;
  outbox_.push_back(*std::move(line));
  if (outbox_.size() == 1) Write();
}

void WorkerProcess::Write() {
  boost::asio::async_write(link_, boost::asio::buffer(outbox_.front()),
                           [self = shared_from_this()](const error_code& failure, size_t) {
                             // A broken link shows in Read().
                             if (failure || !self->link_.is_open()) return;
                             self->outbox_.pop_front();
                             if (!self->outbox_.empty()) self->Write();
                           });
}

}  // namespace keel
