// The settings, each a read, a decision and a write.
#include "base/process_setup.h"

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

namespace keel {
namespace {

constexpr rlim_t kEnoughFiles = 65536;

// With which somebody may have said how malloc shall behave.
constexpr const char* kOfMalloc[] = {"MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_",
                                     "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_",
                                     "GLIBC_TUNABLES"};

}  // namespace

void IgnoreSigpipe() {
  struct sigaction current {};
  const int read = sigaction(SIGPIPE, nullptr, &current);
  KEEL_CHECK(read == 0, "sigaction: " << std::strerror(errno));
  const bool has_handler = (current.sa_flags & SA_SIGINFO) != 0;
  if (has_handler || current.sa_handler != SIG_DFL) return;
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  const int written = sigaction(SIGPIPE, &ignore, nullptr);
  KEEL_CHECK(written == 0, "sigaction: " << std::strerror(errno));
}

Status OpenClosedStreams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    // The lowest free number is given: those below it are open by now.
    if (open("/dev/null", O_RDWR) >= 0) continue;
    return Error{Code::kForeign, "stream " + std::to_string(stream) +
                                     " is closed, and opening /dev/null in its place failed: " +
                                     std::strerror(errno)};
  }
  return Ok();
}

Result<uint64_t> RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return Error{Code::kForeign, std::string("reading the limit of open files: ") +
                                     std::strerror(errno)};
  }
  const rlim_t wanted = std::min(limit.rlim_max, kEnoughFiles);
  if (limit.rlim_cur >= wanted) return uint64_t{limit.rlim_cur};
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = wanted;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return Error{Code::kForeign, "raising the limit of open files from " + std::to_string(before) +
                                     " to " + std::to_string(wanted) + ": " +
                                     std::strerror(errno) + "; try `ulimit -n " +
                                     std::to_string(wanted) + "`"};
  }
  return uint64_t{wanted};
}

void KeepFreedMemory() {
#ifdef M_TRIM_THRESHOLD
  const bool is_set = std::any_of(std::begin(kOfMalloc), std::end(kOfMalloc),
                                  [](const char* name) { return std::getenv(name) != nullptr; });
  if (is_set) return;
  // A piece from this size on is mapped by itself, and unmapped when it is freed; glibc takes no
  // larger number.
  constexpr int kMapFrom = 32 << 20;
  (void)mallopt(M_MMAP_THRESHOLD, kMapFrom);
  (void)mallopt(M_TRIM_THRESHOLD, -1);
#endif
}

Result<uint64_t> CountOpenFiles() {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) {
    return Error{Code::kForeign, std::string("opening /proc/self/fd: ") + std::strerror(errno)};
  }
  uint64_t count = 0;
  while (const dirent* entry = readdir(folder)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(folder);
  return count - 1;   // the folder itself was one
}

int UsableProcessors() {
  // The kernel refuses a set that is smaller than its own.
  constexpr int kMost = 1 << 16;
  cpu_set_t* const usable = CPU_ALLOC(kMost);
  KEEL_CHECK(usable != nullptr, "no memory for a set of processors");
  const size_t bytes = CPU_ALLOC_SIZE(kMost);
  CPU_ZERO_S(bytes, usable);
  const bool known = sched_getaffinity(0, bytes, usable) == 0;
  const int count = known ? CPU_COUNT_S(bytes, usable) : 1;
  CPU_FREE(usable);
  return std::max(count, 1);
}

void SetOwnVariableUnlessSet(const char* name, const char* value) {
  const int set = setenv(name, value, /*overwrite=*/0);
  KEEL_CHECK(set == 0, "setenv " << name << ": " << std::strerror(errno));
}

}  // namespace keel
