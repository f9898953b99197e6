// The part that headers share. Content goes in pieces through one buffer to a temporary file; the
// header and the name come last.
#include "trainer/data_file.h"

#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/file_helpers.h"

namespace keel {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

}  // namespace

Digest HeaderDigest(const DataFormat& format, std::span<const std::byte> header) {
  Digester digester;
  digester.Update(header.first(format.fixed_bytes - sizeof(Digest)));
  digester.Update(header.subspan(format.fixed_bytes));
  return digester.Current();
}

void PutBeginning(const DataFormat& format, WireWriter& writer) {
  writer.PutBytes(BytesOf(format.magic));
  writer.Put(format.version);
}

Result<WireReader> ReadBeginning(const DataFormat& format, std::span<const std::byte> file) {
  const size_t magic_bytes = format.magic.size();
  if (file.size() < magic_bytes ||
      std::memcmp(file.data(), format.magic.data(), magic_bytes) != 0) {
    return Error{Code::kCorrupt, "this is not a " + std::string(format.name) + " file; `" +
                                     std::string(format.maker) + "` makes them"};
  }
  if (file.size() < format.fixed_bytes) return DamagedData("it ends within its header");
  WireReader reader(file.first(format.fixed_bytes));
  reader.Take(magic_bytes);
  if (const auto version = reader.Get<uint32_t>(); version != format.version) {
    return Error{Code::kInvalid,
                 "its format is version " + std::to_string(version) +
                     "; this program reads version " + std::to_string(format.version)};
  }
  return reader;
}

Error DamagedData(const std::string& what) { return {Code::kCorrupt, "damaged: " + what}; }

Status VerifyContent(std::span<const std::byte> content, const Digest& told,
                     const std::string& what, const std::string& path) {
  if (DigestOf(content) == told) return Ok();
  return DamagedData("its " + what + " have changed; make or copy it again").Doing(path);
}

Result<std::unique_ptr<DataFileWriter>> DataFileWriter::Open(Files& files, const std::string& path,
                                                             uint64_t header_bytes) {
  std::unique_ptr<DataFileWriter> writer(new DataFileWriter(header_bytes));
  auto output = OutputFile::Open(files, {.path = path, .id = NewOutputId()});
  if (!output.ok()) {
    Error error = output.error();
    if (error.code == Code::kExists) error.message += "; remove it or choose another name";
    return error;
  }
  writer->output_ = std::move(*output);
  return writer;
}

Status DataFileWriter::Append(std::span<const std::byte> content) {
  digester_.Update(content);
  buffer_.insert(buffer_.end(), content.begin(), content.end());
  return buffer_.size() < kBufferBytes ? Ok() : Flush();
}

Status DataFileWriter::Flush() {
  KEEL_TRY(output_->file().WriteAt(DataOffset(header_bytes_) + written_, buffer_));
  written_ += buffer_.size();
  buffer_.clear();
  return Ok();
}

Status DataFileWriter::Finish(std::span<const std::byte> header) {
  KEEL_CHECK(header.size() == header_bytes_, header.size() << " != " << header_bytes_);
  KEEL_TRY(Flush());
  KEEL_TRY(output_->file().WriteAt(0, header));
  // A file without content still has the gap behind its header.
  KEEL_TRY(output_->file().Truncate(DataOffset(header_bytes_) + written_));
  return output_->Commit();
}

}  // namespace keel
