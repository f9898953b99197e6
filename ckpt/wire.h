// Little-endian numbers and digests, in and out of byte ranges.
// Promises   reading or writing beyond a range is a checked bug: a parser of hostile files checks
//            sizes first.
// Threads    a WireWriter or WireReader belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <span>

#include "base/check.h"
#include "base/digest.h"

namespace keel {

class WireWriter {
 public:
  explicit WireWriter(std::span<std::byte> into) : left_(into) {}

  template <class T>
  void Put(T number) {
    static_assert(std::is_integral_v<T>);
    PutBytes(std::as_bytes(std::span(&number, 1)));
  }
  void Put(const Digest& digest) { PutBytes(digest.bytes); }
  void PutBytes(std::span<const std::byte> bytes) {
    KEEL_CHECK(bytes.size() <= left_.size(), bytes.size() << " > " << left_.size());
    if (!bytes.empty()) std::memcpy(left_.data(), bytes.data(), bytes.size());
    left_ = left_.subspan(bytes.size());
  }
  size_t left() const { return left_.size(); }

 private:
  std::span<std::byte> left_;
};

class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> from) : left_(from) {}

  template <class T>
  T Get() {
    static_assert(std::is_integral_v<T>);
    T number;
    std::memcpy(&number, Take(sizeof number).data(), sizeof number);
    return number;
  }
  Digest GetDigest() {
    Digest digest;
    std::memcpy(digest.bytes.data(), Take(digest.bytes.size()).data(), digest.bytes.size());
    return digest;
  }
  std::span<const std::byte> Take(size_t bytes) {
    KEEL_CHECK(bytes <= left_.size(), bytes << " > " << left_.size());
    const auto taken = left_.first(bytes);
    left_ = left_.subspan(bytes);
    return taken;
  }
  size_t left() const { return left_.size(); }

 private:
  std::span<const std::byte> left_;
};

}  // namespace keel
