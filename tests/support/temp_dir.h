// TempDir: a folder of the test's own.
// Promises   unique, also among processes; removed with all it holds at the end, unless the test
//            has failed or KEEL_KEEP_TEMP=1 is in the environment: then it stays and its path is
//            printed.
// Does not   go away when the test process is killed.
// Threads    one.
#pragma once

#include <string>

namespace keel {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace keel
