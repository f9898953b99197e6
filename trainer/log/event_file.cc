// Encodes protocol buffers by hand, and adds lengths and checksums.
#include "trainer/log/event_file.h"

#include <unistd.h>

#include <array>
#include <cstring>

#include "base/file_helpers.h"

namespace keel {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;   // CRC-32C, reflected
constexpr uint32_t kMaskDelta = 0xA282EAD8;

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = MakeTable();

template <class Number>
std::string Fixed(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

// --- Protocol buffers: fields of a message ---

enum WireType : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}
std::string Key(uint64_t field, WireType type) { return Varint(field << 3 | type); }
std::string Bytes(uint64_t field, std::string_view content) {
  return Key(field, kBytes) + Varint(content.size()) + std::string(content);
}
std::string WallTime(int64_t wall_ns) {
  return Key(1, kFixed64) + Fixed(static_cast<double>(wall_ns) * 1e-9);
}

std::string HostName() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "host";
  return name;
}

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) crc = kTable[(crc ^ static_cast<uint8_t>(byte)) & 255] ^ (crc >> 8);
  return ~crc;
}

uint32_t MaskedCrc32c(std::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + kMaskDelta;
}

std::string EventRecord(std::string_view data) {
  const std::string length = Fixed(static_cast<uint64_t>(data.size()));
  return length + Fixed(MaskedCrc32c(length)) + std::string(data) + Fixed(MaskedCrc32c(data));
}

std::string VersionEvent(int64_t wall_ns) { return WallTime(wall_ns) + Bytes(3, "brain.Event:2"); }

std::string ScalarsEvent(int64_t wall_ns, uint64_t step, std::span<const EventScalar> scalars) {
  std::string summary;
  for (const EventScalar& scalar : scalars) {
    const std::string value =
        Bytes(1, scalar.tag) + Key(2, kFixed32) + Fixed(static_cast<float>(scalar.value));
    summary += Bytes(1, value);
  }
  return WallTime(wall_ns) + Key(2, kVarint) + Varint(step) + Bytes(5, summary);
}

Result<std::unique_ptr<EventFile>> EventFile::Create(Files& files, const std::string& dir,
                                                     int64_t wall_ns) {
  KEEL_TRY(MakeDirs(files, dir));
  const std::string name = "events.out.tfevents." + std::to_string(wall_ns / 1'000'000'000) + "." +
                           HostName() + "." + std::to_string(::getpid()) + "." +
                           std::to_string(wall_ns % 1'000'000'000);
  KEEL_TRY_ASSIGN(auto file, files.Open(JoinPath(dir, name),
                                        {.write = true, .create = true, .exclusive = true}));
  std::unique_ptr<EventFile> events(new EventFile(std::move(file)));
  KEEL_TRY(events->Append(EventRecord(VersionEvent(wall_ns))));
  return events;
}

Status EventFile::Add(int64_t wall_ns, uint64_t step, std::span<const EventScalar> scalars) {
  return Append(EventRecord(ScalarsEvent(wall_ns, step, scalars)));
}

Status EventFile::Append(const std::string& record) {
  KEEL_TRY(file_->WriteAt(size_, BytesOf(record)));
  size_ += record.size();
  return Ok();
}

}  // namespace keel
