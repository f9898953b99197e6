// Stands in for send() and process_vm_readv(), and counts the moments that match the rule.
#include "tests/trainer/rigged_stop.h"

#include <fnmatch.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string_view>

// Under other names in C++: the system's headers declare them in ways of their own.
extern "C" {
ssize_t RiggedSend(int fd, const void* from, size_t bytes, int flags) __asm__("send");
ssize_t RiggedRead(pid_t pid, const iovec* local, unsigned long locals, const iovec* remote,
                   unsigned long remotes, unsigned long flags) __asm__("process_vm_readv");
}

namespace keel {
namespace {

const char* RuleFile() {
  static const char* const file = std::getenv("KEEL_RIGGED_STOP");
  return file;
}

struct Rule {
  std::string rank, moment, how;
  int64_t nth = 0;
};

// It may come while the job runs. Whoever removes it is struck.
bool ReadRule(Rule& rule) {
  std::ifstream file(RuleFile());
  return static_cast<bool>(file >> rule.rank >> rule.moment >> rule.nth >> rule.how);
}

std::string OwnRank() {
  const char* const rank = std::getenv("LOCAL_RANK");
  return rank == nullptr ? "0" : rank;
}

}  // namespace

void StandStillIfRigged(const std::string& moment) {
  static std::mutex mutex;
  static int64_t met = 0;
  static const std::string own = OwnRank();
  if (RuleFile() == nullptr || access(RuleFile(), R_OK) != 0) return;
  Rule rule;
  {
    const std::lock_guard lock(mutex);
    if (!ReadRule(rule) || rule.rank != own) return;
    if (fnmatch(rule.moment.c_str(), moment.c_str(), 0) != 0 || ++met < rule.nth) return;
    if (unlink(RuleFile()) != 0) return;
  }
  const std::string told = "rigged " + rule.how + " at " + moment + " pid " +
                           std::to_string(getpid()) + "\n";
  (void)!write(STDOUT_FILENO, told.data(), told.size());
  if (rule.how == "stop") raise(SIGSTOP);
  while (rule.how == "stand") pause();
}

namespace {

// "at voting" of {"type":"at",...,"place":"voting",...}.
void LookAtLine(std::string_view line) {
  constexpr std::string_view kBegin = R"({"type":"at")", kPlace = R"("place":")";
  if (!line.starts_with(kBegin)) return;
  const size_t place = line.find(kPlace);
  if (place == line.npos) return;
  line.remove_prefix(place + kPlace.size());
  StandStillIfRigged("at " + std::string(line.substr(0, line.find('"'))));
}

}  // namespace
}  // namespace keel

ssize_t RiggedSend(int fd, const void* from, size_t bytes, int flags) {
  if (keel::RuleFile() != nullptr) keel::LookAtLine({static_cast<const char*>(from), bytes});
  return syscall(SYS_sendto, fd, from, bytes, flags, nullptr, 0);
}

ssize_t RiggedRead(pid_t pid, const iovec* local, unsigned long locals, const iovec* remote,
                   unsigned long remotes, unsigned long flags) {
  if (keel::RuleFile() != nullptr) keel::StandStillIfRigged("read");
  return syscall(SYS_process_vm_readv, pid, local, locals, remote, remotes, flags);
}
