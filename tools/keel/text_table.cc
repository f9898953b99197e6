// Widths first, then lines.
#include "tools/keel/text_table.h"

#include <algorithm>

#include "base/check.h"

namespace keel {

namespace {

// In characters.
size_t WidthOf(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), BeginsCharacter));
}

}  // namespace

TextTable::TextTable(std::vector<std::string> headings) {
  std::vector<Cell> row;
  for (std::string& heading : headings) {
    is_right_.push_back(heading.starts_with('>'));
    if (is_right_.back()) heading.erase(0, 1);
    row.push_back({heading});
  }
  rows_.push_back(std::move(row));
}

void TextTable::Add(std::vector<Cell> row) {
  KEEL_CHECK(row.size() == is_right_.size(), row.size() << " of " << is_right_.size());
  rows_.push_back(std::move(row));
}

void TextTable::Add(const std::vector<std::string>& row) {
  std::vector<Cell> cells;
  for (const std::string& text : row) cells.push_back({text});
  Add(std::move(cells));
}

std::string TextTable::Text() const {
  std::vector<size_t> widths(is_right_.size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], WidthOf(row[i].text));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - WidthOf(row[i].text), ' ');
      const std::string& shown = row[i].painted.empty() ? row[i].text : row[i].painted;
      line += (i == 0 ? "" : "  ") + (is_right_[i] ? blanks + shown : shown + blanks);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace keel
