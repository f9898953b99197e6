// The common part of files of training data: how their headers begin and are protected by digests,
// and DataFileWriter, which makes a file: content in pieces, then its header.
// Promises   `path` exists only when Finish() has succeeded, whole and durable; until then it is
//            an OutputFile that was not committed.
// Does not   know what the header says (trainer/token_file.h, trainer/record_file.h).
// Threads    one.
// Errors     those of base/files.h; kExists: `path` exists already; kCorrupt, kInvalid: what is
//            read is no such file, damaged, or of another version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/files.h"
#include "base/output_file.h"
#include "base/result.h"
#include "ckpt/wire.h"

namespace keel {

// Content begins at a multiple of this.
inline constexpr uint64_t kDataAlignment = 64;
constexpr uint64_t DataOffset(uint64_t header_bytes) {
  return (header_bytes + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
}

// A header is: 8 bytes of magic, the version (u32), fields of the format, at the end of its fixed
// part the digest of all the rest of the header, and then whatever has no fixed length.
struct DataFormat {
  std::string_view magic;   // 8 bytes
  uint32_t version = 1;
  size_t fixed_bytes = 0;
  std::string_view name;    // "token"
  std::string_view maker;   // the command that makes such files
};

Digest HeaderDigest(const DataFormat& format, std::span<const std::byte> header);
void PutBeginning(const DataFormat& format, WireWriter& writer);
// The fixed part of the header after magic and version.
Result<WireReader> ReadBeginning(const DataFormat& format, std::span<const std::byte> file);
Error DamagedData(const std::string& what);
// Whether the content has the digest that the header tells.
Status VerifyContent(std::span<const std::byte> content, const Digest& told,
                     const std::string& what, const std::string& path);

class DataFileWriter {
 public:
  // `header_bytes`: the length of the header that Finish() will be given.
  static Result<std::unique_ptr<DataFileWriter>> Open(Files& files, const std::string& path,
                                                      uint64_t header_bytes);
  DataFileWriter(const DataFileWriter&) = delete;
  DataFileWriter& operator=(const DataFileWriter&) = delete;

  Status Append(std::span<const std::byte> content);
  uint64_t content_bytes() const { return digester_.bytes(); }
  Digest content_digest() const { return digester_.Current(); }
  Status Finish(std::span<const std::byte> header);

 private:
  explicit DataFileWriter(uint64_t header_bytes) : header_bytes_(header_bytes) {}
  Status Flush();

  const uint64_t header_bytes_;
  std::unique_ptr<OutputFile> output_;
  std::vector<std::byte> buffer_;
  uint64_t written_ = 0;    // bytes of content in the file
  Digester digester_;
};

}  // namespace keel
