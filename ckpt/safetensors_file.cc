// Reads and writes safetensors files.
#include "ckpt/safetensors_file.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/file_helpers.h"
#include "ckpt/wire.h"

namespace keel {
namespace {

constexpr size_t kBufferBytes = 1024 * 1024;  // small tensors are written together

}  // namespace

Result<std::unique_ptr<SafetensorsFile>> SafetensorsFile::Open(Files& files,
                                                               const std::string& path) {
  KEEL_TRY_ASSIGN(const FileInfo info, files.Stat(path));
  if (info.kind != FileKind::kFile) {
    const char* const kind = info.kind == FileKind::kDirectory ? "a directory" : "a device";
    return Error{Code::kInvalid, path + " is " + kind + ", not a file"};
  }
  KEEL_TRY_ASSIGN(auto file, files.Open(path, {.sequential = true}));
  std::unique_ptr<SafetensorsFile> opened(new SafetensorsFile(std::move(file), path));
  const Status status = opened->ReadHeader();
  if (!status.ok()) return status.error().Doing("safetensors file " + path);
  return opened;
}

Status SafetensorsFile::ReadHeader() {
  KEEL_TRY_ASSIGN(const uint64_t file_bytes, file_->Size());
  if (file_bytes < kSafetensorsLengthBytes) {
    return Error{Code::kCorrupt, "it has " + std::to_string(file_bytes) +
                                     " bytes, fewer than the 8 of the header's length"};
  }
  std::byte length[kSafetensorsLengthBytes];
  KEEL_TRY(ReadExactly(0, length));
  const auto header_bytes = WireReader(length).Get<uint64_t>();
  const uint64_t left = file_bytes - kSafetensorsLengthBytes;
  if (header_bytes > kSafetensorsHeaderBytesMax || header_bytes > left) {
    return Error{Code::kCorrupt, "its first 8 bytes say that the header has " +
                                     std::to_string(header_bytes) + " bytes; " +
                                     (header_bytes > left ? std::to_string(left) + " follow"
                                                          : "100 MB are the most allowed") +
                                     ": it is cut short, damaged, or no safetensors file"};
  }
  std::string text(header_bytes, '\0');
  KEEL_TRY(ReadExactly(kSafetensorsLengthBytes, std::as_writable_bytes(std::span(text))));
  data_begin_ = kSafetensorsLengthBytes + header_bytes;
  auto header = ParseSafetensorsHeader(text, file_bytes - data_begin_);
  if (!header.ok()) return header.error().Doing("header (from byte 8 on)");
  header_ = *std::move(header);
  return Ok();
}

Status SafetensorsFile::ReadExactly(uint64_t offset, std::span<std::byte> into) const {
  KEEL_TRY_ASSIGN(const size_t got, file_->ReadAt(offset, into));
  if (got == into.size()) return Ok();
  return Error{Code::kCorrupt, "it ends at byte " + std::to_string(offset + got) +
                                   ", earlier than when it was opened"};
}

Status SafetensorsFile::Read(size_t tensor, uint64_t offset, std::span<std::byte> into) const {
  const SafetensorsTensor& from = header_.tensors.at(tensor);
  KEEL_CHECK(offset <= from.bytes && into.size() <= from.bytes - offset,
             "tensor " << from.spec.name << " has " << from.bytes << " bytes, not "
                       << offset + into.size());
  const Status read = ReadExactly(data_begin_ + from.begin + offset, into);
  return read.ok() ? read : read.error().Doing("safetensors file " + path_);
}

Result<std::unique_ptr<SafetensorsWriter>> SafetensorsWriter::Begin(
    Files& files, OutputFile::Target target, const SafetensorsHeader& header) {
  std::unique_ptr<SafetensorsWriter> writer(new SafetensorsWriter(target.path));
  KEEL_TRY_ASSIGN(const std::string head, SafetensorsHead(header));
  writer->file_bytes_ = head.size() + header.data_bytes();
  KEEL_TRY_ASSIGN(const BucketPlace place, files.Bucket(target.path));
  if (place.bucket != nullptr) {
    KEEL_TRY(writer->BeginObject(place, target));
  } else {
    KEEL_TRY_ASSIGN(writer->output_, OutputFile::Open(files, std::move(target)));
  }
  const Status prepared = writer->Prepare(head);
  if (!prepared.ok()) return prepared.error().Doing("writing " + writer->path_);
  return writer;
}

Result<std::unique_ptr<SafetensorsWriter>> SafetensorsWriter::Stream(
    std::unique_ptr<File> to, const SafetensorsHeader& header) {
  std::unique_ptr<SafetensorsWriter> writer(new SafetensorsWriter(to->path()));
  writer->stream_ = std::move(to);
  KEEL_TRY_ASSIGN(const std::string head, SafetensorsHead(header));
  writer->file_bytes_ = head.size() + header.data_bytes();
  KEEL_TRY(writer->Prepare(head));
  return writer;
}

Status SafetensorsWriter::BeginObject(const BucketPlace& place, const OutputFile::Target& target) {
  if (!target.replace) free_ = place;
  KEEL_TRY(CheckObjectIsFree());
  KEEL_TRY_ASSIGN(upload_, place.bucket->Upload(place.key, file_bytes_));
  return Ok();
}

Status SafetensorsWriter::CheckObjectIsFree() const {
  if (free_.bucket == nullptr) return Ok();
  const Result<ObjectInfo> there = free_.bucket->Look(free_.key);
  if (there.ok()) return Error{Code::kExists, path_ + " is there already"};
  return there.error().code == Code::kNotFound ? Ok() : Status(there.error());
}

Status SafetensorsWriter::Prepare(const std::string& head) {
  if (upload_ == nullptr) {
    // A disk that cannot promise the room may still have it.
    KEEL_TRY_ASSIGN([[maybe_unused]] const bool reserved, file().Allocate(file_bytes_));
  }
  return Append(BytesOf(head));
}

Status SafetensorsWriter::Append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), kBufferBytes - buffer_.size());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + count);
    bytes = bytes.subspan(count);
    if (buffer_.size() == kBufferBytes) KEEL_TRY(Flush());
  }
  return Ok();
}

Status SafetensorsWriter::Flush() {
  const Status wrote = upload_ != nullptr ? upload_->Append(buffer_)
                                          : file().WriteAt(written_, buffer_);
  if (!wrote.ok()) return wrote.error().Doing("writing " + path_);
  written_ += buffer_.size();
  buffer_.clear();
  return Ok();
}

Status SafetensorsWriter::Commit() {
  KEEL_TRY(Flush());
  KEEL_CHECK(written_ == file_bytes_, written_ << " bytes of " << file_bytes_);
  if (output_ == nullptr && upload_ == nullptr) return Ok();
  KEEL_TRY(CheckObjectIsFree());
  const Status published = upload_ != nullptr ? upload_->Finish() : output_->Commit();
  return published.ok() ? published : published.error().Doing("writing " + path_);
}

}  // namespace keel
