// TokenFile: a text as numbers in a file, mapped into memory. All numbers are little-endian.
//
//   offset  bytes  what
//   0       8      magic "KEELTOK\0"
//   8       4      version: 1
//   12      4      bytes of one token: 1, 2 or 4 (unsigned)
//   16      8      count of tokens, T
//   24      8      vocabulary: every token is below it
//   32      8      A: how many bytes of alphabet follow: 0, or the vocabulary (at most 256)
//   40      16     XXH3-128 of the tokens' bytes
//   56      16     XXH3-128 of bytes 0..55 and of the alphabet
//   72      A      alphabet: token t stands for the byte alphabet[t]; A = 0: it is not said
//   72+A           zeros up to a multiple of 64, then the tokens, which end the file
//
// Promises   a file that opens has its header as written, and all its tokens.
// Does not   read the tokens when it opens: Verify() does, to find changed bits.
// Threads    const methods from any.
// Errors     kCorrupt: no token file, or not as it was written; kInvalid: made by a newer version;
//            those of base/mapped_file.h. All name the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/files.h"
#include "base/mapped_file.h"
#include "base/result.h"
#include "trainer/data_file.h"

namespace keel {

struct TokenHeader {
  uint32_t token_bytes = 1;
  uint64_t count = 0;
  uint64_t vocabulary = 0;
  std::string alphabet = {};
  Digest content = {};
  bool operator==(const TokenHeader&) const = default;

  uint64_t HeaderBytes() const;
  uint64_t FileBytes() const;
};

std::string EncodeTokenHeader(const TokenHeader& header);
// `file`: all of the file, or its beginning; `file_bytes` says how long the file is.
Result<TokenHeader> ParseTokenHeader(std::span<const std::byte> file, uint64_t file_bytes);

class TokenFile {
 public:
  static Result<std::unique_ptr<TokenFile>> Open(const std::string& path);

  const TokenHeader& header() const { return header_; }
  uint64_t size() const { return header_.count; }
  // Tokens begin .. begin+into.size(), widened. kInvalid: beyond the end.
  Status Read(uint64_t begin, std::span<int64_t> into) const;
  Status Verify() const;

 private:
  TokenFile(std::unique_ptr<MappedFile> file, TokenHeader header)
      : file_(std::move(file)), header_(std::move(header)) {}
  std::span<const std::byte> Content() const;

  const std::unique_ptr<MappedFile> file_;
  const TokenHeader header_;
};

class TokenFileWriter {
 public:
  struct Spec {
    uint32_t token_bytes = 1;
    uint64_t vocabulary = 0;      // 0: the largest token plus one
    std::string alphabet = {};
  };
  static Result<std::unique_ptr<TokenFileWriter>> Open(Files& files, const std::string& path,
                                                       const Spec& spec);
  // kInvalid: a token that does not fit; the message gives its place.
  Status Append(std::span<const uint32_t> tokens);
  Result<TokenHeader> Finish();

 private:
  TokenFileWriter(std::unique_ptr<DataFileWriter> writer, TokenHeader header)
      : writer_(std::move(writer)), header_(std::move(header)) {}

  const std::unique_ptr<DataFileWriter> writer_;
  TokenHeader header_;
  uint64_t above_ = 0;    // the largest token plus one
  std::vector<std::byte> packed_;
};

}  // namespace keel
