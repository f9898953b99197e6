// Follow: what a host does that has lost the coordinator of its job (PROTOCOL.md section 12).
// Promises   the same view gives the same step, with a reason in words. A host follows no board
//            that is behind the one that it has lost, and opens one only if it is an heir, the
//            others had their turn, and nobody whom it asked still hears the coordinator.
// Does not   connect, ask or open: elastic/board/finder.h does. Judge who may form an epoch: a
//            board that is opened too much forms none (elastic/decisions/quorum.h).
// Threads    pure functions over plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "elastic/protocol/limits.h"
#include "elastic/protocol/records.h"

namespace keel {

// What another host said when it was asked.
struct PeerSight {
  BoardPlace place;          // what it follows, or keeps
  Duration heard_ago{0};     // how long ago it heard from that board
};

struct FollowView {
  std::string self;                       // incarnation
  BoardPlace lost;                        // the board that was followed; its epoch is the newest
                                          // that this host knows of
  std::vector<Heir> heirs;                // as that board named them
  TimePoint lost_at;
  TimePoint heard;                        // when that board was last known to be there
  bool refused = false;                   // its machine says that nobody listens there any more
  Duration beat_limit = kBeatLimit;
  std::optional<BoardPlace> own;          // a board that this host has opened
  std::vector<PeerSight> sights;          // of this moment
};

struct FollowStep {
  enum class Verdict { kLook, kFollow, kOpen };
  Verdict verdict = Verdict::kLook;
  BoardPlace place;          // kFollow: there; kOpen: its term
  std::string detail;
};

FollowStep DecideFollow(const FollowView& view, TimePoint now);

// The term of a board that is opened to follow upon one of the term `former`, by a host that has
// opened none above `opened`. Boards are told apart by term and host, so no host opens two of one
// term, also where it was on a board further ahead and came back.
int64_t NextTerm(int64_t former, int64_t opened);

// Whether a host that has lost a board tells others of the one that it has opened itself, although
// it has not come there yet: the coordinator's process is gone, and this is the first heir, so that
// nothing can keep it away. The next heirs may both have opened one, and one of them comes to the
// other.
bool IsToldAhead(const std::optional<BoardPlace>& own, const BoardPlace& lost,
                 const std::vector<Heir>& heirs, bool refused);

// Whom to ask which board they follow: the heirs that can have opened one by now. An heir itself
// asks all others, since it must not open one while somebody hears the coordinator. With a thousand
// hosts, whoever asks more than these keeps the next coordinator from its work.
std::vector<Heir> HeirsToAsk(const FollowView& view, TimePoint now);

// Where a host goes that knows of no board, or of none that is there, and no heirs: of the boards
// that others name, the one that is furthest ahead; nothing: they name none. `read`: the board of
// which it has read last, behind which it does not go.
std::optional<BoardPlace> FurthestAhead(const std::vector<PeerSight>& sights,
                                        const std::optional<BoardPlace>& read);

// How long after the beginning of its turn, the first of which is 0, this host asks: another time
// for each host. `hosts`: of the job. Heirs never wait.
Duration AskAfter(const std::string& self, const std::vector<Heir>& heirs, int64_t hosts,
                  int turn);

// For those that are asked, all at once.
inline constexpr Duration kAskLimit = std::chrono::milliseconds(300);
// How long a host waits for the first heir that answers, in that turn and a job of so many: where
// many ask, each is answered later, and whoever asks anew instead of waiting makes it later still
// for all. Heirs, of whom there are few, wait no longer.
Duration AskPatience(const std::string& self, const std::vector<Heir>& heirs, int64_t hosts,
                     int turn);

}  // namespace keel
