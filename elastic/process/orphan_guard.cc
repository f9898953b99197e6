// The guard is no child of ours: it must not be found among our descendants.
#include "elastic/process/orphan_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <sstream>
#include <string_view>

#include "base/clock.h"
#include "elastic/process/proc_file.h"
#include "elastic/process/process_table.h"

namespace keel {
namespace {

constexpr const char* kName = "job-guard";
constexpr Duration kKillLimit = std::chrono::seconds(10);
constexpr Duration kAgain = std::chrono::milliseconds(10);

Error Failed(const char* doing) {
  return Error{Code::kForeign, std::string("starting the guard against orphans: ") + doing + ": " +
                                   std::strerror(errno)};
}

// Where the words of our command line and environment lie; proc(5) numbers these fields of
// /proc/self/stat.
struct ShownPlaces {
  uintptr_t arguments = 0, arguments_end = 0;       // fields 48 and 49
  uintptr_t environment = 0, environment_end = 0;   // fields 50 and 51
};

ShownPlaces FindShown() {
  const std::string text = ReadProcFile("/proc/self/stat").value_or("");
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 48; ++field) fields >> skipped;
  ShownPlaces places;
  fields >> places.arguments >> places.arguments_end >> places.environment >>
      places.environment_end;
  return fields ? places : ShownPlaces();
}

// Empty: nobody knows where it is.
std::span<char> MemoryAt(uintptr_t begin, uintptr_t end) {
  if (begin == 0 || end <= begin) return {};
  return {reinterpret_cast<char*>(begin), end - begin};
}

// Takes another name than the launcher's, for ps and pkill: ending all launchers by their name or
// command line must not end their guards. Nor must the guard of another launcher, whose worker this
// one is, and whose mark, of the same variable as ours, is in our environment.
void Rename(const std::string& mark) {
  prctl(PR_SET_NAME, kName);
  const ShownPlaces places = FindShown();
  const std::span<char> words = MemoryAt(places.arguments, places.arguments_end);
  std::fill(words.begin(), words.end(), '\0');
  const size_t name_bytes = std::min(words.size(), std::strlen(kName) + 1);
  if (name_bytes > 0) std::memcpy(words.data(), kName, name_bytes - 1);
  const std::string variable = mark.substr(0, mark.find('=') + 1);
  std::span<char> entries = MemoryAt(places.environment, places.environment_end);
  while (!entries.empty()) {
    const auto end = std::find(entries.begin(), entries.end(), '\0');
    const std::string_view entry(entries.data(), static_cast<size_t>(end - entries.begin()));
    const bool is_mark = entry.starts_with(variable);
    const size_t bytes = std::min(entry.size() + 1, entries.size());
    if (is_mark) std::fill(entries.begin(), end, '\0');
    entries = entries.subspan(bytes);
  }
}

void Detach(int link) {
  setsid();
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  const Fd nowhere(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (int stream = 0; stream < 3; ++stream) dup2(nowhere.number(), stream);
  if (chdir("/") != 0) return;   // then it only keeps the folder in use
  for (int number = 3; number < link; ++number) close(number);
  close_range(static_cast<unsigned>(link) + 1, ~0U, 0);
}

// False if our death closed the link without a word.
bool AwaitWord(int link) {
  for (;;) {
    char byte = 0;
    const ssize_t got = read(link, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    return got == 1;
  }
}

bool HasEntry(std::string_view environment, std::string_view entry) {
  while (!environment.empty()) {
    const size_t end = std::min(environment.find('\0'), environment.size());
    if (environment.substr(0, end) == entry) return true;
    environment.remove_prefix(std::min(end + 1, environment.size()));
  }
  return false;
}

// Returns how many were still there.
size_t KillMarked(const std::string& mark) {
  const Result<std::vector<ProcessInfo>> all = AllProcesses();
  if (!all.ok()) return 0;
  size_t found = 0;
  for (const ProcessInfo& process : *all) {
    if (process.ended || process.kernel || process.pid == getpid()) continue;
    const Fd handle = OpenProcess(process);
    const std::optional<std::string> environment = InitialEnvironment(process.pid);
    if (environment && !HasEntry(*environment, mark)) continue;
    if (environment) (void)SendSignal(handle, SIGKILL);
    ++found;   // a process inside exec() is looked at again
  }
  return found;
}

void KillOrphans(const std::string& mark) {
  const TimePoint deadline = RealClock().Monotonic() + kKillLimit;
  // Nobody must be found twice: the first look may come between a fork and its parent's death.
  for (int nobody = 0; nobody < 2 && RealClock().Monotonic() < deadline;) {
    nobody = KillMarked(mark) == 0 ? nobody + 1 : 0;
    RealClock().SleepFor(kAgain);
  }
}

}  // namespace

Result<std::unique_ptr<OrphanGuard>> OrphanGuard::Start(const std::string& mark) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return Failed("socketpair");
  Fd ours(ends[0]);
  Fd theirs(ends[1]);
  const pid_t child = fork();
  if (child < 0) return Failed("fork");
  if (child == 0) {
    // Before the parent goes on: no worker may start beside a guard with the old name.
    Rename(mark);
    if (fork() != 0) return std::unique_ptr<OrphanGuard>();
    ours.Close();
    Detach(theirs.number());
    if (!AwaitWord(theirs.number())) KillOrphans(mark);
    theirs.Release();   // open until this process ends: whoever waits for that finds us gone
    return std::unique_ptr<OrphanGuard>();
  }
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return std::unique_ptr<OrphanGuard>(new OrphanGuard(std::move(ours)));
}

OrphanGuard::~OrphanGuard() {
  const char word = 'g';
  if (send(link_.number(), &word, 1, MSG_NOSIGNAL) != 1) return;   // the guard is gone already
  shutdown(link_.number(), SHUT_WR);
  char byte = 0;
  while (read(link_.number(), &byte, 1) < 0 && errno == EINTR) {
  }
}

}  // namespace keel
