// trainer/token_file.h and record_file.h: the headers of training data. What is read can be made
// again, and reads back the same.
#include "base/file_helpers.h"
#include "ckpt/wire.h"
#include "tests/fuzz/fuzz_targets.h"
#include "trainer/record_file.h"
#include "trainer/token_file.h"

namespace keel {
namespace {

// A header's own digest lies at `at`, over the bytes before it and those behind it.
std::string Sealed(std::string_view input, size_t at) {
  std::string bytes(input);
  const size_t behind = at + sizeof(Digest::bytes);
  if (bytes.size() < behind) return bytes;
  Digester digester;
  digester.Update(BytesOf(bytes).first(at));
  digester.Update(BytesOf(bytes).subspan(behind));
  WireWriter(std::as_writable_bytes(std::span(bytes)).subspan(at)).Put(digester.Current());
  return bytes;
}

// `input` is the header and nothing more: the file has whatever length it asks for.
void ReadTokens(const std::string& input, uint64_t file_bytes) {
  const auto header = ParseTokenHeader(BytesOf(input), file_bytes);
  if (!header.ok()) {
    KEEL_CHECK(!header.error().message.empty(), "an error without words");
    return;
  }
  KEEL_CHECK(header->FileBytes() == file_bytes, header->count);
  const std::string again = EncodeTokenHeader(*header);
  const auto reread = ParseTokenHeader(BytesOf(again), file_bytes);
  KEEL_CHECK(reread.ok() && *reread == *header, "made again, it is another one");
}

void ReadRecords(const std::string& input, uint64_t file_bytes) {
  const auto header = ParseRecordHeader(BytesOf(input), file_bytes);
  if (!header.ok()) {
    KEEL_CHECK(!header.error().message.empty(), "an error without words");
    return;
  }
  const std::string again = EncodeRecordHeader(*header);
  const uint64_t content = header->count * header->record_bytes();
  KEEL_CHECK(DataOffset(again.size()) + content == file_bytes, file_bytes);
  const auto reread = ParseRecordHeader(BytesOf(again), file_bytes);
  KEEL_CHECK(reread.ok() && *reread == *header, "made again, it is another one");
}

// The length of file that a header speaks of, as far as it makes sense.
uint64_t LengthOf(const std::string& header) {
  if (header.size() < 64) return header.size();
  WireReader reader(BytesOf(header).subspan(12));
  const auto token_bytes = reader.Get<uint32_t>();
  const auto count = reader.Get<uint64_t>();
  return DataOffset(header.size()) + count * token_bytes;
}

void Run(std::span<const std::byte> input) {
  const std::string text(TextOf(input));
  const std::string tokens = Sealed(text, 56);
  const std::string records = Sealed(text, 48);
  for (const uint64_t extra : {0, 64, 128, 192}) {
    ReadTokens(text, text.size() + extra);
    ReadTokens(tokens, tokens.size() + extra);
    ReadRecords(text, DataOffset(text.size()) + extra);
    ReadRecords(records, DataOffset(records.size()) + extra);
  }
  ReadTokens(tokens, LengthOf(tokens));
}

std::vector<std::string> Seeds() {
  return {
      EncodeTokenHeader({.token_bytes = 2, .count = 32, .vocabulary = 50257}),
      EncodeTokenHeader({.token_bytes = 1, .count = 64, .vocabulary = 3, .alphabet = "abc"}),
      EncodeTokenHeader({.token_bytes = 4, .count = 0, .vocabulary = 0}),
      EncodeRecordHeader({.fields = {{"image", Dtype::kU8, {3, 5, 4}}, {"label", Dtype::kI32}},
                          .count = 2}),
      EncodeRecordHeader({.fields = {{"x", Dtype::kF64, {8}}}, .count = 1}),
      "",
  };
}

}  // namespace

const FuzzTarget kDataTarget = {"data", Run, Seeds};

}  // namespace keel
