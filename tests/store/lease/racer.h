// Racer: one of several who claim term after term of one lease, as fast as they can.
// Promises   each claim that it reads is whole, or Run() says which was not.
// Threads    one.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "store/lease/lease.h"

namespace keel {

class Racer {
 public:
  Racer(Lease& lease, std::string name) : lease_(lease), name_(std::move(name)) {}

  // Until somebody has claimed `last`.
  Status Run(int64_t last) {
    for (;;) {
      KEEL_TRY_ASSIGN(const LeaseSight sight, lease_.Look());
      KEEL_TRY(CheckWhole(sight));
      if (sight.term >= last) return Ok();
      const auto claimed = lease_.Claim(sight.term + 1, TextOf(sight.term + 1, name_));
      if (claimed.ok()) {
        won_.push_back(sight.term + 1);
        const Status beaten = lease_.Beat();
        if (!beaten.ok() && beaten.error().code != Code::kStaleEpoch) return beaten;
      } else if (claimed.error().code != Code::kExists &&
                 claimed.error().code != Code::kStaleEpoch) {
        return claimed.error();
      }
    }
  }

  const std::vector<int64_t>& won() const { return won_; }

  // Long enough for a half to be seen.
  static std::string TextOf(int64_t term, const std::string& name) {
    return std::to_string(term) + " " + name + std::string(2000, '.') + "end";
  }

 private:
  static Status CheckWhole(const LeaseSight& sight) {
    if (sight.term == 0) return Ok();
    const bool is_whole = sight.damage.empty() && sight.text.ends_with(".end") &&
                          sight.text.starts_with(std::to_string(sight.term) + " ");
    if (is_whole) return Ok();
    return Error{Code::kCorrupt, "term " + std::to_string(sight.term) + " says '" + sight.text +
                                     "', damage: " + sight.damage};
  }

  Lease& lease_;
  const std::string name_;
  std::vector<int64_t> won_;
};

// Empty where no term up to `last` was won twice, and most of them once; else what is wrong. One
// that is followed at once by the next is won by nobody.
inline std::string WhyNotOneWinnerEach(std::vector<int64_t> won, int64_t last) {
  std::sort(won.begin(), won.end());
  const auto twice = std::adjacent_find(won.begin(), won.end());
  if (twice != won.end()) return "term " + std::to_string(*twice) + " was won twice";
  if (static_cast<int64_t>(won.size()) > last / 2) return "";
  return std::to_string(won.size()) + " of " + std::to_string(last) + " terms were won";
}

}  // namespace keel
