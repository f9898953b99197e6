// ckpt/frame.h: as it comes, and with a content digest that fits. What decodes can be encoded by
// each codec, and decodes to the same again.
#include "ckpt/frame.h"

#include <cstring>

#include "tests/ckpt/state.h"
#include "tests/fuzz/fuzz_targets.h"
#include "tests/fuzz/shard_parts.h"

namespace keel {
namespace {

void CheckRoundTrips(uint32_t width, std::span<const std::byte> content) {
  std::vector<std::byte> stored(StoredBytesMax(content.size()));
  std::vector<std::byte> decoded(content.size());
  static FrameCoder coder;  // its contexts cost more than a small frame
  for (const Codec codec : {Codec::kNone, Codec::kZstd, Codec::kPlanes}) {
    const auto encoded = coder.Encode(3, width, content, {.codec = codec}, stored);
    const Status status =
        coder.Decode(3, width, std::span(stored).first(encoded.bytes), decoded);
    KEEL_CHECK(status.ok(), CodecName(codec) << ": " << status.error().message);
    KEEL_CHECK(std::equal(decoded.begin(), decoded.end(), content.begin()), CodecName(codec));
  }
}

void Run(std::span<const std::byte> input) {
  const auto header = ParseFrameHeader(input);
  if (!header.ok() || header->content_bytes > kFuzzContentMax) return;
  std::vector<std::byte> content(header->content_bytes);
  static FrameCoder coder;
  const Status raw = coder.Decode(header->number, header->width, input, content);
  std::vector<std::byte> sealed(input.begin(), input.end());
  const bool decodes = SealFrame(sealed);
  KEEL_CHECK(decodes || !raw.ok(), "sealing broke a frame");
  if (!decodes) return;
  std::vector<std::byte> again(content.size());
  const Status status = coder.Decode(header->number, header->width, sealed, again);
  KEEL_CHECK(status.ok(), status.error().message);
  KEEL_CHECK(!raw.ok() || again == content, "the same payload gave other content");
  KEEL_CHECK(!coder.Decode(header->number + 1, header->width, sealed, again).ok(), "its number");
  if (!content.empty()) CheckRoundTrips(header->width, again);
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  Random random(7);
  for (const auto& [dtype, numbers] : std::vector<std::pair<Dtype, int64_t>>{
           {Dtype::kF32, 1500}, {Dtype::kF32, 3}, {Dtype::kBf16, 900}, {Dtype::kF64, 300},
           {Dtype::kU8, 200}}) {
    TestState state;
    state.Add("w", dtype, {numbers}, random);
    std::vector<std::byte>& content = state.bytes[0];
    // What compresses: constant upper bytes.
    const uint32_t size = DtypeBytes(dtype);
    for (size_t i = size - 1; i < content.size(); i += size) content[i] = std::byte{0x3F};
    for (const Codec codec : {Codec::kNone, Codec::kZstd, Codec::kPlanes}) {
      std::string stored(StoredBytesMax(content.size()), '\0');
      FrameCoder coder;
      const auto encoded = coder.Encode(0, LaneWidth(dtype), content, {.codec = codec},
                                        std::as_writable_bytes(std::span(stored)));
      seeds.push_back(stored.substr(0, encoded.bytes));
    }
  }
  return seeds;
}

}  // namespace

const FuzzTarget kFrameTarget = {"frame", Run, Seeds};

}  // namespace keel
