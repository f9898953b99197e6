// Encodes and decodes single frames.
#include "ckpt/frame.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/text.h"
#include "ckpt/byte_planes.h"
#include "ckpt/plane_choice.h"
#include "ckpt/wire.h"

namespace keel {
namespace {

Error Broken(std::string why) { return {Code::kCorrupt, std::move(why)}; }

std::string Counts(uint64_t found, uint64_t expected) {
  return std::to_string(found) + ", expected " + std::to_string(expected);
}

bool IsCoded(uint8_t planes, uint32_t plane) { return (planes >> plane & 1) != 0; }

Status CheckShape(const FrameHeader& header) {
  const uint8_t planes = header.coded_planes;
  if (header.codec != Codec::kPlanes) {
    if (planes == 0 && !header.rotated) return Ok();
    return Broken("the header speaks of planes, but its codec has none");
  }
  if (header.width < 2) return Broken("planes of single bytes");
  if (planes == 0 || planes >> header.width != 0) {
    return Broken("coded planes " + std::to_string(planes) + " of " +
                  std::to_string(header.width));
  }
  return Ok();
}

}  // namespace

std::string_view CodecName(Codec codec) {
  switch (codec) {
    case Codec::kNone: return "none";
    case Codec::kZstd: return "zstd";
    case Codec::kPlanes: return "planes";
  }
  return "unknown";
}

Result<Codec> ParseCodec(std::string_view name) {
  for (const Codec codec : {Codec::kNone, Codec::kZstd, Codec::kPlanes}) {
    if (CodecName(codec) == name) return codec;
  }
  return Error{Code::kInvalid, Shown(name) + " is not a codec: use planes, zstd or none"};
}

Result<FrameHeader> ParseFrameHeader(std::span<const std::byte> stored) {
  if (stored.size() < kFrameHeaderBytes) {
    return Broken("the frame has " + std::to_string(stored.size()) + " bytes, less than a header");
  }
  WireReader wire(stored.first(kFrameHeaderBytes));
  FrameHeader header;
  if (wire.Get<uint32_t>() != kFrameMagic) return Broken("no frame begins here");
  const auto codec = wire.Get<uint8_t>();
  if (codec > static_cast<uint8_t>(Codec::kPlanes)) {
    return Broken("codec " + std::to_string(codec) + " is unknown");
  }
  header.codec = static_cast<Codec>(codec);
  header.width = wire.Get<uint8_t>();
  const auto flags = wire.Get<uint8_t>();
  if ((flags & ~kFlagRotated) != 0) return Broken("flags " + std::to_string(flags));
  header.rotated = (flags & kFlagRotated) != 0;
  header.coded_planes = wire.Get<uint8_t>();
  header.content_bytes = wire.Get<uint32_t>();
  header.payload_bytes = wire.Get<uint32_t>();
  header.number = wire.Get<uint64_t>();
  header.content_digest = wire.GetDigest();
  if (header.width != 8 && header.width != 4 && header.width != 2 && header.width != 1) {
    return Broken("lanes of " + std::to_string(header.width) + " bytes");
  }
  KEEL_TRY(CheckShape(header));
  return header;
}

FrameCoder::Encoded FrameCoder::Encode(uint64_t number, uint32_t width,
                                       std::span<const std::byte> content,
                                       const CodecChoice& choice, std::span<std::byte> into) {
  KEEL_CHECK(content.size() <= kFrameBytesMax, content.size());
  KEEL_CHECK(into.size() >= StoredBytesMax(content.size()), into.size());
  // The digest is taken while the content is in the cache, and before it is taken apart.
  const Digest digest = DigestOf(content);
  const Payload payload =
      MakePayload(width, content, choice, into.subspan(kFrameHeaderBytes));
  WireWriter wire(into.first(kFrameHeaderBytes));
  wire.Put(kFrameMagic);
  wire.Put(static_cast<uint8_t>(payload.codec));
  wire.Put(static_cast<uint8_t>(width));
  wire.Put(static_cast<uint8_t>(payload.rotated ? kFlagRotated : 0));
  wire.Put(payload.coded_planes);
  wire.Put(static_cast<uint32_t>(content.size()));
  wire.Put(static_cast<uint32_t>(payload.bytes));
  wire.Put(number);
  wire.Put(digest);
  KEEL_CHECK(wire.left() == 0, wire.left());
  return {kFrameHeaderBytes + payload.bytes, digest};
}

FrameCoder::Payload FrameCoder::MakePayload(uint32_t width, std::span<const std::byte> content,
                                            const CodecChoice& choice, std::span<std::byte> into) {
  if (choice.codec == Codec::kPlanes && width > 1) {
    const Payload planes = MakePlanes(width, content, into);
    if (planes.bytes > 0) return planes;
  } else if (choice.codec != Codec::kNone) {
    const int level = choice.codec == Codec::kZstd ? choice.zstd_level : kZstdLevel;
    const auto bytes = zstd_.Shrink(content, level, into);
    if (bytes.has_value()) return {Codec::kZstd, false, 0, *bytes};
  }
  if (!content.empty()) std::memcpy(into.data(), content.data(), content.size());
  return {Codec::kNone, false, 0, content.size()};
}

// The payload has the sizes of coded planes, the raw planes, the tail, and the coded planes, from
// the lowest plane up. Raw planes come first so that the shuffle can write them in place.
FrameCoder::Payload FrameCoder::MakePlanes(uint32_t width, std::span<const std::byte> content,
                                           std::span<std::byte> into) {
  const size_t count = content.size() / width;
  const size_t tail = content.size() % width;
  const PlaneChoice choice = ChoosePlanes(content.data(), count, width);
  const int coded = std::popcount(choice.coded);
  if (coded == 0) return {};
  if (scratch_.size() < count * coded) scratch_.resize(count * coded);

  PlanePointers planes{};
  size_t at = kPlaneSizeBytes * coded;
  size_t in_scratch = 0;
  for (uint32_t p = 0; p < width; ++p) {
    std::byte*& plane = planes[p];
    if (IsCoded(choice.coded, p)) {
      plane = scratch_.data() + in_scratch;
      in_scratch += count;
    } else {
      plane = into.data() + at;
      at += count;
    }
  }
  SplitPlanes(content.data(), count, width, choice.rotate, planes);
  if (tail > 0) std::memcpy(into.data() + at, content.data() + count * width, tail);
  at += tail;

  WireWriter sizes(into.first(kPlaneSizeBytes * coded));
  for (uint32_t p = 0; p < width; ++p) {
    if (!IsCoded(choice.coded, p)) continue;
    const std::span<const std::byte> plane(planes[p], count);
    const auto shrunk =
        zstd_.ShrinkPlane(plane, IsCoded(choice.seek_runs, p), into.subspan(at));
    if (!shrunk.has_value()) std::memcpy(into.data() + at, plane.data(), count);
    const size_t bytes = shrunk.value_or(count);
    sizes.Put(static_cast<uint32_t>(bytes));
    at += bytes;
  }
  if (at >= content.size()) return {};
  return {Codec::kPlanes, choice.rotate, choice.coded, at};
}

Status FrameCoder::Decode(uint64_t number, uint32_t width, std::span<const std::byte> stored,
                          std::span<std::byte> into) {
  KEEL_TRY_ASSIGN(const FrameHeader header, ParseFrameHeader(stored));
  if (header.number != number) return Broken("frame number " + Counts(header.number, number));
  if (header.width != width) return Broken("lane width " + Counts(header.width, width));
  if (header.content_bytes != into.size()) {
    return Broken("content bytes " + Counts(header.content_bytes, into.size()));
  }
  const auto rest = stored.subspan(kFrameHeaderBytes);
  if (header.payload_bytes > rest.size() || rest.size() - header.payload_bytes >= kSlotAlignment) {
    return Broken("a payload of " + std::to_string(header.payload_bytes) + " bytes in a frame of " +
                  std::to_string(stored.size()));
  }
  const auto payload = rest.first(header.payload_bytes);
  switch (header.codec) {
    case Codec::kNone:
      if (payload.size() != into.size()) {
        return Broken("payload bytes " + Counts(payload.size(), into.size()));
      }
      if (!into.empty()) std::memcpy(into.data(), payload.data(), into.size());
      break;
    case Codec::kZstd: KEEL_TRY(zstd_.Expand(payload, into)); break;
    case Codec::kPlanes: KEEL_TRY(DecodePlanes(header, payload, into)); break;
  }
  if (DigestOf(into) != header.content_digest) {
    return Broken("the content does not match its digest " + header.content_digest.Hex());
  }
  return Ok();
}

Status FrameCoder::DecodePlanes(const FrameHeader& header, std::span<const std::byte> payload,
                                std::span<std::byte> into) {
  const uint32_t width = header.width;
  const size_t count = into.size() / width;
  const size_t tail = into.size() % width;
  const size_t coded = static_cast<size_t>(std::popcount(header.coded_planes));
  // Each size is below 2^32 and there are at most 8, so no sum overflows.
  const size_t before_coded = kPlaneSizeBytes * coded + count * (width - coded) + tail;
  if (payload.size() < before_coded) return Broken("the payload is too short for its planes");
  uint64_t expected = before_coded;
  WireReader sum(payload.first(kPlaneSizeBytes * coded));
  for (size_t i = 0; i < coded; ++i) expected += sum.Get<uint32_t>();
  if (expected != payload.size()) {
    return Broken("payload bytes " + Counts(payload.size(), expected));
  }

  if (scratch_.size() < count * coded) scratch_.resize(count * coded);
  WireReader sizes(payload.first(kPlaneSizeBytes * coded));
  const std::byte* raw = payload.data() + kPlaneSizeBytes * coded;
  const std::byte* packed = payload.data() + before_coded;
  std::byte* unpacked = scratch_.data();
  ConstPlanePointers planes{};
  for (uint32_t p = 0; p < width; ++p) {
    if (!IsCoded(header.coded_planes, p)) {
      planes[p] = raw;
      raw += count;
      continue;
    }
    const size_t bytes = sizes.Get<uint32_t>();
    if (bytes > count) return Broken("a plane grew to " + std::to_string(bytes) + " bytes");
    if (bytes == count) {
      planes[p] = packed;  // it did not shrink
    } else {
      KEEL_TRY(zstd_.Expand({packed, bytes}, {unpacked, count}));
      planes[p] = unpacked;
      unpacked += count;
    }
    packed += bytes;
  }
  JoinPlanes(planes, count, width, header.rotated, into.data());
  if (tail > 0) std::memcpy(into.data() + count * width, raw, tail);
  return Ok();
}

}  // namespace keel
