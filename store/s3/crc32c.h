// CRC32C (Castagnoli), which stores check of what they are sent.
// Promises   the same sum with and without the processor's instruction for it.
// Threads    any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace keel {

uint32_t Crc32cOf(std::span<const std::byte> bytes);
// The same by tables, for processors without the instruction, and to compare with.
uint32_t Crc32cByTable(std::span<const std::byte> bytes);
// As the header x-amz-checksum-crc32c wants it: four bytes, the highest first, in base64.
std::string Crc32cBase64(std::span<const std::byte> bytes);

}  // namespace keel
