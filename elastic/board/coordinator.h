// Coordinator: reads the board, notes when things changed, asks membership.h, writes the answer.
// Promises   a generation of its own for each store it opens; one read of all members a poll; an
//            epoch's record is complete before `epoch` names it, and never changes; a write whose
//            answer was lost is found again, not done anew. If its own polling had a gap (the
//            process was suspended, or the store did not answer), that is held against nobody.
// Does not   wait, sleep, or own the store: its owner calls Poll() when told to look and when
//            NextPoll() is due, and hands in another connection after an error.
// Threads    one.
// Errors     those of the store. The poll is repeated as a whole; nothing is half decided.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "elastic/decisions/membership.h"
#include "elastic/protocol/board_keys.h"
#include "elastic/protocol/limits.h"
#include "store/store.h"

namespace keel {

struct CoordinatorConfig {
  std::string job;
  std::string incarnation;        // of its own supervisor
  std::string presence;           // address of the presence port, for the board
  JobPolicy policy;
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
  TimePoint NextPoll() const { return next_poll_; }

  void PresenceOpened(int64_t slot, const std::string& incarnation);
  void PresenceClosed(int64_t slot, const std::string& incarnation, TimePoint now);

  const std::string& generation() const { return generation_; }
  // All hosts that were ever seen, for those who watch the job.
  const std::vector<HostView>& hosts() const { return view_.hosts; }
  const std::optional<EndRecord>& end() const { return end_; }
  // The job is over, and every member knows it or has had the time to learn it.
  bool done() const { return done_; }

 private:
  // What was last read of a host, beside its view.
  struct Known {
    std::string text;        // of its record, which is parsed only when this changes
    int64_t beat = -1;
    int64_t deaths = 0;      // how many of its deaths were counted
  };

  Status Open(Store& store, TimePoint now);
  Result<bool> Due(Store& store, TimePoint now);
  void Forgive(TimePoint now);
  Status Read(Store& store, TimePoint now);
  Status ReadMembers(Store& store, TimePoint now);
  Status ReadWishes(Store& store, TimePoint now);
  void Take(int64_t slot, const std::optional<std::string>& text,
            const std::optional<std::string>& beat, TimePoint now);
  void TakeRecord(HostView& host, Known& known, TimePoint now);
  void NoteOther(HostView& host, const OtherRecord& other);
  void NoteDeaths(Known& known, const MemberRecord& record, TimePoint now);
  void NotePositions(const MemberRecord& before, const MemberRecord& record, TimePoint now);
  void NoteStep(Position position, TimePoint now);
  void CountFailures();
  void NoteBreak(BreakRecord record, TimePoint now);
  void NoteEpochState(TimePoint now);
  Status NoteKind(Store& store);

  Status DecideAll(Store& store, TimePoint now, Step& step);
  Status Apply(Store& store, const Decision& decision, TimePoint now);
  Status Bury(Store& store, const Decision& decision);
  Status WriteEpoch(Store& store, const Decision& decision, TimePoint now);
  Status WriteBreak(Store& store, const Decision& decision, TimePoint now);
  Status WriteEnd(Store& store, const Decision& decision, TimePoint now);
  void NoteWait(const Decision& decision, TimePoint now, Step& step);
  void AwaitMembers(TimePoint now);
  HostView* Find(int64_t slot);
  HostView* Find(int64_t slot, const std::string& incarnation);
  HostView& FindOrAdd(int64_t slot, TimePoint now);

  const CoordinatorConfig config_;
  Random random_;
  const OpenEpochStore open_epoch_store_;

  std::string generation_;
  BoardKeys keys_;
  bool opened_ = false;
  bool kind_written_ = false;
  int64_t slots_ = 0;
  std::optional<int64_t> news_;      // the counter `news` at the last whole read
  TimePoint last_poll_;
  TimePoint next_read_;
  TimePoint next_poll_;
  TimePoint ask_again_ = kNever;     // when the last wait is over
  std::optional<Reason> last_wait_;
  TimePoint wait_since_;
  bool wait_told_ = false;
  std::map<int64_t, Known> known_;   // by slot, like view_.hosts
  JobView view_;
  std::vector<TimePoint> deaths_, failed_breaks_;
  std::optional<Decision> unwritten_;   // an epoch that may be on the board, wholly or in part
  std::optional<TimePoint> step_seen_;
  bool progressed_ = false;            // workers of the epoch have told of more than one step
  Position furthest_;
  std::vector<Duration> step_times_;
  std::optional<EndRecord> end_;
  TimePoint ended_at_;
  bool done_ = false;
};

}  // namespace keel
