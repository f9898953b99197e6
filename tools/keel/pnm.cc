// A header of words and comments, one blank, then the values of each pixel side by side.
#include "tools/keel/pnm.h"

#include "base/text.h"

namespace keel {
namespace {

constexpr int64_t kSideMax = 1 << 20;

Error NoPicture(const std::string& why) {
  return {Code::kInvalid, "no picture that this program reads (P5 or P6, 8 bits): " + why};
}

bool IsBlank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// Cuts the next word off, with the blanks and comments before it.
std::string_view NextWord(std::string_view* left) {
  while (!left->empty() && (IsBlank(left->front()) || left->front() == '#')) {
    const bool comment = left->front() == '#';
    const size_t end = comment ? left->find('\n') : 0;
    left->remove_prefix(end == left->npos ? left->size() : end + 1);
  }
  size_t size = 0;
  while (size < left->size() && !IsBlank((*left)[size])) ++size;
  const std::string_view word = left->substr(0, size);
  left->remove_prefix(size);
  return word;
}

Result<int64_t> NextNumber(std::string_view* left, const char* name, int64_t most) {
  const std::string_view word = NextWord(left);
  const Result<int64_t> number = ParseInteger(word);
  if (!number.ok() || *number < 1 || *number > most) {
    return NoPicture("its " + std::string(name) + " is " + Shown(word));
  }
  return number;
}

}  // namespace

Result<Picture> ParsePnm(std::string_view file) {
  std::string_view left = file;
  const std::string_view magic = NextWord(&left);
  if (magic != "P5" && magic != "P6") return NoPicture("it begins with " + Shown(magic));
  Picture picture;
  picture.channels = magic == "P6" ? 3 : 1;
  KEEL_TRY_ASSIGN(picture.width, NextNumber(&left, "width", kSideMax));
  KEEL_TRY_ASSIGN(picture.height, NextNumber(&left, "height", kSideMax));
  // Others would have to be scaled: a byte of 255 is white to whoever reads the records.
  KEEL_TRY_ASSIGN(const int64_t largest, NextNumber(&left, "largest value", 255));
  if (largest != 255) {
    return NoPicture("its largest value is " + std::to_string(largest) + ", not 255");
  }
  if (!left.empty()) left.remove_prefix(1);   // the one blank
  const auto pixels = static_cast<size_t>(picture.width * picture.height);
  const auto channels = static_cast<size_t>(picture.channels);
  if (left.size() < pixels * channels) {
    return NoPicture("it ends after " + std::to_string(left.size()) + " of " +
                     std::to_string(pixels * channels) + " values");
  }
  picture.pixels.resize(pixels * channels);
  for (size_t pixel = 0; pixel < pixels; ++pixel) {
    for (size_t channel = 0; channel < channels; ++channel) {
      picture.pixels[channel * pixels + pixel] = left[pixel * channels + channel];
    }
  }
  return picture;
}

}  // namespace keel
