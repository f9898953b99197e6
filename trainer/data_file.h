// DataFileWriter: makes a file of training data: content in pieces, then its header.
// Promises   `path` is there only when Finish() succeeded, whole and durable; until then the bytes
//            lie in `path`.tmp, which a writer that is destroyed early removes.
// Does not   know what the header says (trainer/token_file.h, trainer/record_file.h); guard against
//            two writers of one path.
// Threads    one.
// Errors     those of base/files.h; kExists: `path` is there already.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/files.h"
#include "base/result.h"

namespace keel {

// Content begins at a multiple of this.
inline constexpr uint64_t kDataAlignment = 64;
constexpr uint64_t DataOffset(uint64_t header_bytes) {
  return (header_bytes + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
}

class DataFileWriter {
 public:
  // `header_bytes`: how many Finish() will be given.
  static Result<std::unique_ptr<DataFileWriter>> Open(Files& files, const std::string& path,
                                                      uint64_t header_bytes);
  ~DataFileWriter();
  DataFileWriter(const DataFileWriter&) = delete;
  DataFileWriter& operator=(const DataFileWriter&) = delete;

  Status Append(std::span<const std::byte> content);
  uint64_t content_bytes() const { return digester_.bytes(); }
  Digest content_digest() const { return digester_.Current(); }
  Status Finish(std::span<const std::byte> header);

 private:
  DataFileWriter(Files& files, std::string path, uint64_t header_bytes);
  Status Flush();

  Files& files_;
  const std::string path_;
  const std::string temporary_;
  const uint64_t header_bytes_;
  std::unique_ptr<File> file_;
  std::vector<std::byte> buffer_;
  uint64_t written_ = 0;    // bytes of content in the file
  Digester digester_;
  bool finished_ = false;
};

}  // namespace keel
