// ckpt/safetensors.h and safetensors_file.h: as a file, and as a header of a length that fits. What
// is read can be made again, and reads back the same.
#include "base/file_helpers.h"
#include "base/memory_files.h"
#include "ckpt/safetensors_file.h"
#include "ckpt/wire.h"
#include "tests/fuzz/fuzz_targets.h"

namespace keel {
namespace {

std::string Length(uint64_t value) {
  std::string bytes(kSafetensorsLengthBytes, '\0');
  WireWriter(std::as_writable_bytes(std::span(bytes))).Put(value);
  return bytes;
}

void CheckMadeAgain(const SafetensorsHeader& header) {
  std::vector<TensorSpec> specs;
  for (const SafetensorsTensor& tensor : header.tensors) specs.push_back(tensor.spec);
  const auto made = MakeSafetensorsHeader(std::move(specs), header.metadata);
  KEEL_CHECK(made.ok(), "read, but not to be made: " << made.error().message);
  KEEL_CHECK(made->data_bytes() == header.data_bytes(), "other data than was read");
  const auto head = SafetensorsHead(*made);
  KEEL_CHECK(head.ok(), head.error().message);
  const auto again = ParseSafetensorsHeader(
      std::string_view(*head).substr(kSafetensorsLengthBytes), made->data_bytes());
  KEEL_CHECK(again.ok(), *head << ": " << again.error().message);
  KEEL_CHECK(*again == *made, *head);
}

void ReadHeader(std::string_view text, uint64_t data_bytes) {
  const auto header = ParseSafetensorsHeader(text, data_bytes);
  if (!header.ok()) {
    KEEL_CHECK(!header.error().message.empty(), "an error without words");
    return;
  }
  KEEL_CHECK(header->data_bytes() == data_bytes, text);
  uint64_t next = 0;
  for (const SafetensorsTensor& tensor : header->tensors) {
    KEEL_CHECK(tensor.begin == next, text);
    next += tensor.bytes;
  }
  CheckMadeAgain(*header);
}

void ReadFile(std::string_view content) {
  MemoryFiles files;
  const auto made = files.Open("/f", {.write = true, .create = true});
  KEEL_CHECK(made.ok() && (*made)->WriteAt(0, BytesOf(content)).ok(), "no file in memory");
  const auto file = SafetensorsFile::Open(files, "/f");
  if (!file.ok()) return;
  const auto& tensors = (*file)->header().tensors;
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::string bytes(tensors[i].bytes, '\0');
    const Status read = (*file)->Read(i, 0, std::as_writable_bytes(std::span(bytes)));
    KEEL_CHECK(read.ok(), read.error().message);
  }
}

// The bytes are a file, and a header whose data has the size that it speaks of.
void Run(std::span<const std::byte> input) {
  const std::string_view text = TextOf(input);
  ReadFile(text);
  for (const uint64_t data_bytes : {0, 1, 8, 12, 24}) ReadHeader(text, data_bytes);
  if (text.size() > kSafetensorsLengthBytes) {
    const std::string_view behind = text.substr(kSafetensorsLengthBytes);
    const size_t end = behind.rfind('}');
    const size_t header = end == behind.npos ? behind.size() : end + 1;
    ReadFile(Length(header) + std::string(behind));
  }
}

std::string FileOf(const std::string& header, size_t data_bytes) {
  return Length(header.size()) + header + std::string(data_bytes, 'd');
}

std::vector<std::string> Seeds() {
  const std::string two =
      R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[8,12]}})";
  return {
      FileOf(two, 12),
      two,
      FileOf("{}", 0),
      FileOf(R"({"":{"dtype":"BOOL","shape":[],"data_offsets":[0,1]}}       )", 1),
      FileOf(R"({"e":{"dtype":"I64","shape":[0,9],"data_offsets":[0,0]}})", 0),
      FileOf(R"({"h":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,8]}})", 8),
      FileOf(R"({"o":{"dtype":"U8","shape":[8],"data_offsets":[8,0]}})", 8),
      FileOf(R"({"q":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[0,3]},)"
             R"("r":{"dtype":"U8","shape":[3],"data_offsets":[2,5]}})", 5),
      Length(~uint64_t{0}) + "{}",
      "",
  };
}

}  // namespace

const FuzzTarget kSafetensorsTarget = {"safetensors", Run, Seeds};

}  // namespace keel
