// Buffering, and the choice between stdout, another stream and a file.
#include "tools/keel/value_output.h"

#include "base/file_helpers.h"
#include "tools/keel/output_stream.h"

namespace keel {
namespace {

constexpr size_t kEnough = 64 * 1024;

}  // namespace

Result<std::unique_ptr<ValueOutput>> ValueOutput::Open(const World& world,
                                                       const std::string& path) {
  std::unique_ptr<ValueOutput> output(new ValueOutput(world));
  if (path.empty()) return output;
  KEEL_TRY_ASSIGN(output->stream_, OpenOutputStream(world.files, path));
  if (output->stream_ != nullptr) return output;
  RemoveOutputLeftovers(world.files, path);
  KEEL_TRY_ASSIGN(output->file_, OutputFile::Open(world.files, {.path = path,
                                                                .id = NewOutputId(),
                                                                .replace = true}));
  return output;
}

Status ValueOutput::Flush() { return buffer_.size() < kEnough ? Ok() : Write(); }

Status ValueOutput::Write() {
  if (buffer_.empty()) return Ok();
  if (file_ != nullptr) {
    KEEL_TRY(file_->file().WriteAt(bytes_, BytesOf(buffer_)));
  } else {
    KEEL_TRY(stream_ != nullptr ? stream_->WriteAt(bytes_, BytesOf(buffer_))
                                : world_.print(buffer_));
  }
  bytes_ += buffer_.size();
  buffer_.clear();
  return Ok();
}

Status ValueOutput::Finish() {
  KEEL_TRY(Write());
  return file_ == nullptr ? Ok() : file_->Commit();
}

}  // namespace keel
