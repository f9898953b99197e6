// Reads and writes safetensors files.
// Promises   reading: the header is whole and fits the file before anything is allocated by what
//            it says, and so does every range that is read. Writing: to an OutputFile, an object of
//            a bucket, which appears whole at Commit() as well, or a stream.
// Does not   find flipped bytes in tensors: the format has no digests.
// Threads    SafetensorsFile: const methods from any thread. SafetensorsWriter: one at a time.
// Errors     kCorrupt, kInvalid (ckpt/safetensors.h), kExists, those of Files; they name the file.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/objects.h"
#include "base/output_file.h"
#include "base/result.h"
#include "ckpt/safetensors.h"

namespace keel {

class SafetensorsFile {
 public:
  static Result<std::unique_ptr<SafetensorsFile>> Open(Files& files, const std::string& path);

  const std::string& path() const { return path_; }
  const SafetensorsHeader& header() const { return header_; }
  // Reads bytes of a tensor from `offset` on; they must lie in it. kCorrupt: the file was cut short
  // since it was opened.
  Status Read(size_t tensor, uint64_t offset, std::span<std::byte> into) const;

 private:
  SafetensorsFile(std::unique_ptr<File> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}
  Status ReadHeader();
  Status ReadExactly(uint64_t offset, std::span<std::byte> into) const;

  const std::unique_ptr<File> file_;
  const std::string path_;
  uint64_t data_begin_ = 0;
  SafetensorsHeader header_;
};

class SafetensorsWriter {
 public:
  static Result<std::unique_ptr<SafetensorsWriter>> Begin(Files& files, OutputFile::Target target,
                                                          const SafetensorsHeader& header);
  // Writes to a pipe or a device, from front to back.
  static Result<std::unique_ptr<SafetensorsWriter>> Stream(std::unique_ptr<File> to,
                                                           const SafetensorsHeader& header);
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  // The bytes of all tensors, one after the other in the header's order.
  Status Append(std::span<const std::byte> bytes);
  // Call it once, after all of them. After an error of the last sync, a power loss may or may not
  // lose the file.
  Status Commit();

  uint64_t file_bytes() const { return file_bytes_; }

 private:
  explicit SafetensorsWriter(std::string path) : path_(std::move(path)) {}
  Status BeginObject(const BucketPlace& place, const OutputFile::Target& target);
  Status CheckObjectIsFree() const;
  Status Prepare(const std::string& head);
  Status Flush();
  File& file() { return output_ != nullptr ? output_->file() : *stream_; }

  const std::string path_;
  std::unique_ptr<OutputFile> output_;  // this one, or an object, or a stream
  std::unique_ptr<ObjectUpload> upload_;
  BucketPlace free_;   // of an object that may replace none; null: there is none such
  std::unique_ptr<File> stream_;
  uint64_t file_bytes_ = 0;
  uint64_t written_ = 0;
  std::vector<std::byte> buffer_;  // not written yet
};

}  // namespace keel
