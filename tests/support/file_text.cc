// Plain system calls; a failure is the test's own bug.
#include "tests/support/file_text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/check.h"
#include "base/fd.h"

namespace keel {

void WriteFile(const std::string& path, const std::string& text, int mode) {
  const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  KEEL_CHECK(file.valid(), path << ": " << std::strerror(errno));
  const ssize_t written = write(file.number(), text.data(), text.size());
  KEEL_CHECK(written == static_cast<ssize_t>(text.size()), path << ": " << std::strerror(errno));
  const int changed = fchmod(file.number(), static_cast<mode_t>(mode));
  KEEL_CHECK(changed == 0, path << ": " << std::strerror(errno));
}

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace keel
