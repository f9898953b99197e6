// ErrorList: several problems reported as one Error, so that a user sees them all at once.
// Promises   lists at most kListedMax and counts the rest; the code is that of the first.
// Threads    one at a time.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace keel {

class ErrorList {
 public:
  static constexpr size_t kListedMax = 20;

  void Add(Error error) {
    if (++count_ <= kListedMax) errors_.push_back(std::move(error));
  }
  void Add(Code code, std::string message) { Add(Error{code, std::move(message)}); }
  bool empty() const { return count_ == 0; }
  size_t count() const { return count_; }

  // Ok when empty; one problem as it is; several as "<what>: 3 problems:" with a line each.
  Status ToStatus(const std::string& what) const {
    if (empty()) return Ok();
    if (count_ == 1) return errors_[0].Doing(what);
    std::string message = what + ": " + std::to_string(count_) + " problems:";
    for (const Error& error : errors_) message += "\n  " + error.message;
    if (count_ > errors_.size()) {
      message += "\n  and " + std::to_string(count_ - errors_.size()) + " more";
    }
    return Error{errors_[0].code, std::move(message)};
  }

 private:
  size_t count_ = 0;
  std::vector<Error> errors_;
};

}  // namespace keel
