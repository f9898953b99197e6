// Coordinator: reads the board into a JobWatch, asks membership.h, and writes the answer.
// Promises   a generation of its own for each store it opens; one read of members a poll, of those
//            who have poked it or of all, so seldom that many hosts do not keep it busy; an
//            epoch's record is complete before `epoch` names it, and never changes; a write whose
//            answer was lost is found again, not done anew. If its own polling had a gap (the
//            process was suspended, or the store did not answer), that is held against nobody.
// Does not   wait, sleep, or own the store: its owner calls Poll() when told to look and when
//            NextPoll() is due, and hands in another connection after an error.
// Threads    one.
// Errors     those of the store. The poll is repeated as a whole; nothing is half decided.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "elastic/board/job_watch.h"
#include "elastic/decisions/membership.h"
#include "elastic/decisions/succession.h"
#include "elastic/protocol/board_keys.h"
#include "elastic/protocol/limits.h"
#include "store/reach.h"
#include "store/store.h"

namespace keel {

struct CoordinatorConfig {
  std::string job;
  std::string incarnation;        // of its own supervisor
  std::string presence;           // address of the presence port, for the board
  std::string address;            // of the store of the board
  int64_t term = 1;
  int64_t epoch = 0;              // the newest that was known when this board was opened
  ShunnedRecord shunned = {};     // who was left out before
  // The coordinator that asked this host to take its role, and comes to this board, too. Empty:
  // none did.
  std::string handed_over_by = {};
  // Of the board before this one, which nobody writes any more: its newest epoch, with those of its
  // hosts that may still run it. Nothing: it is not known.
  std::optional<EpochRecord> former = {};
  JobPolicy policy;
  // What an attempt to reach that address of a supervisor finds. Null: nothing, ever.
  std::function<Reached(const std::string& peer)> look_at = {};
  // The job's lease. `claim` takes the number after `after`, or fails: kExists and kStaleEpoch mean
  // that somebody else has it. Null: the job has none.
  std::function<LinkView()> lease = {};
  std::function<Status(const LinkRecord& link, int64_t after)> claim = {};
  bool is_sealed = false;         // its store believes sealed values alone
  Duration poll_interval = std::chrono::milliseconds(50);    // looks at `news`
  Duration read_interval = std::chrono::milliseconds(500);   // reads all, news or not
  Duration close_limit = kCloseLimit;                         // for members to see the end
};

class Coordinator {
 public:
  // Gives the epoch a place for its keys: a fresh store, or a prefix in the store of the board.
  using OpenEpochStore = std::function<Result<EpochStore>(const EpochRecord& epoch)>;

  Coordinator(CoordinatorConfig config, Random random, OpenEpochStore open_epoch_store);

  struct Step {
    Status status;
    bool look = false;                 // the board has changed: tell the members to look
    std::vector<Decision> decisions;   // what was done, and last the wait, if that is a new one
  };
  // The first call on a store announces the generation.
  Step Poll(Store& store, TimePoint now);
  TimePoint NextPoll() const { return polls_.next; }

  // That member has written to the board, so the next poll reads it; -1: some member has, so the
  // next poll looks at `news`.
  void NoteNews(int64_t slot) {
    if (slot >= 0) read_.poked.insert(slot);
    polls_.next = std::min(polls_.next, polls_.soonest);
  }
  // As a member says that has shown that it has the job's token.
  void NoteBeat(int64_t slot, const std::string& incarnation, TimePoint at) {
    watch_.NoteBeat(slot, incarnation, at);
  }
  void PresenceOpened(int64_t slot, const std::string& incarnation);
  void PresenceClosed(int64_t slot, const std::string& incarnation, TimePoint now);
  // Another board of the job, which was found elsewhere.
  void NoteOffer(const BoardPlace& place) {
    offer_ = place;
    read_.news.reset();   // so that the next poll looks at all
  }

  // What is known of the lease has changed.
  void NoteLease() { read_.news.reset(); }

  const std::string& generation() const { return generation_; }
  // All hosts that were ever seen, for those who watch the job.
  const std::vector<HostView>& hosts() const { return view().hosts; }
  const std::optional<EndRecord>& end() const { return ending_.record; }
  // The job is over, and every member knows it or has had the time to learn it.
  bool done() const { return ending_.is_done; }
  // The job stops, or has ended.
  bool is_stopping() const { return ending_.record || view().stop; }
  // This board, as others may be told of it.
  BoardPlace place() const;
  // The link of the lease that says what is coordinated here; its epoch is empty unless one runs.
  LinkRecord Link() const;
  // This host is here, and no host here was ever in an epoch.
  bool is_fresh() const;
  // Where the job goes on, once this board was left. Nothing more is decided here then.
  const std::optional<BoardPlace>& moved() const { return succession_.record.moved; }
  // Whether other hosts are here, to which this one is the coordinator.
  bool is_needed() const;
  // Where hosts may be that were taken for lost and may live on, out of reach.
  std::vector<std::string> PeersOutOfReach(TimePoint now) const;

 private:
  // What the board has of what this coordinator writes once.
  struct Announced {
    bool generation = false;
    bool kind = false;
  };

  // The last read of the whole board.
  struct LastRead {
    std::optional<int64_t> news;   // the counter `news` then; nothing: there was no read
    int64_t slots = 0;
    TimePoint soonest;             // of a whole read because of news
    TimePoint next;
    std::set<int64_t> poked;       // members that have written since they were read
  };
  enum class Reading { kNothing, kPoked, kAll };

  // The wait that the last decision was.
  struct Wait {
    TimePoint until = kNever;
    std::optional<Reason> reason;
    TimePoint since;
    std::optional<TimePoint> told;
  };

  struct Ending {
    std::optional<EndRecord> record;
    TimePoint at;
    bool is_done = false;
  };

  struct Polls {
    TimePoint last;
    TimePoint soonest;             // of the next one that reads, but for what is due
    TimePoint next;
  };

  const JobView& view() const { return watch_.view(); }

  Status Open(Store& store, TimePoint now);
  Result<Reading> Due(Store& store, TimePoint now);
  void NoteGap(TimePoint now);
  Status Read(Store& store, Reading reading, TimePoint now, Step& step);
  Status ReadMembers(Store& store, Reading reading, TimePoint now);
  Status MendOwn(Store& store);
  Result<int64_t> NumberAt(Store& store, const std::string& key, int64_t least);
  Status ReadWishes(Store& store, TimePoint now, Step& step);
  Status ReadCounted(Store& store);
  Status NoteKind(Store& store);
  Status DecideAndSucceed(Store& store, TimePoint now, Step& step);
  Status WriteSuccession(Store& store, Succession next, Step& step);

  Status DecideAll(Store& store, TimePoint now, Step& step);
  Result<bool> Apply(Store& store, const Decision& decision, TimePoint now);
  Status Bury(Store& store, const Decision& decision);
  bool OnlyLostPresence(const Decision& decision);
  Status Shun(Store& store, const Decision& decision, TimePoint now);
  Result<bool> WriteEpoch(Store& store, const Decision& decision, TimePoint now);
  LinkView SeenLease(TimePoint now);
  bool ClaimLink(const EpochRecord& record, int64_t after, TimePoint now);
  Status WriteBreak(Store& store, const Decision& decision, TimePoint now);
  Status WriteEnd(Store& store, const Decision& decision, TimePoint now);
  void NoteWait(const Decision& decision, TimePoint now, Step& step);
  void AwaitMembers(TimePoint now);

  const CoordinatorConfig config_;
  Random random_;
  const OpenEpochStore open_epoch_store_;
  const std::string generation_;
  const BoardKeys keys_;
  JobWatch watch_;
  Announced announced_;
  LastRead read_;
  std::map<std::string, int> not_read_;   // numbers that are added to: how often in a row, by key
  Polls polls_;
  Wait wait_;
  std::optional<Decision> unwritten_;   // an epoch that may be on the board, wholly or in part
  Ending ending_;
  Succession succession_;
  std::string succession_written_;      // the record as it is on the board
  std::optional<BoardPlace> offer_;
  struct FailedClaim {
    int64_t after = 0;
    std::string reason;
    TimePoint again;
  };
  std::optional<FailedClaim> failed_claim_;   // the last one, if it failed
  std::set<std::string> given_up_;      // epochs that were claimed, perhaps, and not formed
  int64_t linked_ = 0;                  // the highest epoch that the lease named, but for those
  std::optional<BoardPlace> held_;      // where the job goes on, as its lease says
};

}  // namespace keel
