// BoardKeys: the one place that knows what the keys of PROTOCOL.md section 2 are called.
// Promises   every key but four lies under keel/<job>/<generation>/. Two of those, `slots` and
//            `member/<slot>` are called so in every version of the protocol (section 9).
// Threads    a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "store/store.h"

namespace keel {

// What the coordinator puts into the keys that have no content yet: a store answers one question
// about many keys at once only where all of them are there.
inline constexpr const char* kNothingYet = "-";

// Writes what is written once. What the key holds then is `text`, or what another one wrote before.
Result<std::string> WriteOnce(Store& store, const std::string& key, const std::string& text);

// keel/<job>/generation: which store, of all that the job ever had, this one is.
std::string GenerationKey(const std::string& job);
// keel/keeper: the job whose host keeps this store. Not where no host does.
inline constexpr const char* kKeeperKey = "keel/keeper";
// keel/<job>/beside: where the board of a job is at whose endpoint another one keeps its store.
std::string BesideKey(const std::string& job);
// keel/<job>/protocol: which version the board below it is of; there before the generation is.
std::string ProtocolKey(const std::string& job);

class BoardKeys {
 public:
  BoardKeys() = default;
  BoardKeys(const std::string& job, const std::string& generation)
      : prefix_("keel/" + job + "/" + generation + "/") {}

  const std::string& prefix() const { return prefix_; }
  std::string Slots() const { return prefix_ + "slots"; }
  std::string News() const { return prefix_ + "news"; }
  std::string Member(int64_t slot) const { return prefix_ + "member/" + std::to_string(slot); }
  std::string Beat(int64_t slot) const { return prefix_ + "beat/" + std::to_string(slot); }
  std::string Kind() const { return prefix_ + "kind"; }
  std::string NewestEpoch() const { return prefix_ + "epoch"; }
  std::string Epoch(int64_t epoch) const { return prefix_ + "epoch/" + std::to_string(epoch); }
  // By the epoch's id: a break that was to be told to a store that is gone must not hit another
  // epoch of the same number.
  std::string Break(const std::string& epoch_id) const { return prefix_ + "break/" + epoch_id; }
  std::string Joining() const { return prefix_ + "joining"; }
  std::string Stop() const { return prefix_ + "stop"; }
  std::string End() const { return prefix_ + "end"; }
  std::string Shunned() const { return prefix_ + "shunned"; }
  std::string Succession() const { return prefix_ + "succession"; }
  // A place that another host offers to the coordinator.
  std::string Offer() const { return prefix_ + "offer"; }
  // Who is in an epoch that this board need not have named.
  std::string Counted(const std::string& epoch_id) const { return prefix_ + "counted/" + epoch_id; }
  std::string Presence() const { return prefix_ + "presence"; }
  // The newest epoch of the board before, where that is known.
  std::string Former() const { return prefix_ + "former"; }

 private:
  std::string prefix_;
};

}  // namespace keel
