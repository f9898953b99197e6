// MappedFile: a whole file as bytes in memory, which the system reads as they are touched.
// Promises   bytes() is the file as it was long when it was opened; several processes that map one
//            file share its memory.
// Does not   notice changes: who cuts the file short under us makes a touch of what is gone a
//            SIGBUS, and so does a disk that fails. Files that are mapped are replaced, not edited.
// Threads    bytes() from any.
// Errors     those of base/files.h; kInvalid: it is no regular file.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace keel {

class MappedFile {
 public:
  static Result<std::unique_ptr<MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes)
      : path_(std::move(path)), bytes_(bytes) {}

  const std::string path_;
  const std::span<const std::byte> bytes_;
};

}  // namespace keel
