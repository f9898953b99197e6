// Reads both outputs as they come, until the program ends; what it has started may keep them open.
#include "tools/keel/limited_run.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/environment.h"
#include "base/fd.h"
#include "elastic/process/spawn.h"

namespace keel {
namespace {

// Our end of a pipe, read without waiting.
struct HeardPipe {
  Fd end;  // closed when all was read
  std::string* into;

  // Takes what is there. False: that is too much.
  bool Read(size_t bytes_most) {
    std::array<char, 16384> part;
    while (end.valid()) {
      const ssize_t count = ::read(end.number(), part.data(), part.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return true;
      if (count <= 0) {
        end.Close();
        return true;
      }
      into->append(part.data(), static_cast<size_t>(count));
      if (into->size() <= bytes_most) continue;
      into->resize(bytes_most);
      return false;
    }
    return true;
  }
};

Result<PipeEnds> PipeToHear() {
  KEEL_TRY_ASSIGN(PipeEnds ends, MakePipe());
  if (::fcntl(ends.read.number(), F_SETFL, O_NONBLOCK) == 0) return ends;
  return Error{Code::kForeign, std::string("setting up a pipe: ") + std::strerror(errno)};
}

// Until one of them has something to say. False: the deadline has passed.
bool AwaitAny(const HeardPipe& out, const HeardPipe& err, const Fd& end, TimePoint deadline) {
  using std::chrono::milliseconds;
  const Duration left = deadline - RealClock().Monotonic();
  if (left <= Duration(0)) return false;
  const Duration bite = std::min<Duration>(left, std::chrono::minutes(1));
  // A negative number is one that poll() leaves out.
  pollfd waited[] = {{out.end.number(), POLLIN, 0},
                     {err.end.number(), POLLIN, 0},
                     {end.number(), POLLIN, 0}};
  (void)::poll(waited, 3, static_cast<int>(std::chrono::ceil<milliseconds>(bite).count()));
  return true;
}

}  // namespace

Result<LimitedRun> RunWithin(const std::vector<std::string>& argv, TimePoint deadline,
                             size_t bytes_most) {
  KEEL_TRY_ASSIGN(PipeEnds out, PipeToHear());
  KEEL_TRY_ASSIGN(PipeEnds err, PipeToHear());
  ChildSpec spec;
  spec.argv = argv;
  spec.environment = OwnEnvironment();
  spec.out = Stream::Borrowed(out.write);
  spec.err = Stream::Borrowed(err.write);
  KEEL_TRY_ASSIGN(const Child child, Spawn(spec));
  out.write.Close();
  err.write.Close();
  LimitedRun run;
  HeardPipe heard_out{std::move(out.read), &run.out};
  HeardPipe heard_err{std::move(err.read), &run.err};
  for (;;) {
    // Looked at first, so that all it said before its end is read after the look.
    KEEL_TRY_ASSIGN(run.status, child.TryWait());
    if (!heard_out.Read(bytes_most) || !heard_err.Read(bytes_most)) {
      run.said_too_much = true;
      run.status.reset();
      return run;
    }
    if (run.status.has_value()) return run;
    if (!AwaitAny(heard_out, heard_err, child.pidfd(), deadline)) return run;
  }
}

}  // namespace keel
