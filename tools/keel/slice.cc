// Parsing a slice, and walking over it as an odometer does.
#include "tools/keel/slice.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/text.h"
#include "ckpt/layout.h"

namespace keel {
namespace {

Error Wrong(std::string why) { return {Code::kInvalid, std::move(why)}; }

std::string Dimension(size_t axis, int64_t size) {
  return "dimension " + std::to_string(axis) + ", which has " + std::to_string(size) +
         (size == 1 ? " element" : " elements");
}

// Parts between separators, with their blanks off; unlike SplitList() it keeps the empty ones.
std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.push_back(Trim(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Result<int64_t> WholeNumber(std::string_view text, size_t axis, int64_t size) {
  const Result<int64_t> number = ParseInteger(text);
  if (number.ok()) return number;
  return Wrong(Shown(text) + " for " + Dimension(axis, size) +
               ": a whole number or start:stop:step is expected");
}

// Missing: none.
Result<std::optional<int64_t>> End(std::string_view text, size_t axis, int64_t size) {
  if (text.empty()) return std::optional<int64_t>();
  KEEL_TRY_ASSIGN(const int64_t number, WholeNumber(text, axis, size));
  return std::optional<int64_t>(number);
}

Result<AxisPick> Index(std::string_view text, size_t axis, int64_t size) {
  KEEL_TRY_ASSIGN(const int64_t given, WholeNumber(text, axis, size));
  const int64_t index = given < 0 ? given + size : given;
  if (index >= 0 && index < size) return AxisPick{static_cast<uint64_t>(index), 1, 1, true};
  const std::string allowed = size == 0 ? "" : ": " + std::to_string(-size) + " to " +
                                                   std::to_string(size - 1) + " are";
  return Wrong("index " + std::to_string(given) + " is not in " + Dimension(axis, size) + allowed);
}

// Python's rules: a step back begins at the last element and ends before the first.
AxisPick Resolve(std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step,
                 int64_t size) {
  const bool back = step < 0;
  const int64_t least = back ? -1 : 0;
  const int64_t most = back ? size - 1 : size;
  const auto place = [&](std::optional<int64_t> end, int64_t otherwise) {
    if (!end.has_value()) return otherwise;
    return std::clamp(*end < 0 ? *end + size : *end, least, most);
  };
  const int64_t from = place(start, back ? most : least);
  const int64_t to = place(stop, back ? least : most);
  const int64_t span = back ? from - to : to - from;
  if (span <= 0) return {0, step, 0, false};
  const uint64_t stride = back ? uint64_t{0} - static_cast<uint64_t>(step) : step;
  return {static_cast<uint64_t>(from), step, (static_cast<uint64_t>(span) - 1) / stride + 1, false};
}

Result<AxisPick> ParseAxis(std::string_view text, size_t axis, int64_t size) {
  const std::vector<std::string_view> parts = Split(text, ':');
  if (parts.size() == 1) return Index(text, axis, size);
  if (parts.size() > 3) {
    return Wrong(Shown(text) + " for " + Dimension(axis, size) +
                 ": at most start:stop:step is expected");
  }
  KEEL_TRY_ASSIGN(const auto start, End(parts[0], axis, size));
  KEEL_TRY_ASSIGN(const auto stop, End(parts[1], axis, size));
  std::optional<int64_t> step;
  if (parts.size() == 3) {
    KEEL_TRY_ASSIGN(step, End(parts[2], axis, size));
  }
  if (step == 0) return Wrong(Shown(text) + " for " + Dimension(axis, size) + ": a step of 0");
  return Resolve(start, stop, step.value_or(1), size);
}

// One text for each dimension. "..." becomes as many ":" as are missing.
Result<std::vector<std::string_view>> Texts(std::string_view text, size_t dimensions) {
  text = Trim(text);
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    text = Trim(text.substr(1, text.size() - 2));
  }
  std::vector<std::string_view> texts;
  if (!text.empty()) texts = Split(text, ',');
  if (texts.size() > 1 && texts.back().empty()) texts.pop_back();  // "3," as in Python
  auto dots = std::find(texts.begin(), texts.end(), "...");
  if (dots == texts.end()) {
    dots = texts.insert(dots, "...");
  } else if (std::find(dots + 1, texts.end(), "...") != texts.end()) {
    return Wrong("'...' can stand only once");
  }
  const size_t named = texts.size() - 1;
  if (named > dimensions) {
    return Wrong(std::to_string(named) + " dimensions are named, the tensor has " +
                 std::to_string(dimensions));
  }
  texts.insert(texts.erase(dots), dimensions - named, ":");
  return texts;
}

}  // namespace

Result<Slice> Slice::Parse(std::string_view text, const std::vector<int64_t>& shape) {
  const auto failed = [&](const Error& error) {
    return error.Doing("slice " + Shown(text) + " of shape " + ShapeText(shape));
  };
  const auto texts = Texts(text, shape.size());
  if (!texts.ok()) return failed(texts.error());
  Slice slice;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const auto pick = ParseAxis((*texts)[axis], axis, shape[axis]);
    if (!pick.ok()) return failed(pick.error());
    slice.picks_.push_back(*pick);
  }
  // Where a dimension is 0 the others may be as large as they like: nothing is picked then.
  const bool is_empty = std::count(shape.begin(), shape.end(), 0) > 0;
  slice.strides_.assign(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1 && !is_empty;) {
    slice.strides_[axis - 1] = slice.strides_[axis] * static_cast<uint64_t>(shape[axis]);
  }
  return slice;
}

std::vector<int64_t> Slice::shape() const {
  std::vector<int64_t> shape;
  for (const AxisPick& pick : picks_) {
    if (!pick.is_index) shape.push_back(static_cast<int64_t>(pick.count));
  }
  return shape;
}

uint64_t Slice::count() const {
  for (const AxisPick& pick : picks_) {
    if (pick.count == 0) return 0;
  }
  uint64_t count = 1;
  for (const AxisPick& pick : picks_) count *= pick.count;
  return count;
}

SliceRuns::SliceRuns(const Slice& slice)
    : slice_(slice),
      at_(slice.picks_.empty() ? 0 : slice.picks_.size() - 1),
      is_done_(slice.count() == 0) {}

bool SliceRuns::Next(ElementRun* run) {
  if (is_done_) return false;
  // Steps back wrap around on the way; what they come to does not.
  uint64_t first = 0;
  for (size_t axis = 0; axis < at_.size(); ++axis) {
    const AxisPick& pick = slice_.picks_[axis];
    first += (pick.first + at_[axis] * static_cast<uint64_t>(pick.step)) * slice_.strides_[axis];
  }
  if (slice_.picks_.empty()) {
    *run = {0, 1, 1};
  } else {
    const AxisPick& last = slice_.picks_.back();
    *run = {first + last.first, last.step, last.count};
  }
  is_done_ = true;
  for (size_t axis = at_.size(); axis-- > 0;) {
    if (++at_[axis] < slice_.picks_[axis].count) {
      is_done_ = false;
      break;
    }
    at_[axis] = 0;
  }
  return true;
}

}  // namespace keel
