// Buffering, and the temporary name of a file that is not finished.
#include "tools/keel/value_output.h"

#include "base/file_helpers.h"
#include "base/text.h"

namespace keel {
namespace {

constexpr size_t kEnough = 64 * 1024;
constexpr std::string_view kUnfinished = ".keel-tmp";

}  // namespace

Result<std::unique_ptr<ValueOutput>> ValueOutput::Open(const World& world,
                                                       const std::string& path) {
  std::unique_ptr<ValueOutput> output(new ValueOutput(world, path));
  if (path.empty()) return output;
  const Result<FileInfo> info = world.files.Stat(path);
  if (info.ok() && info->kind != FileKind::kFile) {
    return Error{Code::kInvalid, "output " + Shown(path) +
                                     " is there and no ordinary file: name another one, or leave "
                                     "--output away and redirect"};
  }
  KEEL_TRY_ASSIGN(output->file_, world.files.Open(output->Temporary(), {.write = true,
                                                                        .create = true,
                                                                        .truncate = true}));
  return output;
}

ValueOutput::~ValueOutput() {
  if (file_ == nullptr) return;
  file_.reset();
  (void)world_.files.Remove(Temporary());
}

std::string ValueOutput::Temporary() const { return path_ + std::string(kUnfinished); }

Status ValueOutput::Flush() { return buffer_.size() < kEnough ? Ok() : Write(); }

Status ValueOutput::Write() {
  if (buffer_.empty()) return Ok();
  KEEL_TRY(path_.empty() ? world_.print(buffer_) : file_->WriteAt(bytes_, BytesOf(buffer_)));
  bytes_ += buffer_.size();
  buffer_.clear();
  return Ok();
}

Status ValueOutput::Finish() {
  KEEL_TRY(Write());
  if (path_.empty()) return Ok();
  KEEL_TRY(file_->Sync());
  KEEL_TRY(world_.files.Rename(Temporary(), path_));
  file_.reset();
  return world_.files.SyncDir(ParentDir(path_));
}

}  // namespace keel
