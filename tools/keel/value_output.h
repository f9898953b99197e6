// ValueOutput: a stream of bytes to stdout, or to a file that is there whole or not at all.
// Promises   a file gets its name at Finish(), and replaces an older one then; without Finish()
//            nothing is left of it.
// Does not   hold more than 64 KiB between two appendings. Write to devices and pipes by name:
//            stdout can be pointed there.
// Threads    one at a time. Errors: those of Files; kPeerLost: nobody reads stdout any more.
#pragma once

#include <memory>
#include <string>

#include "tools/keel/command.h"

namespace keel {

class ValueOutput {
 public:
  // An empty path: stdout.
  static Result<std::unique_ptr<ValueOutput>> Open(const World& world, const std::string& path);
  ~ValueOutput();
  ValueOutput(const ValueOutput&) = delete;
  ValueOutput& operator=(const ValueOutput&) = delete;

  // What is to be written next is appended here; then Flush() is called.
  std::string* buffer() { return &buffer_; }
  // Writes when there is enough of it.
  Status Flush();
  Status Finish();
  uint64_t bytes() const { return bytes_ + buffer_.size(); }

 private:
  ValueOutput(const World& world, std::string path) : world_(world), path_(std::move(path)) {}
  Status Write();
  std::string Temporary() const;

  const World& world_;
  const std::string path_;
  std::unique_ptr<File> file_;  // null: stdout, or finished
  std::string buffer_;
  uint64_t bytes_ = 0;  // written
};

}  // namespace keel
