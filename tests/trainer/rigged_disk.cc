// A rigged disk: linked into a test's program, it stands in for some of libc's calls, so that a
// test decides what the disk of a real, whole job does, and when.
// KEEL_RIGGED_DISK names a file of rules, read before each call, which may come and go. A line is
//   RANK CALL PATTERN NTH WHAT
//   RANK     LOCAL_RANK of the process as it was started; *: any
//   CALL     write, sync (also of a directory), reserve, rename or remove
//   PATTERN  of the path as the shell's, where * takes slashes too; of a rename: its new name
//   NTH      strikes at that one of the process's calls that match, and at all behind it
//   WHAT     a number: fails with that errno; kill: SIGKILL, and the rules are gone before;
//            hold:FIFO: waits until somebody opens that fifo to write into it
// Promises   a call that is struck tells it first, in one line: "rigged CALL PATH pid N"; and has
//            done nothing. Without the variable or the file, every call is the system's.
// Does not   see what LibTorch, or anything else, does by other calls.
// Threads    any.
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/text.h"

// Under other names in C++: the system's headers declare them in ways of their own.
extern "C" {
ssize_t RiggedWrite(int fd, const void* from, size_t bytes, off_t offset) __asm__("pwrite");
int RiggedSync(int fd) __asm__("fsync");
int RiggedReserve(int fd, int mode, off_t offset, off_t bytes) __asm__("fallocate");
int RiggedRename(const char* from, const char* to) __asm__("rename");
int RiggedRemove(const char* path) __asm__("unlink");
}

namespace {

constexpr const char* kVariable = "KEEL_RIGGED_DISK";

struct Rule {
  std::string line;
  std::string rank, call, pattern, what;
  int64_t nth = 1;
};

// By calls that are not ours: it must not see itself.
std::string TextOf(const char* path) {
  std::string text;
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char piece[1024];
  for (ssize_t got = 0; (got = ::read(fd, piece, sizeof piece)) > 0;) {
    text.append(piece, static_cast<size_t>(got));
  }
  ::close(fd);
  return text;
}

std::optional<Rule> ParseRule(const std::string& line) {
  const std::vector<std::string> words = keel::SplitList(line, ' ');
  if (words.size() != 5) return std::nullopt;
  return Rule{line, words[0], words[1], words[2], words[4], std::atoll(words[3].c_str())};
}

std::string PathOf(int fd) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t bytes = ::readlink(link.c_str(), path, sizeof path);
  return bytes > 0 ? std::string(path, static_cast<size_t>(bytes)) : "";
}

class Rigged {
 public:
  // 0: the call may go on; else the errno it fails with.
  int Before(const char* call, const std::string& path) {
    const std::optional<Rule> rule = RuleFor(call, path);
    if (!rule) return 0;
    const std::string told = std::string("rigged ") + call + " " + path + " pid " +
                             std::to_string(::getpid()) + "\n";
    if (rule->what == "kill") (void)::syscall(SYS_unlink, rules_);
    (void)!::write(STDOUT_FILENO, told.data(), told.size());
    if (rule->what == "kill") ::kill(::getpid(), SIGKILL);
    if (!rule->what.starts_with("hold:")) return std::atoi(rule->what.c_str());
    const std::string fifo = rule->what.substr(5);
    int end = -1;
    do {
      end = ::open(fifo.c_str(), O_RDONLY | O_CLOEXEC);
    } while (end < 0 && errno == EINTR);
    if (end >= 0) ::close(end);
    return 0;
  }

 private:
  std::optional<Rule> RuleFor(const char* call, const std::string& path) {
    if (rules_ == nullptr) return std::nullopt;
    const std::lock_guard lock(mutex_);
    for (const std::string& line : keel::SplitList(TextOf(rules_), '\n')) {
      const std::optional<Rule> rule = ParseRule(line);
      if (!rule || rule->call != call || (rule->rank != "*" && rule->rank != rank_)) continue;
      if (::fnmatch(rule->pattern.c_str(), path.c_str(), 0) != 0) continue;
      if (++met_[line] >= rule->nth) return rule;
    }
    return std::nullopt;
  }

  const char* const rules_ = ::getenv(kVariable);
  const std::string rank_ = ::getenv("LOCAL_RANK") == nullptr ? "0" : ::getenv("LOCAL_RANK");
  std::mutex mutex_;
  std::map<std::string, int64_t> met_;   // guarded by mutex_: calls, by the line of their rule
};

// True: the call fails, and errno says how.
bool Fails(const char* call, const std::string& path) {
  static Rigged* const rigged = new Rigged;   // for ever: threads may outlive main()
  const int error = rigged->Before(call, path);
  if (error != 0) errno = error;
  return error != 0;
}

bool Fails(const char* call, int fd) {
  static const bool any = ::getenv(kVariable) != nullptr;
  return any && Fails(call, PathOf(fd));
}

}  // namespace

ssize_t RiggedWrite(int fd, const void* from, size_t bytes, off_t offset) {
  if (Fails("write", fd)) return -1;
  return ::syscall(SYS_pwrite64, fd, from, bytes, offset);
}

int RiggedSync(int fd) {
  if (Fails("sync", fd)) return -1;
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

int RiggedReserve(int fd, int mode, off_t offset, off_t bytes) {
  if (Fails("reserve", fd)) return -1;
  return static_cast<int>(::syscall(SYS_fallocate, fd, mode, offset, bytes));
}

int RiggedRename(const char* from, const char* to) {
  if (Fails("rename", to)) return -1;
  return static_cast<int>(::syscall(SYS_rename, from, to));
}

int RiggedRemove(const char* path) {
  if (Fails("remove", path)) return -1;
  return static_cast<int>(::syscall(SYS_unlink, path));
}
