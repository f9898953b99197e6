// Where log lines go: a file descriptor, written so that nothing can go wrong beyond a lost line.
// Promises   one write() a line; SIGPIPE and SIGXFSZ from it never reach the process; a line cut
//            short is ended before the next one begins.
// Does not   lock: one call at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace keel {

class LogDescriptor {
 public:
  // Lost lines are added to `lost`.
  LogDescriptor(int descriptor, std::atomic<uint64_t>& lost)
      : descriptor_(descriptor), lost_(lost) {}
  LogDescriptor(const LogDescriptor&) = delete;
  LogDescriptor& operator=(const LogDescriptor&) = delete;

  void Write(std::string_view line);

 private:
  const int descriptor_;
  std::atomic<uint64_t>& lost_;
  bool torn_ = false;
};

}  // namespace keel
