// RecordFile: tensor records in a file, mapped into memory: N records, each with the same named
// tensors of fixed dtype and shape (an image and its label). All numbers are little-endian.
//
//   offset  bytes  what
//   0       8      magic "KEELREC\0"
//   8       4      version: 1
//   12      4      F: count of fields, 1 to 64
//   16      8      N: count of records
//   24      8      H: bytes of this header, field table included; at most 64 KiB
//   32      16     XXH3-128 of the records' bytes
//   48      16     XXH3-128 of bytes 0..47 and of the field table
//   64      H-64   field table; for each field:
//                    1 byte   length of the name (1 to 255), then the name
//                    1 byte   length of the dtype's name, then that: "u8", "f32", "i64" ...
//                    1 byte   R: dimensions, at most 8, then R times 8 bytes: the sizes (none is 0)
//   H              zeros up to a multiple of 64, then the records, which end the file. A record is
//                  its fields' elements in the order of the table, row-major, without gaps; so
//                  record i begins i times the record's size behind the first: there is no index.
//
// Promises   a file that opens has its header as written, and all its records.
// Does not   read the records when it opens: Verify() does, to find changed bits.
// Threads    const methods from any.
// Errors     kCorrupt: no record file, or not as it was written; kInvalid: made by a newer
//            version, or with fields that make no sense; those of base/mapped_file.h. All name the
//            file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/files.h"
#include "base/mapped_file.h"
#include "base/result.h"
#include "ckpt/dtype.h"
#include "trainer/data_file.h"

namespace keel {

struct RecordField {
  std::string name;
  Dtype dtype = Dtype::kU8;
  std::vector<int64_t> shape = {};
  bool operator==(const RecordField&) const = default;

  uint64_t bytes() const;
};

struct RecordHeader {
  std::vector<RecordField> fields;
  uint64_t count = 0;
  Digest content = {};
  bool operator==(const RecordHeader&) const = default;

  uint64_t record_bytes() const;
  // Where field `index` begins in a record.
  uint64_t FieldOffset(size_t index) const;
  std::optional<size_t> FieldNamed(std::string_view name) const;
};

// kInvalid: no fields or too many, names that are empty, long or taken, sizes that overflow.
Status CheckRecordFields(const std::vector<RecordField>& fields);

std::string EncodeRecordHeader(const RecordHeader& header);
// `file`: all of the file, or its beginning; `file_bytes` says how long the file is.
Result<RecordHeader> ParseRecordHeader(std::span<const std::byte> file, uint64_t file_bytes);

class RecordFile {
 public:
  static Result<std::unique_ptr<RecordFile>> Open(const std::string& path);

  const RecordHeader& header() const { return header_; }
  uint64_t size() const { return header_.count; }
  const std::string& path() const { return file_->path(); }
  // The bytes of one field of one record, valid as long as this lives. kInvalid: no such record.
  Result<std::span<const std::byte>> Field(uint64_t record, size_t field) const;
  Status Verify() const;

 private:
  RecordFile(std::unique_ptr<MappedFile> file, RecordHeader header);

  const std::unique_ptr<MappedFile> file_;
  const RecordHeader header_;
  const std::span<const std::byte> content_;
};

class RecordFileWriter {
 public:
  static Result<std::unique_ptr<RecordFileWriter>> Open(Files& files, const std::string& path,
                                                        std::vector<RecordField> fields);
  // Appends all fields of one record, in order. kInvalid: the bytes are not as long as a record.
  Status Append(std::span<const std::byte> record);
  Result<RecordHeader> Finish();

 private:
  RecordFileWriter(std::unique_ptr<DataFileWriter> writer, RecordHeader header)
      : writer_(std::move(writer)), header_(std::move(header)) {}

  const std::unique_ptr<DataFileWriter> writer_;
  RecordHeader header_;
};

}  // namespace keel
