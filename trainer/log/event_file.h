// EventFile: writes curves for TensorBoard: numbers under a tag, at a step and a time.
// The format is TensorFlow's: records of length (8 bytes), its checksum (4), data, its checksum
// (4), little-endian; a checksum is CRC-32C, rotated and offset; the data is the protocol buffer
//   Event   { 1: double wall_time, 2: int64 step, 3: string file_version, 5: Summary summary }
//   Summary { 1: repeated Value value }      Value { 1: string tag, 2: float simple_value }
// Promises   one call writes a whole record, or returns an error; what a killed process has
//            written before stays readable.
// Does not   sync: curves are not state.
// Threads    one.
// Errors     those of base/files.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/result.h"

namespace keel {

struct EventScalar {
  std::string tag;
  double value = 0;
};

uint32_t Crc32c(std::string_view bytes);
// The form of a checksum in these files.
uint32_t MaskedCrc32c(std::string_view bytes);
std::string EventRecord(std::string_view data);
std::string VersionEvent(int64_t wall_ns);
std::string ScalarsEvent(int64_t wall_ns, uint64_t step, std::span<const EventScalar> scalars);

class EventFile {
 public:
  // Makes a new file in `dir` (made if needed), whose name contains time, host and process.
  static Result<std::unique_ptr<EventFile>> Create(Files& files, const std::string& dir,
                                                   int64_t wall_ns);
  const std::string& path() const { return file_->path(); }
  Status Add(int64_t wall_ns, uint64_t step, std::span<const EventScalar> scalars);

 private:
  explicit EventFile(std::unique_ptr<File> file) : file_(std::move(file)) {}
  Status Append(const std::string& record);

  const std::unique_ptr<File> file_;
  uint64_t size_ = 0;
};

}  // namespace keel
