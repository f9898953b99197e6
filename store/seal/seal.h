// Seal: a secret that some share, and what shows of words that one of those has said them.
// Promises   what Of() gives cannot be made by whoever lacks the secret, nor for other words, and
//            parts cannot be moved from one to the next: {"ab", "c"} and {"a", "bc"} differ.
// Does not   hide anything, or know whether words are said again: who must know puts a number or a
//            nonce among them.
// Threads    a plain value.
// Errors     none: HmacReady() (base/hmac.h) is to be asked before.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace keel {

class Seal {
 public:
  static constexpr size_t kBytes = 16;

  // `secret`: of any length.
  explicit Seal(std::string secret) : secret_(std::move(secret)) {}

  // Another secret, that shows nothing of this one, and that all who share this one can make.
  Seal For(std::initializer_list<std::string_view> purpose) const;
  std::string Of(std::initializer_list<std::string_view> words) const;
  bool Fits(std::string_view seal, std::initializer_list<std::string_view> words) const;

  // 32 hexadecimal digits that nobody can foresee.
  static std::string Nonce();

  // To be handed on to who is to share it.
  const std::string& secret() const { return secret_; }

 private:
  std::string secret_;
};

}  // namespace keel
