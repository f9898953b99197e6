// OutputFile: a file that somebody named to be written, there whole or not at all.
// Promises   the file has its name only at Commit(), when its content is durable; before, there is
//            PATH.<id>.tmp, which goes with the writer. Where PATH is a symbolic link, the file
//            that it leads to is written, and the link stays. While it is written, the temporary
//            file is locked where the file system can do that: one that nobody holds is a leftover.
// Does not   write to devices, pipes and open files of processes (kInvalid): they cannot be there
//            whole or not at all. Guard PATH against another program that makes it between the last
//            look and the renaming.
// Threads    one at a time.
// Errors     kExists: PATH is there and may not be replaced; those of Files.
#pragma once

#include <memory>
#include <string>

#include "base/files.h"
#include "base/result.h"

namespace keel {

class OutputFile {
 public:
  struct Target {
    std::string path;
    std::string id;        // no other writer's: NewOutputId()
    bool replace = false;  // false: kExists where the path is there already
  };

  static Result<std::unique_ptr<OutputFile>> Open(Files& files, Target target);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  File& file() { return *file_; }
  // Once. After an error from the last sync the file may or may not be there after a power loss.
  Status Commit();

 private:
  OutputFile(Files& files, Target target, std::string path);
  Status CheckTarget() const;
  Status Make();

  Files& files_;
  const Target target_;
  const std::string path_;       // where the links of the target's path lead
  const std::string temporary_;
  std::unique_ptr<FileLock> lock_;  // null where the file system knows no locks
  std::unique_ptr<File> file_;      // null once it has its name, or where it was never made
};

// 16 digits that no other writer has.
std::string NewOutputId();

// Removes what writers of `path` left that were killed; in a bucket, uploads to it that nobody goes
// on with (base/upload_age.h). What cannot be removed stays: it is in the way of nothing but the
// disk's room.
void RemoveOutputLeftovers(Files& files, const std::string& path);

}  // namespace keel
