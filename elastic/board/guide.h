// BoardGuide: leads a supervisor's member to the board of its job, and notes what is read there.
// Two kinds: finder.h, where a host keeps the board, and claimed_finder.h, where none does.
// Promises   Connect() decides nothing that it has not told its owner before. Each attempt ends
//            within some seconds, or when it is cancelled.
// Threads    any; Connect() and IsOver() in the member's, one at a time.
// Errors     of Connect(): why there is no connection yet.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "elastic/decisions/follow.h"
#include "elastic/protocol/records.h"
#include "store/cancel.h"
#include "store/store.h"

namespace keel {

class BoardGuide {
 public:
  virtual ~BoardGuide() = default;

  virtual Result<std::unique_ptr<Store>> Connect(const CancelToken& ending) = 0;

  // The board that was reached, as it tells of itself. Returns whether it is to be left, so that
  // the next Connect() may go elsewhere.
  virtual bool NoteSuccession(const SuccessionRecord& record) = 0;
  virtual void NoteEpoch(int64_t newest) = 0;   // that the board names
  virtual void NoteHosts(int64_t hosts) { (void)hosts; }   // of the newest epoch
  virtual void NoteContact(TimePoint beat) = 0;
  // The newest epoch that any board named, or that came with the place of one.
  virtual int64_t newest_epoch() const = 0;
  // The board that this host keeps.
  virtual void SetOwn(const std::optional<BoardPlace>& own) = 0;

  // Asked after each look at the board: whether it is to be left although it answers.
  virtual bool IsOver() { return false; }
  // An open connection to the coordinator's peer port is lost.
  virtual void NotePresenceLost() {}
  // This host is about to end.
  virtual void NoteFinishing() {}

  // What to tell others who ask; nothing: there is no board, or it was not reached yet.
  virtual std::optional<PeerSight> Sight() const = 0;
  // What is followed, for messages: "10.0.0.7:29400".
  virtual std::string Target() const = 0;
};

}  // namespace keel
