// TensorSource: where a save takes the bytes of tensors from: memory, a copy of it, another file.
// Threads    all methods from several threads at a time.
// Errors     any; the save ends with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/result.h"

namespace keel {

class TensorSource {
 public:
  TensorSource() = default;
  TensorSource(const TensorSource&) = delete;
  TensorSource& operator=(const TensorSource&) = delete;
  virtual ~TensorSource() = default;

  // The bytes where they lie, valid and unchanged until the save has ended; null if they are not in
  // memory: use Read(). `tensor` is an index into the layout; no range leaves its tensor or its
  // frame.
  virtual const std::byte* Borrow(size_t tensor, uint64_t offset, size_t bytes) = 0;
  virtual Status Read(size_t tensor, uint64_t offset, std::span<std::byte> into) = 0;
};

// Tensors that lie whole in memory, in the layout's order. It borrows them.
class MemorySource : public TensorSource {
 public:
  explicit MemorySource(std::vector<std::span<const std::byte>> tensors)
      : tensors_(std::move(tensors)) {}

  const std::byte* Borrow(size_t tensor, uint64_t offset, size_t bytes) override {
    const auto& all = tensors_.at(tensor);
    KEEL_CHECK(offset <= all.size() && bytes <= all.size() - offset,
               "tensor " << tensor << " has " << all.size() << " bytes, not " << offset + bytes);
    return all.data() + offset;
  }
  Status Read(size_t, uint64_t, std::span<std::byte>) override {
    return Error{Code::kForeign, "memory is borrowed, never read"};
  }

 private:
  const std::vector<std::span<const std::byte>> tensors_;
};

}  // namespace keel
