// `keel tokens OUT FILE...`: a token file made from text, or from numbers in plain files.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "base/file_helpers.h"
#include "base/output_file.h"
#include "base/text.h"
#include "tools/keel/commands.h"
#include "tools/keel/wording.h"
#include "trainer/token_file.h"

namespace keel {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;   // a multiple of every token's size

using TakePiece = std::function<Status(std::span<const std::byte> piece)>;

// Front to back; every piece but the last is kPieceBytes long.
Status ReadPieces(Files& files, const std::string& path, const TakePiece& take) {
  KEEL_TRY_ASSIGN(const auto file, files.Open(path, {.sequential = true}));
  std::vector<std::byte> piece(kPieceBytes);
  for (uint64_t offset = 0;; offset += kPieceBytes) {
    KEEL_TRY_ASSIGN(const size_t got, file->ReadAt(offset, piece));
    KEEL_TRY(take(std::span(piece).first(got)));
    if (got < piece.size()) return Ok();
  }
}

// The bytes that occur, in order.
Result<std::string> AlphabetOf(Files& files, std::span<const std::string> paths) {
  std::array<bool, 256> occurs{};
  for (const std::string& path : paths) {
    KEEL_TRY(ReadPieces(files, path, [&](std::span<const std::byte> piece) {
      for (const std::byte byte : piece) occurs[static_cast<size_t>(byte)] = true;
      return Ok();
    }));
  }
  std::string alphabet;
  for (size_t byte = 0; byte < occurs.size(); ++byte) {
    if (occurs[byte]) alphabet.push_back(static_cast<char>(byte));
  }
  return alphabet;
}

// How bytes of the inputs become tokens.
struct Reading {
  uint32_t bytes = 1;                       // of one token
  std::array<uint32_t, 256> token_of = {};  // of one byte, where tokens have one
};

Reading ReadingOf(const std::string& as, const std::string& alphabet) {
  Reading reading{.bytes = as == "u16" ? 2u : as == "u32" ? 4u : 1u};
  for (uint32_t byte = 0; byte < 256; ++byte) reading.token_of[byte] = byte;
  for (uint32_t token = 0; token < alphabet.size(); ++token) {
    reading.token_of[static_cast<uint8_t>(alphabet[token])] = token;
  }
  return reading;
}

Result<std::vector<uint32_t>> TokensOf(const Reading& reading, std::span<const std::byte> piece) {
  if (piece.size() % reading.bytes != 0) {
    return Error{Code::kInvalid, "its length is not a multiple of " +
                                     std::to_string(reading.bytes) +
                                     " bytes, the size of a token"};
  }
  std::vector<uint32_t> tokens(piece.size() / reading.bytes);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (reading.bytes == 1) {
      tokens[i] = reading.token_of[static_cast<size_t>(piece[i])];
    } else {
      std::memcpy(&tokens[i], piece.data() + i * reading.bytes, reading.bytes);
    }
  }
  return tokens;
}

Status AppendFile(Files& files, const std::string& path, const Reading& reading,
                  TokenFileWriter& writer) {
  const Status status = ReadPieces(files, path, [&](std::span<const std::byte> piece) -> Status {
    KEEL_TRY_ASSIGN(const std::vector<uint32_t> tokens, TokensOf(reading, piece));
    return writer.Append(tokens);
  });
  return status.ok() ? status : status.error().Doing(path);
}

}  // namespace

OptionTable TokensTable() {
  OptionTable table = CommandTable(
      "tokens",
      "Makes a token file for training from texts, one after the other as they are given. Trainers "
      "map it into memory (TokenDataset), so it may be larger than the memory. Nothing is split "
      "off for validation: make a second file for that.",
      "OUT FILE...", "");
  table.Add(Option::Choice("as", {"bytes", "alphabet", "u16", "u32"}, "bytes",
                           "What a token is. bytes: one byte, so there are 256 tokens. alphabet: "
                           "one byte, numbered among those that occur. u16, u32: the files hold "
                           "tokens already, as little-endian numbers"));
  table.Add(Option::Integer("vocabulary", 0,
                            "Size of the vocabulary: refuse tokens that are not below N (default: "
                            "256 for bytes, the size of the alphabet, or the largest token plus "
                            "one)")
                .Range(1, int64_t{1} << 32)
                .Optional()
                .Placeholder("N"));
  table.AddExample("keel tokens shakespeare.tokens shakespeare.txt --as alphabet",
                   "Characters, numbered");
  table.AddExample("keel tokens train.tokens part*.bin --as u16 --vocabulary 50257",
                   "What a tokenizer has written as 16-bit numbers");
  return table;
}

Result<Outcome> RunTokens(const World& world, const Options& options) {
  const std::string& out = options.positionals()[0];
  const std::span<const std::string> inputs = std::span(options.positionals()).subspan(1);
  const std::string& as = options.Text("as");
  std::string alphabet;
  if (as == "alphabet") {
    KEEL_TRY_ASSIGN(alphabet, AlphabetOf(world.files, inputs));
  }
  const Reading reading = ReadingOf(as, alphabet);
  TokenFileWriter::Spec spec{.token_bytes = reading.bytes, .alphabet = alphabet};
  if (as == "bytes") spec.vocabulary = 256;
  if (as == "alphabet") spec.vocabulary = alphabet.size();
  if (options.Has("vocabulary")) {
    spec.vocabulary = static_cast<uint64_t>(options.Integer("vocabulary"));
  }
  RemoveOutputLeftovers(world.files, out);
  KEEL_TRY_ASSIGN(const auto writer, TokenFileWriter::Open(world.files, out, spec));
  for (const std::string& path : inputs) {
    KEEL_TRY(AppendFile(world.files, path, reading, *writer));
  }
  KEEL_TRY_ASSIGN(const TokenHeader header, writer->Finish());
  return Outcome{{{"file", out},
                  {"tokens", header.count},
                  {"vocabulary", header.vocabulary},
                  {"token_bytes", header.token_bytes},
                  {"bytes", header.FileBytes()},
                  {"digest", header.content.Hex()}},
                 "made " + out + ": " + CountText(header.count, "token") + ", vocabulary " +
                     std::to_string(header.vocabulary) + ", " + BytesText(header.FileBytes()) +
                     "\n"};
}

}  // namespace keel
