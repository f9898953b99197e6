// Beside: what a host does that comes to an endpoint at which another job keeps its store
// (PROTOCOL.md section 12, "Two jobs at an endpoint").
// Promises   the same view gives the same step, with a reason in words. A host opens or posts a
//            board only where none is posted, where the one that is posted is known to be gone, or
//            where its place has been silent for long.
// Does not   read, ask or open: elastic/board/finder.h does.
// Threads    pure functions over plain values.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "elastic/protocol/records.h"

namespace keel {

struct BesideView {
  std::string job;
  std::string keeper;                        // the job whose store it is
  std::string endpoint;
  std::string self;                          // incarnation
  std::optional<BoardPlace> posted = {};     // what the store says of our job
  bool is_there = false;                     // our job's board answers at that place
  bool is_gone = false;                      // nobody listens there, or somebody else does
  Duration silent_for{0};                    // neither
  Duration patience{0};                      // with that silence
  std::optional<BoardPlace> own = {};        // a board that this host has opened
  bool may_open = true;
};

struct BesideStep {
  enum class Verdict {
    kWait,
    kFollow,   // the board at `place`
    kOpen,     // a board of this host's
    kPost,     // the own board, instead of what is posted
  };
  Verdict verdict = Verdict::kWait;
  BoardPlace place = {};
  std::string detail;
};

BesideStep DecideBeside(const BesideView& view);

}  // namespace keel
