// Paint: colours, where there is a terminal that shows them.
// Threads    a plain value.
#pragma once

#include <string>
#include <string_view>

namespace keel {

class Paint {
 public:
  explicit Paint(bool is_on = false) : is_on_(is_on) {}

  std::string Good(std::string_view text) const { return In("32", text); }
  std::string Bad(std::string_view text) const { return In("31", text); }
  std::string Warn(std::string_view text) const { return In("33", text); }
  std::string Heading(std::string_view text) const { return In("1", text); }

 private:
  std::string In(std::string_view code, std::string_view text) const {
    if (!is_on_ || text.empty()) return std::string(text);
    return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
  }

  bool is_on_;
};

}  // namespace keel
