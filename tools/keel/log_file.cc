// Reads pieces, and looks for line feeds in them.
#include "tools/keel/log_file.h"

#include <utility>

namespace keel {
namespace {

constexpr size_t kPieceBytes = 16384;

// Of a line that is overwritten, what is no longer seen: all before its last carriage return that
// has something behind it. False: nothing is overwritten.
bool DropOverwritten(std::string* line) {
  const size_t last = line->find_last_not_of('\r');
  const size_t back = last == std::string::npos ? last : line->rfind('\r', last);
  if (back == std::string::npos) return false;
  line->erase(0, back + 1);
  return true;
}

}  // namespace

Result<bool> LogFile::Fill() {
  if (!file_) {
    KEEL_TRY_ASSIGN(file_, files_.Open(path_, {.sequential = true}));
  }
  const size_t before = held_.size();
  held_.resize(before + kPieceBytes);
  const auto got = file_->ReadAt(
      offset_, std::as_writable_bytes(std::span<char>(held_.data() + before, kPieceBytes)));
  held_.resize(before + (got.ok() ? *got : 0));
  if (!got.ok()) {
    file_.reset();   // it may be of no use any more (ESTALE): the next try opens it anew
    return got.error();
  }
  offset_ += *got;
  return *got > 0;
}

std::optional<LogFileLine> LogFile::Take() {
  const size_t end = held_.find('\n', searched_);
  if (end == std::string::npos) {
    if (held_.size() > kLogLineBytes && DropOverwritten(&held_)) skipped_ = 0;
    if (held_.size() > kLogLineBytes) {
      skipped_ += held_.size() - kLogLineBytes;
      held_.resize(kLogLineBytes);
    }
    searched_ = held_.size();
    return std::nullopt;
  }
  LogFileLine line{held_.substr(0, end), skipped_};
  if (line.text.size() > kLogLineBytes && DropOverwritten(&line.text)) line.cut_bytes = 0;
  if (line.text.size() > kLogLineBytes) {
    line.cut_bytes += line.text.size() - kLogLineBytes;
    line.text.resize(kLogLineBytes);
  }
  held_.erase(0, end + 1);
  searched_ = 0;
  skipped_ = 0;
  return line;
}

LogFileLine LogFile::TakeRest() {
  LogFileLine line{std::exchange(held_, {}), std::exchange(skipped_, 0), true};
  searched_ = 0;
  return line;
}

Result<std::optional<LogFileLine>> LogFile::Next(bool with_torn) {
  if (std::exchange(is_cut_off_, false) && !held_.empty()) return std::optional(TakeRest());
  for (;;) {
    if (auto line = Take()) return line;
    KEEL_TRY_ASSIGN(const bool has_more, Fill());
    if (has_more) continue;
    if (with_torn && !held_.empty()) return std::optional(TakeRest());
    return std::optional<LogFileLine>();
  }
}

// Files have no numbers here. One that only grows has at least its earlier size, and at most its
// later one, whatever the name is said to have in between.
Status LogFile::Renew() {
  if (!file_) return Ok();
  KEEL_TRY_ASSIGN(const uint64_t earlier, file_->Size());
  const auto named = files_.Stat(path_);
  if (!named.ok()) return named.error().code == Code::kNotFound ? Ok() : Status(named.error());
  KEEL_TRY_ASSIGN(const uint64_t later, file_->Size());
  const bool is_same = earlier <= named->bytes && named->bytes <= later && later >= offset_;
  if (is_same || later > offset_) return Ok();   // what is left of the old one is read before
  file_.reset();
  offset_ = 0;
  is_cut_off_ = true;
  return Ok();
}

}  // namespace keel
