// SealedPast: what a process has seen of the sealed values of one store, by which it knows a value
// that was written before and is put back by a stranger.
// Promises   a value is believed if its seal fits, and its writer has written no later one that was
//            seen here, unless it is the very one that was seen last. Where a value is not
//            believed, the last one that was counts.
// Does not   know what was there before this process came: a value of an earlier moment of the same
//            store is believed then, until its writer writes again.
// Threads    any.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
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
  };
  struct Judged {
    Verdict verdict = Verdict::kAbsent;
    std::optional<std::string> value;   // what counts
    // The text of the last value that was believed, where this one is not.
    std::optional<std::string> instead = {};
    bool is_own = false;                // what counts was written by this process
  };

  explicit SealedPast(Seal seal) : seal_(std::move(seal)) {}

  const Seal& seal() const { return seal_; }
  // The name of a new connection of this process, by which it writes.
  std::string NewWriter();
  // `text`: what the store has under that key now.
  Judged Judge(const std::string& key, const std::optional<std::string>& text);
  // The text that the key is likely to have; nothing: nothing is known of it.
  std::optional<std::string> LastText(const std::string& key) const;
  // Whether to tell now that a value was not believed, and how often that has happened since it was
  // told last.
  std::optional<int64_t> Tell(TimePoint now);

 private:
  struct Seen {
    std::string text;                          // the last one that was believed
    SealedValue sealed;
    std::map<std::string, uint64_t> counts;    // the highest of each writer
  };

  const Seal seal_;
  mutable std::mutex mutex_;
  std::map<std::string, Seen> seen_;   // guarded by mutex_, as all below; by key
  std::set<std::string> own_;          // writers of this process
  Seldom told_{std::chrono::minutes(1)};
};

}  // namespace keel
