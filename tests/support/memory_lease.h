// MemoryLease: a lease in memory, behind a way that may fail. Several of them share one place.
// Promises   store/lease/lease.h. What becomes of each call is said by `before`.
// Threads    one.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "store/lease/lease.h"

namespace keel {

class MemoryLeasePlace {
 public:
  struct Term {
    std::string claimant, text;
    std::string beat;
    bool released = false;
  };
  std::map<int64_t, Term> terms;

  int64_t Highest() const { return terms.empty() ? 0 : terms.rbegin()->first; }
  LeaseSight Sight() const {
    LeaseSight sight;
    sight.term = Highest();
    if (sight.term == 0) return sight;
    const Term& newest = terms.at(sight.term);
    sight.run = "run";
    sight.text = newest.text;
    sight.beat = newest.beat;
    sight.released = newest.released;
    return sight;
  }
};

class MemoryLease : public Lease {
 public:
  enum class Way {
    kThrough,
    kAway,    // the place cannot be reached
    kLost,    // the call takes effect, and its answer is lost
    kOld,     // a look sees what this one saw last
    kUnread,  // a look sees that a term is claimed, and cannot read what the claim says
  };
  MemoryLease(MemoryLeasePlace& place, std::string claimant, std::function<Way()> before)
      : place_(place), claimant_(std::move(claimant)), before_(std::move(before)) {}

  Status Claim(int64_t term, const std::string& text) override {
    const Way way = before_();
    if (way == Way::kAway) return Away();
    const Status put = Put(term, text);
    if (way == Way::kLost) return Away();
    return put;
  }
  Status Beat() override {
    const Way way = before_();
    if (way == Way::kAway) return Away();
    const Status status = Raise(false);
    if (way == Way::kLost) return Away();
    return status;
  }
  Result<LeaseSight> Look() override {
    const Way way = before_();
    if (way == Way::kAway || way == Way::kLost) return Away();
    if (way != Way::kOld) last_ = place_.Sight();
    if (way == Way::kUnread) {
      last_.run = last_.text = "";
      last_.damage = "input/output error";
    }
    return last_;
  }
  Status Release() override {
    if (before_() == Way::kAway) return Away();
    return Raise(true);
  }

 private:
  static Error Away() { return {Code::kIo, "the lease's place is away"}; }

  Status Put(int64_t term, const std::string& text) {
    const int64_t highest = place_.Highest();
    if (highest > term) return Error{Code::kStaleEpoch, "a higher term is claimed"};
    const auto [at, is_new] = place_.terms.try_emplace(term);
    if (is_new) at->second = {claimant_, text, "", false};
    if (at->second.claimant != claimant_) return Error{Code::kExists, "the term is another's"};
    term_ = term;
    return Ok();
  }
  Status Raise(bool released) {
    if (place_.Highest() > term_) return Error{Code::kStaleEpoch, "a higher term is claimed"};
    MemoryLeasePlace::Term& own = place_.terms.at(term_);
    if (own.claimant != claimant_) return Error{Code::kExists, "the term is another's"};
    own.beat = claimant_ + " " + std::to_string(++beats_);
    own.released = released;
    return Ok();
  }

  MemoryLeasePlace& place_;
  const std::string claimant_;
  const std::function<Way()> before_;
  LeaseSight last_;
  int64_t term_ = 0;
  int64_t beats_ = 0;
};

}  // namespace keel
