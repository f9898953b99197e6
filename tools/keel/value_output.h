// ValueOutput: a stream of bytes to stdout, to a device or a pipe, or to a file that is there whole
// or not at all.
// Promises   a file gets its name at Finish(), and replaces an older one then; without Finish()
//            nothing is left of it. What is no file is written to, and never replaced.
// Does not   hold more than 64 KiB between two appendings.
// Threads    one at a time. Errors: those of Files; kPeerLost: nobody reads stdout any more.
#pragma once

#include <memory>
#include <string>

#include "base/output_file.h"
#include "tools/keel/command.h"

namespace keel {

class ValueOutput {
 public:
  // An empty path: stdout.
  static Result<std::unique_ptr<ValueOutput>> Open(const World& world, const std::string& path);
  ValueOutput(const ValueOutput&) = delete;
  ValueOutput& operator=(const ValueOutput&) = delete;

  // What is to be written next is appended here; then Flush() is called.
  std::string* buffer() { return &buffer_; }
  // Writes when there is enough of it.
  Status Flush();
  Status Finish();
  uint64_t bytes() const { return bytes_ + buffer_.size(); }

 private:
  explicit ValueOutput(const World& world) : world_(world) {}
  Status Write();

  const World& world_;
  std::unique_ptr<OutputFile> file_;  // where both are null: stdout
  std::unique_ptr<File> stream_;
  std::string buffer_;
  uint64_t bytes_ = 0;  // written
};

}  // namespace keel
