// Pattern: what a test looks for in a line of output, a piece of text or a regular expression.
// Threads    a plain value; Matches() from any thread.
#pragma once

#include <memory>
#include <string>
#include <utility>

namespace keel {

class Pattern {
 public:
  // A piece of text, anywhere in the line.
  Pattern(const char* text) : text_(text) {}
  Pattern(std::string text) : text_(std::move(text)) {}
  // A POSIX extended expression (as in grep -E) that matches anywhere in the line. One that cannot
  // be read is a bug of the test.
  static Pattern Regex(const std::string& expression);

  bool Matches(const std::string& line) const;
  // "text" or /expression/
  std::string Text() const;

 private:
  struct Compiled;

  std::string text_;
  std::shared_ptr<const Compiled> compiled_;   // null: plain text
};

}  // namespace keel
