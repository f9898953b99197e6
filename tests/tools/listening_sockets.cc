// /proc/<pid>/fd names the sockets, /proc/<pid>/net/tcp says what each is about.
#include "tests/tools/listening_sockets.h"

#include <dirent.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

namespace keel {
namespace {

constexpr const char* kListening = "0A";

std::map<uint64_t, uint16_t> ListeningIn(const std::string& proc_folder) {
  std::map<uint64_t, uint16_t> sockets;
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    std::ifstream lines(proc_folder + table);
    std::string line;
    std::getline(lines, line);   // the heading
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      std::array<std::string, 10> word;
      for (std::string& one : word) words >> one;
      const size_t colon = word[1].find(':');
      if (word[3] != kListening || colon == std::string::npos) continue;
      sockets[std::stoull(word[9])] =
          static_cast<uint16_t>(std::stoul(word[1].substr(colon + 1), nullptr, 16));
    }
  }
  return sockets;
}

std::set<uint64_t> SocketsOf(pid_t pid) {
  std::set<uint64_t> sockets;
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(folder.c_str()), closedir);
  if (open == nullptr) return sockets;
  while (const dirent* const entry = readdir(open.get())) {
    std::array<char, 64> target{};
    const std::string link = folder + "/" + entry->d_name;
    if (readlink(link.c_str(), target.data(), target.size() - 1) < 0) continue;
    const std::string text = target.data();
    if (text.starts_with("socket:[")) sockets.insert(std::stoull(text.substr(8)));
  }
  return sockets;
}

}  // namespace

std::map<uint64_t, uint16_t> ListeningSockets(pid_t pid) {
  std::map<uint64_t, uint16_t> own;
  const std::set<uint64_t> sockets = SocketsOf(pid);
  for (const auto& [socket, port] : ListeningIn("/proc/" + std::to_string(pid))) {
    if (sockets.contains(socket)) own[socket] = port;
  }
  return own;
}

std::set<uint64_t> AllListeningSockets() {
  std::set<uint64_t> all;
  for (const auto& [socket, port] : ListeningIn("/proc/self")) all.insert(socket);
  return all;
}

}  // namespace keel
