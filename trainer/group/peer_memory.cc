// process_vm_readv(), and the checks that must precede its use.
#include "trainer/group/peer_memory.h"

#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "base/digest.h"
#include "base/random.h"

namespace keel {
namespace {

// Other processes are told its address.
const uint64_t& Secret() {
  static const uint64_t secret = EntropySeed();
  return secret;
}

// Identifies the running kernel and our namespace of process ids; 0 if either is unknown.
uint64_t HostOf() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  char numbering[64] = {};
  const ssize_t bytes = readlink("/proc/self/ns/pid", numbering, sizeof(numbering) - 1);
  if (boot.empty() || bytes <= 0) return 0;
  const std::string both = boot + " " + std::string(numbering, static_cast<size_t>(bytes));
  const Digest digest = DigestOf(std::as_bytes(std::span(both)));
  uint64_t host = 0;
  std::memcpy(&host, digest.bytes.data(), sizeof(host));
  return host;
}

}  // namespace

MemoryCard OwnMemoryCard(uint64_t bytes_min) {
  static const uint64_t host = HostOf();
  return {host, getpid(), reinterpret_cast<uint64_t>(&Secret()), Secret(), bytes_min};
}

bool ShareHost(const MemoryCard& one, const MemoryCard& other) {
  return one.host != 0 && one.host == other.host;
}

bool CanRead(const MemoryCard& card) {
  uint64_t found = 0;
  const Status read =
      ReadMemory(card.pid, card.address, std::as_writable_bytes(std::span(&found, 1)));
  return read.ok() && found == card.secret;
}

Status ReadMemory(int64_t pid, uint64_t address, std::span<std::byte> into) {
  while (!into.empty()) {
    const iovec here{into.data(), into.size()};
    // An address in another process; only the kernel uses it as a pointer.
    const iovec there{reinterpret_cast<void*>(address), into.size()};
    const ssize_t bytes = process_vm_readv(static_cast<pid_t>(pid), &here, 1, &there, 1, 0);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) {
      const char* why = bytes == 0 ? "nothing came" : std::strerror(errno);
      return Error{Code::kPeerLost, "reading the memory of process " + std::to_string(pid) + ": " +
                                        why};
    }
    into = into.subspan(static_cast<size_t>(bytes));
    address += static_cast<uint64_t>(bytes);
  }
  return Ok();
}

void LetSiblingsRead() {
  // This fails where there is no Yama; then it is not needed.
  (void)prctl(PR_SET_PTRACER, getppid(), 0, 0, 0);
}

}  // namespace keel
