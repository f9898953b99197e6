// The rules that every disk, real or not, applies in the same words.
#include "base/files.h"

namespace keel {

Status CheckOpenFlags(const std::string& path, const OpenFlags& flags) {
  const bool needs_write = flags.create || flags.truncate;
  if (needs_write && !flags.write) {
    return Error{Code::kInvalid, "open " + path + ": create and truncate need write"};
  }
  if (flags.exclusive && !flags.create) {
    return Error{Code::kInvalid, "open " + path + ": exclusive needs create"};
  }
  return Ok();
}

Status CheckDirectPiece(const std::string& path, uint64_t offset, const void* address,
                        size_t bytes) {
  const auto number = reinterpret_cast<uintptr_t>(address);
  if ((offset | bytes | number) % kDirectAlignment == 0) return Ok();
  return Error{Code::kInvalid, "direct access to " + path + ": offset " + std::to_string(offset) +
                                   ", size " + std::to_string(bytes) + " and address " +
                                   std::to_string(number) + " must all be multiples of " +
                                   std::to_string(kDirectAlignment)};
}

Result<BucketPlace> Files::Bucket(const std::string&) { return BucketPlace{}; }

}  // namespace keel
