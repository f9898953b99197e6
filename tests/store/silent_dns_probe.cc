// Counts the questions that c10d's store asks a name service which never answers.
// In namespaces of its own it has one name server, itself, which counts and stays silent; then it
// hosts a c10d::TCPStore and connects to it. Prints "queries N". Built twice: on c10d alone, and
// with our getnameinfo() (KEEL_NUMERIC_NAMES).
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#ifdef KEEL_NUMERIC_NAMES
#include "store/numeric_names.h"
#endif

namespace {

constexpr const char* kHost = "10.77.0.1";  // in no hosts file
constexpr int kClients = 3;
constexpr int kForbidden = 77;  // exit code: this machine lets us have no namespaces

void Must(bool ok, const char* what, int exit_code = 1) {
  if (ok) return;
  std::fprintf(stderr, "silent_dns_probe: %s: %s\n", what, std::strerror(errno));
  std::exit(exit_code);
}

void WriteFile(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  Must(fd >= 0, path);
  Must(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()), path);
  close(fd);
}

// A network and a view of /etc of our own; as root, or as anybody where user namespaces are
// allowed.
void EnterNamespaces() {
  const unsigned uid = getuid();
  const unsigned gid = getgid();
  if (uid == 0) {
    Must(unshare(CLONE_NEWNET | CLONE_NEWNS) == 0, "unshare", kForbidden);
  } else {
    Must(unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS) == 0, "unshare with a user namespace",
         kForbidden);
    WriteFile("/proc/self/setgroups", "deny");
    WriteFile("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1");
    WriteFile("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1");
  }
  // In a chroot "/" is no mount point, so nothing can be laid over /etc without others seeing it.
  Must(mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "mount private", kForbidden);
}

void ReplaceEtcFile(const std::string& folder, const char* name, const std::string& text) {
  const std::string ours = folder + "/" + name;
  const std::string theirs = std::string("/etc/") + name;
  WriteFile(ours.c_str(), text);
  Must(mount(ours.c_str(), theirs.c_str(), nullptr, MS_BIND, nullptr) == 0, theirs.c_str());
}

void RaiseLoopbackWithAddress(const char* number) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
  Must(ioctl(fd, SIOCSIFFLAGS, &request) == 0, "raising lo");
  ifreq alias{};
  std::strcpy(alias.ifr_name, "lo:1");
  auto& address = reinterpret_cast<sockaddr_in&>(alias.ifr_addr);
  address.sin_family = AF_INET;
  inet_pton(AF_INET, number, &address.sin_addr);
  Must(ioctl(fd, SIOCSIFADDR, &alias) == 0, "adding an address to lo");
  close(fd);
}

// The name server: hears everything, says nothing.
void ListenSilently(std::atomic<int>& queries) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(53);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Must(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "binding port 53");
  std::thread([fd, &queries] {
    char packet[1500];
    while (recv(fd, packet, sizeof packet, 0) > 0) ++queries;
  }).detach();
}

void HostAndConnect() {
  c10d::TCPStoreOptions options;
  options.isServer = true;
  options.port = 0;
  options.waitWorkers = false;
  const auto server = c10::make_intrusive<c10d::TCPStore>(kHost, options);
  options.isServer = false;
  options.port = server->getPort();
  for (int i = 0; i < kClients; ++i) {
    c10::make_intrusive<c10d::TCPStore>(kHost, options)->add("n", 1);
  }
}

}  // namespace

int main() {
  EnterNamespaces();
  char folder[] = "/tmp/keel-silent-dns-XXXXXX";
  Must(mkdtemp(folder) != nullptr, "making a folder");
  Must(mount("none", folder, "tmpfs", 0, nullptr) == 0, "mounting a tmpfs");  // gone with us
  ReplaceEtcFile(folder, "resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n");
  ReplaceEtcFile(folder, "hosts", "127.0.0.1 localhost\n");
  ReplaceEtcFile(folder, "nsswitch.conf", "hosts: files dns\n");
  RaiseLoopbackWithAddress(kHost);
  static std::atomic<int> queries{0};
  ListenSilently(queries);
#ifdef KEEL_NUMERIC_NAMES
  Must(keel::NumericNamesActive(), "getnameinfo is not ours");
#endif
  HostAndConnect();
  std::printf("queries %d\n", queries.load());
  std::fflush(stdout);
  umount2(folder, MNT_DETACH);
  rmdir(folder);
  _exit(0);
}
