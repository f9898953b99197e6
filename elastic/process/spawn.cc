// Everything is prepared before vfork(); the child only rearranges numbers and calls execve().
#include "elastic/process/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>

#include "elastic/process/politeness.h"
#include "elastic/process/program_path.h"

namespace keel {
namespace {

// Where the child failed; sent through the report pipe.
enum class Stage : int { kTie, kFolder, kDescriptors, kExec };
struct Failure {
  Stage stage;
  int error;
};

struct Move {
  int from;
  int to;
  int lifted = -1;   // a copy out of the way of all targets
};

// Everything that the child touches after vfork().
struct Launch {
  std::string program;
  std::string working_dir;
  std::vector<std::string> environment;
  std::vector<char*> argv;
  std::vector<char*> envp;
  std::vector<Fd> opened;
  std::vector<Move> moves;   // sorted by target
  int first_free = 3;        // above all targets
  pid_t parent = 0;
  int report = -1;
  bool polite = false;
};

// ---- In the child: async-signal-safe calls only, no allocation. ----

[[noreturn]] void Fail(int report, Stage stage) {
  const Failure failure{stage, errno};
  // If the write fails, exit code 127 is left: the shell's code for "could not start".
  (void)!write(report, &failure, sizeof failure);
  _exit(127);
}

void ResetSignals() {
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  // SIGKILL, SIGSTOP and the two that the C library uses cannot be set, and need not be.
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &by_default, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool CloseOnExec(unsigned first, unsigned last) {
  return first > last ||
         syscall(SYS_close_range, first, last, CLOSE_RANGE_CLOEXEC) == 0;
}

bool ArrangeDescriptors(Launch& launch) {
  for (Move& move : launch.moves) {
    move.lifted = fcntl(move.from, F_DUPFD_CLOEXEC, launch.first_free);
    if (move.lifted < 0) return false;
  }
  unsigned next = 3;   // from here on, all but the targets are closed on exec
  for (const Move& move : launch.moves) {
    if (dup2(move.lifted, move.to) < 0) return false;
    if (move.to < 3) continue;
    const unsigned target = static_cast<unsigned>(move.to);
    if (!CloseOnExec(next, target - 1)) return false;
    next = target + 1;
  }
  return CloseOnExec(next, UINT_MAX);
}

[[noreturn]] void RunChild(Launch& launch) {
  setsid();
  const int report = fcntl(launch.report, F_DUPFD_CLOEXEC, launch.first_free);
  if (report < 0) Fail(launch.report, Stage::kDescriptors);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) Fail(report, Stage::kTie);
  // A parent that died before prctl() sends no signal any more.
  if (getppid() != launch.parent) _exit(127);
  ResetSignals();
  if (launch.polite) BecomePolite();
  if (!ArrangeDescriptors(launch)) Fail(report, Stage::kDescriptors);
  if (!launch.working_dir.empty() && chdir(launch.working_dir.c_str()) != 0) {
    Fail(report, Stage::kFolder);
  }
  execve(launch.program.c_str(), launch.argv.data(), launch.envp.data());
  Fail(report, Stage::kExec);
}

// ---- In the parent. ----

Status CheckSpec(const ChildSpec& spec) {
  if (spec.argv.empty()) return Error{Code::kInvalid, "no program was named (argv is empty)"};
  std::vector<int> targets;
  for (const InheritedFd& fd : spec.fds) {
    if (fd.theirs < 3 || fcntl(fd.ours, F_GETFD) < 0) {
      return Error{Code::kInvalid, "descriptor " + std::to_string(fd.ours) + " cannot become " +
                                       std::to_string(fd.theirs) + " in the child: the first must "
                                       "be open, the second 3 or more"};
    }
    targets.push_back(fd.theirs);
  }
  std::sort(targets.begin(), targets.end());
  if (std::adjacent_find(targets.begin(), targets.end()) != targets.end()) {
    return Error{Code::kInvalid, "two descriptors are to have one number in the child"};
  }
  return Ok();
}

Status AddStream(const Stream& stream, int target, Launch& launch) {
  if (stream.kind == Stream::Kind::kInherit) return Ok();
  KEEL_TRY_ASSIGN(Fd opened, OpenStream(stream, target));
  launch.moves.push_back({opened.number(), target});
  launch.opened.push_back(std::move(opened));
  return Ok();
}

// Pointers into `words`, ended by a null, as execve needs them.
std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

Result<Launch> Prepare(const ChildSpec& spec) {
  KEEL_TRY(CheckSpec(spec));
  Launch launch;
  KEEL_TRY_ASSIGN(launch.program,
                  FindProgram(spec.argv[0], SearchPath(spec.environment), spec.working_dir));
  KEEL_TRY(AddStream(spec.in, STDIN_FILENO, launch));
  KEEL_TRY(AddStream(spec.out, STDOUT_FILENO, launch));
  KEEL_TRY(AddStream(spec.err, STDERR_FILENO, launch));
  for (const InheritedFd& fd : spec.fds) launch.moves.push_back({fd.ours, fd.theirs});
  std::sort(launch.moves.begin(), launch.moves.end(),
            [](const Move& a, const Move& b) { return a.to < b.to; });
  if (!launch.moves.empty()) launch.first_free = std::max(3, launch.moves.back().to + 1);
  for (const auto& [name, value] : spec.environment) {
    launch.environment.push_back(name + "=" + value);
  }
  launch.argv = Pointers(spec.argv);
  launch.envp = Pointers(launch.environment);
  launch.working_dir = spec.working_dir;
  launch.polite = spec.polite;
  launch.parent = getpid();
  return launch;
}

// vfork(), since a supervisor has a hundred megabytes mapped, and fork() would hold up its loop for
// 20 ms while others wait to go on. All signals are blocked, so that none of our handlers runs in
// the child, which shares our memory until it calls execve().
pid_t ForkChild(Launch& launch) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = vfork();
  if (pid == 0) RunChild(launch);
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
}

Error Explain(const Failure& failure, const Launch& launch) {
  switch (failure.stage) {
    case Stage::kExec:
      return ExplainExecFailure(launch.program, launch.working_dir, failure.error);
    case Stage::kFolder:
      return {failure.error == ENOENT ? Code::kNotFound : Code::kInvalid,
              "entering its working directory '" + launch.working_dir +
                  "': " + std::strerror(failure.error)};
    case Stage::kDescriptors:
      return {Code::kForeign, std::string("arranging its descriptors: ") +
                                  std::strerror(failure.error) + " (Linux 5.11 or newer is needed; "
                                  "the limit of open files may be too low)"};
    case Stage::kTie:
      return {Code::kForeign, std::string("tying it to our life: ") +
                                  std::strerror(failure.error)};
  }
  return {Code::kForeign, "an unknown failure"};
}

// Waits for the exec, which closes the report pipe. Returns what the child reported, if anything.
std::optional<Failure> ReadReport(const Fd& report) {
  Failure failure{};
  ssize_t count = -1;
  do {
    count = read(report.number(), &failure, sizeof failure);
  } while (count < 0 && errno == EINTR);
  if (count != static_cast<ssize_t>(sizeof failure)) return std::nullopt;
  return failure;
}

Result<Child> Start(Launch& launch) {
  KEEL_TRY_ASSIGN(PipeEnds report, MakePipe());
  launch.report = report.write.number();
  const pid_t pid = ForkChild(launch);
  if (pid < 0) {
    return Error{Code::kForeign, std::string("vfork: ") + std::strerror(errno)};
  }
  report.write.Close();
  Result<Child> child = Child::Adopt(pid);
  if (!child.ok()) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return child.error();
  }
  if (const auto failure = ReadReport(report.read)) return Explain(*failure, launch);
  return child;
}

}  // namespace

Result<Fd> OpenStream(const Stream& stream, int target) {
  const bool is_ours = stream.kind == Stream::Kind::kInherit || stream.kind == Stream::Kind::kFd;
  if (is_ours) {
    const int ours = stream.kind == Stream::Kind::kFd ? stream.fd : target;
    Fd copy(fcntl(ours, F_DUPFD_CLOEXEC, 3));
    if (copy.valid()) return copy;
    const bool is_closed = errno == EBADF;
    return Error{is_closed ? Code::kInvalid : Code::kForeign,
                 "standard stream " + std::to_string(target) + " is to be descriptor " +
                     std::to_string(ours) + (is_closed ? ", which is not open"
                                                       : std::string(": ") + std::strerror(errno))};
  }
  const int flags = target == STDIN_FILENO ? O_RDONLY : O_WRONLY | O_CREAT | O_APPEND;
  Fd file(open(stream.path.c_str(), flags | O_CLOEXEC, 0644));
  if (file.valid()) return file;
  const Code code = errno == ENOENT ? Code::kNotFound : Code::kIo;
  return Error{code, "opening '" + stream.path + "' as standard stream " +
                         std::to_string(target) + ": " + std::strerror(errno)};
}

Result<Child> Spawn(const ChildSpec& spec) {
  const auto starting = [&](const Error& error) {
    return error.Doing("starting " + (spec.argv.empty() ? "a program" : "'" + spec.argv[0] + "'"));
  };
  Result<Launch> launch = Prepare(spec);
  if (!launch.ok()) return starting(launch.error());
  Result<Child> child = Start(*launch);
  if (!child.ok()) return starting(child.error());
  return child;
}

}  // namespace keel
