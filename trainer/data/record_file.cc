// Writes and reads the bytes of a record file.
#include "trainer/record_file.h"

#include <algorithm>

#include "base/file_helpers.h"
#include "base/text.h"
#include "ckpt/wire.h"

namespace keel {
namespace {

constexpr DataFormat kFormat{.magic = {"KEELREC", 8},
                             .fixed_bytes = 64,
                             .name = "record",
                             .maker = "keel records"};
constexpr uint64_t kHeaderMax = 64 << 10;
constexpr size_t kFieldsMax = 64;
constexpr size_t kNameMax = 255;
constexpr size_t kRankMax = 8;
constexpr uint64_t kRecordMax = uint64_t{1} << 40;

void AppendText(std::string_view text, std::string* to) {
  to->push_back(static_cast<char>(text.size()));
  *to += text;
}

std::string FieldTable(const std::vector<RecordField>& fields) {
  std::string table;
  for (const RecordField& field : fields) {
    AppendText(field.name, &table);
    AppendText(DtypeName(field.dtype), &table);
    table.push_back(static_cast<char>(field.shape.size()));
    for (const int64_t size : field.shape) {
      table.append(reinterpret_cast<const char*>(&size), sizeof size);
    }
  }
  return table;
}

// Reads a field table without trusting it.
class TableReader {
 public:
  explicit TableReader(std::span<const std::byte> table) : reader_(table) {}
  bool done() const { return reader_.left() == 0; }

  Result<RecordField> Next() {
    RecordField field;
    KEEL_TRY_ASSIGN(field.name, Text());
    KEEL_TRY_ASSIGN(const std::string dtype, Text());
    KEEL_TRY_ASSIGN(field.dtype, ParseDtype(dtype));
    KEEL_TRY_ASSIGN(const uint8_t rank, Byte());
    if (reader_.left() < rank * sizeof(int64_t)) return Short();
    for (int i = 0; i < rank; ++i) field.shape.push_back(reader_.Get<int64_t>());
    return field;
  }

 private:
  static Error Short() { return DamagedData("its field table ends early"); }

  Result<uint8_t> Byte() {
    if (reader_.left() < 1) return Short();
    return reader_.Get<uint8_t>();
  }
  Result<std::string> Text() {
    KEEL_TRY_ASSIGN(const uint8_t length, Byte());
    if (reader_.left() < length) return Short();
    const auto bytes = reader_.Take(length);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  WireReader reader_;
};

Result<std::vector<RecordField>> ParseTable(std::span<const std::byte> table, uint32_t count) {
  TableReader reader(table);
  std::vector<RecordField> fields;
  for (uint32_t i = 0; i < count; ++i) {
    KEEL_TRY_ASSIGN(RecordField field, reader.Next());
    fields.push_back(std::move(field));
  }
  if (!reader.done()) return DamagedData("its field table has more than its fields");
  if (const Status sense = CheckRecordFields(fields); !sense.ok()) {
    return DamagedData(sense.error().message);
  }
  return fields;
}

Status CheckField(const RecordField& field) {
  const std::string name = "field " + Shown(field.name);
  if (field.name.empty() || field.name.size() > kNameMax) {
    return Error{Code::kInvalid, name + ": a name has 1 to " + std::to_string(kNameMax) +
                                     " bytes"};
  }
  if (field.shape.size() > kRankMax) {
    return Error{Code::kInvalid, name + " has " + std::to_string(field.shape.size()) +
                                     " dimensions; at most 8 are possible"};
  }
  uint64_t bytes = DtypeBytes(field.dtype);
  for (const int64_t size : field.shape) {
    if (size < 1 || static_cast<uint64_t>(size) > kRecordMax / bytes) {
      return Error{Code::kInvalid, name + " has a dimension of " + std::to_string(size) +
                                       ", which is none or too much"};
    }
    bytes *= static_cast<uint64_t>(size);
  }
  return Ok();
}

uint64_t HeaderBytesOf(const std::vector<RecordField>& fields) {
  return kFormat.fixed_bytes + FieldTable(fields).size();
}

}  // namespace

uint64_t RecordField::bytes() const {
  uint64_t bytes = DtypeBytes(dtype);
  for (const int64_t size : shape) bytes *= static_cast<uint64_t>(size);
  return bytes;
}

uint64_t RecordHeader::record_bytes() const { return FieldOffset(fields.size()); }

uint64_t RecordHeader::FieldOffset(size_t index) const {
  uint64_t offset = 0;
  for (size_t i = 0; i < index; ++i) offset += fields[i].bytes();
  return offset;
}

std::optional<size_t> RecordHeader::FieldNamed(std::string_view name) const {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const RecordField& field) { return field.name == name; });
  if (found == fields.end()) return std::nullopt;
  return static_cast<size_t>(found - fields.begin());
}

Status CheckRecordFields(const std::vector<RecordField>& fields) {
  if (fields.empty() || fields.size() > kFieldsMax) {
    return Error{Code::kInvalid, "a record has 1 to " + std::to_string(kFieldsMax) +
                                     " fields, not " + std::to_string(fields.size())};
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    KEEL_TRY(CheckField(fields[i]));
    for (size_t j = 0; j < i; ++j) {
      if (fields[j].name != fields[i].name) continue;
      return Error{Code::kInvalid, "two fields have the name " + Shown(fields[i].name)};
    }
  }
  return Ok();
}

std::string EncodeRecordHeader(const RecordHeader& header) {
  const std::string table = FieldTable(header.fields);
  std::string bytes(kFormat.fixed_bytes + table.size(), '\0');
  const std::span<std::byte> all = std::as_writable_bytes(std::span(bytes));
  WireWriter writer(all);
  PutBeginning(kFormat, writer);
  writer.Put(static_cast<uint32_t>(header.fields.size()));
  writer.Put(header.count);
  writer.Put(static_cast<uint64_t>(bytes.size()));
  writer.Put(header.content);
  WireWriter(all.subspan(kFormat.fixed_bytes)).PutBytes(BytesOf(table));
  writer.Put(HeaderDigest(kFormat, all));
  return bytes;
}

Result<RecordHeader> ParseRecordHeader(std::span<const std::byte> file, uint64_t file_bytes) {
  KEEL_TRY_ASSIGN(WireReader reader, ReadBeginning(kFormat, file));
  RecordHeader header;
  const auto fields = reader.Get<uint32_t>();
  header.count = reader.Get<uint64_t>();
  const auto header_bytes = reader.Get<uint64_t>();
  header.content = reader.GetDigest();
  if (header_bytes < kFormat.fixed_bytes ||
      header_bytes > std::min<uint64_t>(kHeaderMax, file.size())) {
    return DamagedData("a header of " + std::to_string(header_bytes) + " bytes");
  }
  const std::span<const std::byte> whole = file.first(header_bytes);
  if (reader.GetDigest() != HeaderDigest(kFormat, whole)) {
    return DamagedData("its header has changed");
  }
  KEEL_TRY_ASSIGN(header.fields, ParseTable(whole.subspan(kFormat.fixed_bytes), fields));
  const uint64_t begin = DataOffset(header_bytes);
  const uint64_t record = header.record_bytes();
  if (file_bytes < begin || header.count != (file_bytes - begin) / record ||
      (file_bytes - begin) % record != 0) {
    return DamagedData(std::to_string(header.count) + " records of " + std::to_string(record) +
                   " bytes in a file of " + std::to_string(file_bytes) +
                   "; was it cut short or copied in part?");
  }
  return header;
}

RecordFile::RecordFile(std::unique_ptr<MappedFile> file, RecordHeader header)
    : file_(std::move(file)),
      header_(std::move(header)),
      content_(file_->bytes().subspan(DataOffset(HeaderBytesOf(header_.fields)))) {}

Result<std::unique_ptr<RecordFile>> RecordFile::Open(const std::string& path) {
  KEEL_TRY_ASSIGN(std::unique_ptr<MappedFile> file, MappedFile::Open(path));
  Result<RecordHeader> header = ParseRecordHeader(file->bytes(), file->bytes().size());
  if (!header.ok()) return header.error().Doing(path);
  return std::unique_ptr<RecordFile>(new RecordFile(std::move(file), *std::move(header)));
}

Result<std::span<const std::byte>> RecordFile::Field(uint64_t record, size_t field) const {
  KEEL_CHECK(field < header_.fields.size(), "field " << field << " of " << header_.fields.size());
  if (record >= header_.count) {
    return Error{Code::kInvalid, path() + ": record " + std::to_string(record) + " of " +
                                     std::to_string(header_.count)};
  }
  return content_.subspan(record * header_.record_bytes() + header_.FieldOffset(field),
                          header_.fields[field].bytes());
}

Status RecordFile::Verify() const {
  return VerifyContent(content_, header_.content, "records", path());
}

Result<std::unique_ptr<RecordFileWriter>> RecordFileWriter::Open(Files& files,
                                                                 const std::string& path,
                                                                 std::vector<RecordField> fields) {
  const Status sense = CheckRecordFields(fields);
  if (!sense.ok()) return sense.error().Doing(path);
  const uint64_t header_bytes = HeaderBytesOf(fields);
  if (header_bytes > kHeaderMax) {
    return Error{Code::kInvalid, path + ": the fields' names and shapes take " +
                                     std::to_string(header_bytes) + " bytes, more than 64 KiB"};
  }
  KEEL_TRY_ASSIGN(auto writer, DataFileWriter::Open(files, path, header_bytes));
  return std::unique_ptr<RecordFileWriter>(
      new RecordFileWriter(std::move(writer), {.fields = std::move(fields)}));
}

Status RecordFileWriter::Append(std::span<const std::byte> record) {
  if (record.size() != header_.record_bytes()) {
    return Error{Code::kInvalid, "record " + std::to_string(header_.count) + " has " +
                                     std::to_string(record.size()) + " bytes, not " +
                                     std::to_string(header_.record_bytes())};
  }
  ++header_.count;
  return writer_->Append(record);
}

Result<RecordHeader> RecordFileWriter::Finish() {
  header_.content = writer_->content_digest();
  KEEL_TRY(writer_->Finish(BytesOf(EncodeRecordHeader(header_))));
  return header_;
}

}  // namespace keel
