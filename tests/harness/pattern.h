// Pattern: what a test looks for in a line of output, a piece of text or a regular expression.
// Threads    a plain value; Matches() from any thread.
#pragma once

#include <regex>
#include <string>
#include <utility>

namespace keel {

class Pattern {
 public:
  // A piece of text, anywhere in the line.
  Pattern(const char* text) : text_(text) {}
  Pattern(std::string text) : text_(std::move(text)) {}
  // An ECMAScript expression that matches anywhere in the line; not for lines of many kilobytes, on
  // which std::regex overflows the stack.
  static Pattern Regex(const std::string& expression) {
    Pattern pattern(expression);
    pattern.expression_ = std::regex(expression);
    pattern.is_regex_ = true;
    return pattern;
  }

  bool Matches(const std::string& line) const {
    return is_regex_ ? std::regex_search(line, expression_)
                     : line.find(text_) != std::string::npos;
  }
  std::string Text() const { return is_regex_ ? "/" + text_ + "/" : "\"" + text_ + "\""; }

 private:
  std::string text_;
  std::regex expression_;
  bool is_regex_ = false;
};

}  // namespace keel
