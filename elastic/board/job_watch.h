// JobWatch: what the coordinator knows of its job, made of what it reads and writes on the board.
// Promises   view() is what membership.h decides by. Each thing is noted with the time at which
//            this process saw it, so that the clocks of two hosts are never compared. Each death,
//            break and step is counted once.
// Does not   read or write the board (elastic/board/coordinator.h), or decide anything.
// Threads    one.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "elastic/decisions/membership.h"
#include "elastic/protocol/board_keys.h"

namespace keel {

class JobWatch {
 public:
  // `coordinator`: the incarnation of its own supervisor. `keys` name records in messages.
  JobWatch(const std::string& coordinator, BoardKeys keys) : keys_(std::move(keys)) {
    view_.coordinator = coordinator;
  }

  const JobView& view() const { return view_; }

  void NoteOpened(TimePoint now) { view_.opened = view_.idle_since = now; }
  // For so long nothing could be seen. The gap counts against nobody.
  void NoteGap(Duration gap, TimePoint now);
  // What the board has of that slot; nothing: no such key.
  void NoteMember(int64_t slot, const std::optional<std::string>& record,
                  const std::optional<std::string>& beat, TimePoint now);
  void NoteBeat(int64_t slot, const std::string& incarnation, TimePoint at);
  // All members, and then the break of the epoch, have been read.
  void NoteAllRead(TimePoint now);
  // `closed`: when its presence connection was lost; nothing: it has one.
  void NotePresence(int64_t slot, const std::string& incarnation, std::optional<TimePoint> closed);
  // Its process is dead, as its machine says.
  void NoteDied(int64_t slot, const std::string& incarnation);
  void NoteHandOver(bool is_handing_over, const std::string& handed_over_by, bool is_later) {
    view_.handing_over = is_handing_over;
    view_.handed_over_by = handed_over_by;
    view_.is_later_board = is_later;
  }
  // The newest epoch of the board before, with those of its hosts that may still run it.
  void NoteFormer(const EpochRecord& former, TimePoint now);
  // Their deaths cost the job no restarts any more.
  void NoteShunned(ShunnedRecord shunned);
  // Of that host's deaths, those that the epoch's record tells as recent restarts.
  int64_t DeathsTold(int64_t slot, Duration window, TimePoint now) const;
  // What speaks against that host was told; it had to stay.
  void NoteBlamed(int64_t slot);
  // Nothing: it waits for something else now.
  void NoteNoQuorum(std::optional<TimePoint> since) { view_.no_quorum_since = since; }
  void NoteLease(std::optional<LinkView> lease) { view_.lease = std::move(lease); }
  // Epochs that members have seen, and whose hosts nobody has told yet, by their ids.
  std::vector<std::string> EpochsUncounted() const;
  void NoteCounted(CountedEpoch epoch);
  void NoteGone(int64_t slot, const std::string& reason);
  void NoteEpoch(EpochRecord record, const Decision& decision, TimePoint now);
  void NoteAnnounced() { view_.epoch->announced = true; }
  void NoteBreak(BreakRecord record, TimePoint now);
  void NoteStop(StopRecord record, TimePoint now);

  // Null: that slot was never seen, or is forgotten.
  const HostView* HostAt(int64_t slot) const;
  // One more than the highest slot in which somebody was.
  int64_t slots() const;
  // Whether nothing more is to be read of that slot: its host is gone.
  bool IsOver(int64_t slot) const;

 private:
  // What was last read of a host, beside its view.
  struct Known {
    std::string text;        // of its record, which is parsed only when this changes
    int64_t beat = -1;
    int64_t deaths = 0;      // how many of its deaths were counted
    int64_t incidents = 0;
  };

  // How far the workers of the epoch have got.
  struct Progress {
    std::optional<TimePoint> step_seen;
    bool is_any = false;     // they have told of more than one step
    Position furthest;
  };

  HostView* Find(int64_t slot);
  HostView* Find(int64_t slot, const std::string& incarnation);
  HostView& FindOrAdd(int64_t slot, TimePoint now);
  void TakeRecord(HostView& host, Known& known, TimePoint now);
  void NoteAnew(HostView& host, Known& known, const std::string& incarnation);
  void NoteOther(HostView& host, const OtherRecord& other);
  void NoteDeaths(HostView& host, Known& known, const MemberRecord& record, TimePoint now);
  void NotePositions(const MemberRecord& before, const MemberRecord& record, TimePoint now);
  void NoteStep(Position position, TimePoint now);
  void CountFailures();
  int64_t DeathsCounted(const MemberRecord& record) const;
  void Remember(int restarts, int restarts_recent, TimePoint now);
  int RecentOf(const EpochRecord& record) const;
  void RememberRestarts(const EpochRecord& record, TimePoint now);
  void ForgetGone();

  const BoardKeys keys_;
  JobView view_;
  std::map<int64_t, Known> known_;   // by slot, like view_.hosts
  std::set<int64_t> forgotten_;      // slots of hosts that are gone, and in the view no more
  std::vector<TimePoint> remembered_;  // failures under former stores, within the window
  struct Death {
    int64_t slot = 0;
    TimePoint at;
    bool is_told = false;    // in the record of the epoch
  };
  std::vector<Death> deaths_;
  std::vector<TimePoint> failed_breaks_;
  Progress progress_;
  std::vector<Duration> step_times_;
};

}  // namespace keel
