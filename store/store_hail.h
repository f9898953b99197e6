// The first words to somebody who may be a TCPStore: the handshake of c10d's client and a ping,
// whose number makes it a line of text as well. A store gives that number back at once, where it
// would keep silent about anything else.
// Threads    constants. store/tcp_store_host.cc checks that they are c10d's.
#pragma once

#include <cstdint>
#include <string_view>

namespace keel {

inline constexpr uint8_t kHailValidate = 0;
inline constexpr uint32_t kHailMagic = 0x3C85F7CE;
inline constexpr uint8_t kHailPing = 13;

// Without its line feed, which is the last byte of the ping's number.
inline constexpr std::string_view kStoreHail{"\x00\xCE\xF7\x85\x3C\x0Dkey", 9};
inline constexpr std::string_view kStoreReply = "key";

}  // namespace keel
