// TextTable: rows of cells in columns that are as wide as their widest cell.
// Promises   colours do not count as width; no blanks at the end of a line.
// Does not   cut cells; count wide or combining characters.
// Threads    one at a time.
#pragma once

#include <string>
#include <vector>

namespace keel {

// Whether a byte of UTF-8 begins a character. Each is one column wide.
inline bool BeginsCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

class TextTable {
 public:
  struct Cell {
    std::string text;
    std::string painted = {};  // shown in its place; empty: the text itself
  };

  // A column whose heading begins with '>' is set to the right.
  explicit TextTable(std::vector<std::string> headings);
  // One cell for each heading.
  void Add(std::vector<Cell> row);
  void Add(const std::vector<std::string>& row);
  std::string Text() const;

 private:
  std::vector<bool> is_right_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace keel
