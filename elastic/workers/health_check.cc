// Waits for three things: the command's end, what it prints, and the limit.
#include "elastic/workers/health_check.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/system/system_error.hpp>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/fd.h"
#include "base/text.h"
#include "elastic/process/signal_set.h"
#include "elastic/process/spawn.h"

namespace keel {
namespace {

using boost::asio::posix::stream_descriptor;
using boost::system::error_code;

// While it lives this thread gets signals that are held back at other times.
class SignalsLetIn {
 public:
  explicit SignalsLetIn(const std::vector<int>& signals) {
    const sigset_t set = SignalSet(signals);
    pthread_sigmask(SIG_UNBLOCK, &set, &before_);
  }
  ~SignalsLetIn() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsLetIn(const SignalsLetIn&) = delete;
  SignalsLetIn& operator=(const SignalsLetIn&) = delete;

 private:
  sigset_t before_{};
};

constexpr size_t kSaidBytesMax = 4096;      // are kept
constexpr size_t kToldBytesMax = 400;       // are told
constexpr size_t kRestBytesMax = 1 << 20;   // are read after the command's end
// By which a shell says that it could not run what it was told to.
constexpr int kNotExecutable = 126;
constexpr int kNoSuchCommand = 127;

std::string LastLine(std::string_view said) {
  std::string last;
  for (const std::string& line : SplitList(said, '\n')) last = line;
  return Printable(Beginning(last, kToldBytesMax));
}

Result<stream_descriptor> Watched(boost::asio::io_context& loop, const Fd& fd) {
  Fd copy(fcntl(fd.number(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return Error{Code::kForeign, std::strerror(errno)};
  stream_descriptor watched(loop);
  error_code failure;
  watched.assign(copy.number(), failure);
  if (failure) return Error{Code::kForeign, failure.message()};
  copy.Release();
  return watched;
}

}  // namespace

HealthOutcome JudgeHealth(const HealthPlan& plan, const std::optional<ExitStatus>& status,
                          std::string_view said) {
  using Verdict = HealthOutcome::Verdict;
  const std::string name = "the health check " + Shown(plan.command);
  const std::string line = LastLine(said);
  const std::string words = line.empty() ? " and said nothing" : ": " + line;
  if (!status) {
    return {Verdict::kUnfit, name + " did not end within " + DurationText(plan.limit) +
                                 " (--health-limit)" + words};
  }
  if (status->ok()) return {};
  const bool is_missing = *status == ExitStatus::Exited(kNoSuchCommand) ||
                          *status == ExitStatus::Exited(kNotExecutable);
  if (is_missing) return {Verdict::kCannotRun, name + " cannot be run" + words};
  const bool by_itself = status->kind == ExitStatus::Kind::kExited;
  return {Verdict::kUnfit, name + (by_itself ? " " : " was ") + status->Text() + words};
}

std::shared_ptr<HealthCheck> HealthCheck::Start(boost::asio::io_context& loop, HealthPlan plan,
                                                OnEnd on_end) {
  std::shared_ptr<HealthCheck> check(
      new HealthCheck(loop, std::move(plan), std::move(on_end)));
  const Status started = check->Spawn();
  if (started.ok()) {
    check->AwaitEnd();
    check->AwaitLimit();
    check->Read();
    return check;
  }
  const HealthOutcome outcome{HealthOutcome::Verdict::kCannotRun,
                              "the health check " + Shown(check->plan_.command) +
                                  " cannot be run: " + started.error().message};
  boost::asio::post(loop, [check, outcome] { check->End(outcome); });
  return check;
}

HealthCheck::HealthCheck(boost::asio::io_context& loop, HealthPlan plan, OnEnd on_end)
    : plan_(std::move(plan)), on_end_(std::move(on_end)), ended_(loop), output_(loop),
      limit_(loop) {}

Status HealthCheck::Spawn() {
  KEEL_TRY_ASSIGN(PipeEnds pipe, MakePipe());
  ChildSpec spec;
  spec.argv = {"/bin/sh", "-c", plan_.command};
  spec.environment = plan_.environment;
  spec.out = Stream::Borrowed(pipe.write);
  spec.err = Stream::Borrowed(pipe.write);
  KEEL_TRY_ASSIGN(Child child, keel::Spawn(spec));
  child_.emplace(std::move(child));
  child_->LeaveGroup();   // some of it may be stuck in the kernel
  // Opened with the loop that they were made for.
  auto& loop = static_cast<boost::asio::io_context&>(ended_.get_executor().context());
  KEEL_TRY_ASSIGN(ended_, Watched(loop, child_->pidfd()));
  KEEL_TRY_ASSIGN(output_, Watched(loop, pipe.read));
  error_code failure;
  output_.non_blocking(true, failure);
  if (failure) return Error{Code::kForeign, failure.message()};
  return Ok();
}

void HealthCheck::AwaitEnd() {
  ended_.async_wait(stream_descriptor::wait_read,
                    [self = shared_from_this()](const error_code& failure) {
    if (failure) return;
    const auto status = self->child_->TryWait();
    if (status.ok() && !*status) return self->AwaitEnd();
    if (!self->on_end_) return self->child_.reset();   // it was ended at its limit, or is forgotten
    self->ReadRest();
    if (status.ok()) return self->End(JudgeHealth(self->plan_, *status, self->said_));
    self->End({HealthOutcome::Verdict::kCannotRun, "the health check " +
                                                       Shown(self->plan_.command) + ": " +
                                                       status.error().message});
  });
}

void HealthCheck::AwaitLimit() {
  limit_.expires_after(plan_.limit);
  limit_.async_wait([self = shared_from_this()](const error_code& failure) {
    if (failure) return;
    self->ReadRest();
    self->End(JudgeHealth(self->plan_, std::nullopt, self->said_));
  });
}

// Only looks for bytes are under way between two handlers: a read would take some that its handler
// has yet to see while the command's end is judged.
void HealthCheck::Read() {
  output_.async_wait(stream_descriptor::wait_read,
                     [self = shared_from_this()](const error_code& failure) {
    if (failure) return;
    error_code ended;
    const size_t size = self->output_.read_some(boost::asio::buffer(self->buffer_), ended);
    self->Take({self->buffer_.data(), size});
    const bool is_open = !ended || ended == boost::asio::error::would_block;
    if (is_open) self->Read();   // its end says nothing of the command's
  });
}

// What the command wrote last may not have been read yet. What it has started may write for ever.
void HealthCheck::ReadRest() {
  for (size_t read = 0; read < kRestBytesMax;) {
    error_code failure;
    const size_t size = output_.read_some(boost::asio::buffer(buffer_), failure);
    if (failure || size == 0) return;
    Take({buffer_.data(), size});
    read += size;
  }
}

void HealthCheck::Take(std::string_view bytes) {
  said_ += bytes;
  if (said_.size() > kSaidBytesMax) said_.erase(0, said_.size() - kSaidBytesMax);
}

void HealthCheck::End(const HealthOutcome& outcome) {
  const OnEnd on_end = std::exchange(on_end_, {});
  Forget();
  if (on_end) on_end(outcome);
}

// A process that is stuck in the kernel takes its time to end, for which the loop does not wait:
// AwaitEnd() sees it.
void HealthCheck::Forget() {
  on_end_ = {};
  if (child_) (void)child_->SignalGroup(SIGKILL);
  error_code ignored;
  output_.close(ignored);
  limit_.cancel();
}

HealthOutcome CheckHealth(HealthPlan plan, const std::vector<int>& signals) {
  using Verdict = HealthOutcome::Verdict;
  try {
    boost::asio::io_context loop;
    boost::asio::signal_set stops(loop);
    error_code failure;
    for (const int signal : signals) stops.add(signal, failure);
    if (failure) return {Verdict::kCannotRun, "listening for signals: " + failure.message()};
    const SignalsLetIn let_in(signals);   // ends before `stops`, which makes them deadly again
    HealthOutcome result;
    const auto check = HealthCheck::Start(loop, std::move(plan), [&](const HealthOutcome& outcome) {
      result = outcome;
      loop.stop();
    });
    stops.async_wait([&](const error_code& cut_short, int signal) {
      if (cut_short) return;
      result = {Verdict::kStopped, SignalName(signal) + " came before the health check had ended"};
      loop.stop();
    });
    loop.run();
    loop.restart();
    loop.poll();   // a signal that came as the check ended
    check->Forget();
    return result;
  } catch (const boost::system::system_error& failed) {
    return {Verdict::kCannotRun, std::string("running the health check: ") + failed.what()};
  }
}

}  // namespace keel
