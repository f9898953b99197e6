// regcomp() and not std::regex: that one recurses once a character, and overflows the stack on a
// long line.
#include "tests/harness/pattern.h"

#include <regex.h>

#include "base/check.h"

namespace keel {

struct Pattern::Compiled {
  explicit Compiled(const std::string& text) {
    const int failed = regcomp(&expression, text.c_str(), REG_EXTENDED | REG_NOSUB);
    KEEL_CHECK(failed == 0, "this is no regular expression: " << text);
  }
  ~Compiled() { regfree(&expression); }
  Compiled(const Compiled&) = delete;

  regex_t expression;
};

Pattern Pattern::Regex(const std::string& expression) {
  Pattern pattern(expression);
  pattern.compiled_ = std::make_shared<const Compiled>(expression);
  return pattern;
}

bool Pattern::Matches(const std::string& line) const {
  if (compiled_ == nullptr) return line.find(text_) != std::string::npos;
  return regexec(&compiled_->expression, line.c_str(), 0, nullptr, 0) == 0;
}

std::string Pattern::Text() const {
  return compiled_ == nullptr ? "\"" + text_ + "\"" : "/" + text_ + "/";
}

}  // namespace keel
