// SealedPast: what a process has seen of the sealed values of one store, by which it knows a value
// that was written before and is put back by a stranger.
// Promises   a value is believed if its seal fits, and its writer has written no later one that was
//            seen here, unless it is the very one that was seen last. Where a value is not
//            believed, the last one that was counts.
//            What has not been asked for in the longest time is forgotten where it gets too much.
// Does not   know what was there before this process came: a value of an earlier moment of the same
//            store is believed then, until its writer writes again.
// Threads    any.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/seldom.h"
#include "store/seal/seal.h"
#include "store/seal/sealed_value.h"

namespace keel {

class SealedPast {
 public:
  enum class Verdict {
    kAbsent,     // the key is
    kBelieved,
    kUnsealed,   // its seal is none of this secret for this key
    kOld,        // its writer has written a later one
    kLate,       // another connection has seen another one since this was asked for: ask again
  };
  struct Judged {
    Verdict verdict = Verdict::kAbsent;
    std::optional<std::string> value;   // what counts
    // The text of the last value that was believed, where this one is not.
    std::optional<std::string> instead = {};
  };

  explicit SealedPast(Seal seal) : seal_(std::move(seal)) {}

  const Seal& seal() const { return seal_; }
  // To be asked before each operation: connections judge in another order than they ask.
  uint64_t Moment() const;
  // `text`: what the store had under that key at some time after `since`; it is taken only if it is
  // believed.
  Judged Judge(const std::string& key, std::optional<std::string>&& text, uint64_t since);
  // The text that the key is likely to have; nothing: nothing is known of it.
  std::optional<std::string> LastText(const std::string& key) const;
  // Whether to tell now that a value was not believed, and how often that has happened since it was
  // told last.
  std::optional<int64_t> Tell(TimePoint now);

 private:
  struct Seen {
    std::string text;                          // the last one that was believed
    uint64_t taken = 0;                        // the moment when it was
    uint64_t asked = 0;                        // ... when the key was last judged
    std::map<std::string, uint64_t, std::less<>> counts;    // the highest of each writer
  };

  void Take(const std::string& key, const SealedValue& opened, std::string text);
  void ForgetLongestUnasked();

  const Seal seal_;
  mutable std::mutex mutex_;
  std::map<std::string, Seen> seen_;   // guarded by mutex_, as all below; by key
  uint64_t moment_ = 0;
  size_t bytes_ = 0;                   // of all texts
  Seldom told_{std::chrono::minutes(1)};
};

}  // namespace keel
