// QuorumWalk: a small lossy world in which hosts change boards, form, enter and meet epochs, fall
// silent and die at random, by a rule that says which epochs may be formed.
// Promises   the same seed gives the same walk. Each epoch that ever ran, with all its hosts inside
//            it at once, is compared with all others that did.
// Does not   have clocks, workers or messages: what a host does takes no time, and what it has not
//            done yet it may never do.
// Threads    one at a time.
#pragma once

#include <bitset>
#include <string>
#include <vector>

#include "base/random.h"
#include "elastic/decisions/quorum.h"

namespace keel {

inline constexpr int kWalkHostsMax = 8;
inline constexpr int kWalkEvents = 200;

// Which epochs may be formed. All but the first are wrong, each in its own way.
enum class WalkRule {
  kQuorum,            // DecideQuorum()
  kAnything,          // whoever coordinates forms with whom it likes
  kNewestToldOnly,    // more than half of the newest epoch that anybody here was put into
  kMetOnly,           // more than half of the newest epoch that anybody here has met
  kDeadNotCounted,    // as kQuorum, but no dead host is counted, wherever it died
  kClosedIsDead,      // ... but a connection that was closed is taken for a death
  kPromisesIgnored,   // ... but hosts outside an epoch say that they saw its coordinator die
  kSilenceIgnored,    // ... but so do hosts that the coordinator may have dropped before
};

class QuorumWalk {
 public:
  QuorumWalk(int hosts, WalkRule rule, uint64_t seed);

  // False: two epochs ran of which neither came from the other, or two ran at once.
  bool Run();

  int epochs_run() const { return epochs_run_; }
  // What happened, for people. Only of a walk that was asked for it.
  void KeepStory() { keeps_story_ = true; }
  const std::string& story() const { return story_; }

 private:
  using EpochSet = std::bitset<kWalkEvents + 1>;   // one event forms one epoch at most
  static constexpr int kNone = -1;

  struct Epoch {
    unsigned hosts = 0;
    int coordinator = 0;
    int64_t number = 0;
    bool ran = false;
    EpochSet from;   // all those that it came from
  };
  struct Past {
    int met = 0;
    EpochSet tried;
  };
  struct Host {
    bool dead = false;
    int follows = 0;      // whose board it is registered on
    bool dropped = false; // ... was, until that board took it for lost
    int since = 0;        // no older epoch names this registration
    int opened = 0;       // no older epoch is on this host's own board
    int inside = 0;
    int entered = 0;      // the newest that it was put into; kNone: none on this board
    int64_t outside = 0;
    Past past;
    std::optional<LostCoordinator> lost;
    std::vector<std::pair<int, Past>> gone;   // from its own board
  };

  void Die(int host);
  void ChangeBoards(int host);
  void Form(int coordinator);
  void Enter(int host);
  void Meet(int host);

  bool IsOnBoardOf(int host, int coordinator) const;
  void Park(Host& host, int64_t promise);
  void NoteLoss(int host, bool refused);
  int NewestOn(int coordinator, int since) const;
  // The epochs that the new one comes from.
  EpochSet Before(int coordinator, unsigned here) const;
  bool MayForm(int coordinator, unsigned here, unsigned proposed, const EpochSet& before);
  bool HasMajority(unsigned proposed, const Epoch& epoch, unsigned counted) const;
  bool Decide(int coordinator, unsigned here, unsigned proposed);
  HostPast PastOf(int host, const Past& past, EpochSet* named) const;
  bool Runs(int epoch) const;
  void NoteRun(int epoch);
  void Tell(const std::string& line);

  const int count_;
  const WalkRule rule_;
  Random random_;
  // How often what happens, up to which share of all events; each walk draws its own.
  double deaths_ = 0, changes_ = 0, forms_ = 0, enters_ = 0;
  double followers_ = 0;   // how likely a host that changes boards goes where another one is
  double silent_ = 0;      // ... a host is silent while an epoch is formed
  double absent_ = 0;      // ... it is there, and takes no part
  std::vector<Host> hosts_;
  std::vector<Epoch> epochs_;
  int epochs_run_ = 1;
  bool split_ = false;
  bool keeps_story_ = false;
  std::string story_;
};

}  // namespace keel
