// Writes and reads the bytes of a token file.
#include "trainer/token_file.h"

#include <algorithm>
#include <cstring>

#include "base/file_helpers.h"
#include "ckpt/wire.h"

namespace keel {
namespace {

constexpr DataFormat kFormat{.magic = {"KEELTOK", 8},
                             .fixed_bytes = 72,
                             .name = "token",
                             .maker = "keel tokens"};
constexpr uint64_t kAlphabetMax = 256;
constexpr uint64_t kMostTokens = uint64_t{1} << 60;

uint64_t TokensOf(uint32_t token_bytes) { return uint64_t{1} << (8 * token_bytes); }

Error NoSense(const std::string& what) { return {Code::kInvalid, what}; }

// Checks what a header says; its digest is checked elsewhere.
Status CheckSense(const TokenHeader& header, uint64_t file_bytes) {
  const uint32_t bytes = header.token_bytes;
  if (bytes != 1 && bytes != 2 && bytes != 4) {
    return NoSense("tokens of " + std::to_string(bytes) + " bytes; there are 1, 2 and 4");
  }
  if (header.vocabulary > TokensOf(bytes)) {
    return NoSense("a vocabulary of " + std::to_string(header.vocabulary) + " in tokens of " +
                   std::to_string(bytes) + " bytes");
  }
  if (!header.alphabet.empty() && header.alphabet.size() != header.vocabulary) {
    return NoSense("an alphabet of " + std::to_string(header.alphabet.size()) +
                   " bytes for a vocabulary of " + std::to_string(header.vocabulary));
  }
  if (header.count > kMostTokens || header.FileBytes() != file_bytes) {
    return NoSense(std::to_string(header.count) + " tokens of " + std::to_string(bytes) +
                   " bytes in a file of " + std::to_string(file_bytes) +
                   "; was it cut short or copied in part?");
  }
  return Ok();
}

template <class Token>
void Widen(std::span<const std::byte> from, std::span<int64_t> into) {
  for (size_t i = 0; i < into.size(); ++i) {
    Token token;
    std::memcpy(&token, from.data() + i * sizeof token, sizeof token);
    into[i] = static_cast<int64_t>(token);
  }
}

}  // namespace

uint64_t TokenHeader::HeaderBytes() const { return kFormat.fixed_bytes + alphabet.size(); }
uint64_t TokenHeader::FileBytes() const {
  return DataOffset(HeaderBytes()) + count * token_bytes;
}

std::string EncodeTokenHeader(const TokenHeader& header) {
  std::string bytes(header.HeaderBytes(), '\0');
  const std::span<std::byte> all = std::as_writable_bytes(std::span(bytes));
  WireWriter writer(all);
  PutBeginning(kFormat, writer);
  writer.Put(header.token_bytes);
  writer.Put(header.count);
  writer.Put(header.vocabulary);
  writer.Put(static_cast<uint64_t>(header.alphabet.size()));
  writer.Put(header.content);
  WireWriter(all.subspan(kFormat.fixed_bytes)).PutBytes(BytesOf(header.alphabet));
  writer.Put(HeaderDigest(kFormat, all));
  return bytes;
}

Result<TokenHeader> ParseTokenHeader(std::span<const std::byte> file, uint64_t file_bytes) {
  KEEL_TRY_ASSIGN(WireReader reader, ReadBeginning(kFormat, file));
  TokenHeader header;
  header.token_bytes = reader.Get<uint32_t>();
  header.count = reader.Get<uint64_t>();
  header.vocabulary = reader.Get<uint64_t>();
  const auto alphabet_bytes = reader.Get<uint64_t>();
  header.content = reader.GetDigest();
  if (alphabet_bytes > kAlphabetMax || file.size() < kFormat.fixed_bytes + alphabet_bytes) {
    return DamagedData("an alphabet of " + std::to_string(alphabet_bytes) + " bytes");
  }
  const std::span<const std::byte> whole = file.first(kFormat.fixed_bytes + alphabet_bytes);
  if (reader.GetDigest() != HeaderDigest(kFormat, whole)) {
    return DamagedData("its header has changed");
  }
  const auto* const alphabet = reinterpret_cast<const char*>(whole.data()) + kFormat.fixed_bytes;
  header.alphabet.assign(alphabet, alphabet_bytes);
  const Status sense = CheckSense(header, file_bytes);
  if (!sense.ok()) return DamagedData(sense.error().message);
  return header;
}

Result<std::unique_ptr<TokenFile>> TokenFile::Open(const std::string& path) {
  KEEL_TRY_ASSIGN(std::unique_ptr<MappedFile> file, MappedFile::Open(path));
  Result<TokenHeader> header = ParseTokenHeader(file->bytes(), file->bytes().size());
  if (!header.ok()) return header.error().Doing(path);
  return std::unique_ptr<TokenFile>(new TokenFile(std::move(file), *std::move(header)));
}

std::span<const std::byte> TokenFile::Content() const {
  return file_->bytes().subspan(DataOffset(header_.HeaderBytes()));
}

Status TokenFile::Read(uint64_t begin, std::span<int64_t> into) const {
  if (begin > header_.count || into.size() > header_.count - begin) {
    return Error{Code::kInvalid, file_->path() + ": tokens " + std::to_string(begin) + " to " +
                                     std::to_string(begin + into.size()) + " of " +
                                     std::to_string(header_.count)};
  }
  const auto from = Content().subspan(begin * header_.token_bytes);
  if (header_.token_bytes == 1) Widen<uint8_t>(from, into);
  if (header_.token_bytes == 2) Widen<uint16_t>(from, into);
  if (header_.token_bytes == 4) Widen<uint32_t>(from, into);
  return Ok();
}

Status TokenFile::Verify() const {
  return VerifyContent(Content(), header_.content, "tokens", file_->path());
}

Result<std::unique_ptr<TokenFileWriter>> TokenFileWriter::Open(Files& files,
                                                               const std::string& path,
                                                               const Spec& spec) {
  TokenHeader header{.token_bytes = spec.token_bytes, .vocabulary = spec.vocabulary,
                     .alphabet = spec.alphabet};
  if (const Status sense = CheckSense(header, header.FileBytes()); !sense.ok()) {
    return sense.error().Doing(path + " cannot be made");
  }
  KEEL_TRY_ASSIGN(auto writer, DataFileWriter::Open(files, path, header.HeaderBytes()));
  return std::unique_ptr<TokenFileWriter>(
      new TokenFileWriter(std::move(writer), std::move(header)));
}

Status TokenFileWriter::Append(std::span<const uint32_t> tokens) {
  const uint64_t limit =
      header_.vocabulary > 0 ? header_.vocabulary : TokensOf(header_.token_bytes);
  packed_.resize(tokens.size() * header_.token_bytes);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= limit) {
      return Error{Code::kInvalid, "token " + std::to_string(header_.count + i) + " is " +
                                       std::to_string(tokens[i]) + ", not below " +
                                       std::to_string(limit)};
    }
    above_ = std::max(above_, uint64_t{tokens[i]} + 1);
    // Little-endian, as this machine is: the low bytes come first.
    std::memcpy(packed_.data() + i * header_.token_bytes, &tokens[i], header_.token_bytes);
  }
  header_.count += tokens.size();
  return writer_->Append(packed_);
}

Result<TokenHeader> TokenFileWriter::Finish() {
  if (header_.vocabulary == 0) header_.vocabulary = above_;
  header_.content = writer_->content_digest();
  KEEL_TRY(writer_->Finish(BytesOf(EncodeTokenHeader(header_))));
  return header_;
}

}  // namespace keel
