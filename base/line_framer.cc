// Cuts at line feeds; what is behind the last one waits for the rest.
#include "base/line_framer.h"

#include <utility>

namespace keel {

Status LineFramer::Feed(std::string_view bytes) {
  while (!broken_ && !bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    broken_ = partial_.size() + piece.size() > bytes_max_;
    if (broken_) break;
    partial_.append(piece);
    if (end == std::string_view::npos) break;
    lines_.push_back(std::exchange(partial_, {}));
    bytes.remove_prefix(end + 1);
  }
  if (!broken_) return Ok();
  partial_.clear();
  return Error{Code::kCorrupt, "a line of more than " + std::to_string(bytes_max_) + " bytes"};
}

std::optional<std::string> LineFramer::Next() {
  if (lines_.empty()) return std::nullopt;
  std::string line = std::move(lines_.front());
  lines_.pop_front();
  return line;
}

}  // namespace keel
