// BoardClient: what every supervisor does on the board, as a member of the job. It registers,
// publishes its record, raises its beat, and reports what it reads.
// Promises   each event is given once; what is to be written is tried with every poll until it is
//            on the board; a record is never written over a tombstone. In a new generation the
//            member registers anew by itself; after it was taken for dead, only when told to. A
//            board of another version of the protocol is reported as a refusal, and not written to.
// Does not   decide anything (elastic/decisions/host_machine.h), wait, or own the store: its owner
//            calls Poll() when there is something to write or to see and when NextPoll() is due,
//            and hands in another connection after an error.
// Threads    one.
// Errors     those of the store, and kInvalid for a record that is none; the poll is repeated.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "elastic/board/snapshot.h"
#include "elastic/protocol/board_events.h"
#include "elastic/protocol/board_keys.h"
#include "elastic/protocol/limits.h"
#include "elastic/protocol/records.h"
#include "store/store.h"

namespace keel {

struct BoardClientConfig {
  std::string job;
  Duration poll_interval = std::chrono::milliseconds(500);
  Duration beat_interval = kBeatInterval;
  // Where stores believe sealed values alone (store/seal/sealed_store.h): whether the coordinator,
  // at that peer port, says that it keeps the board of that generation now. A stranger may have put
  // back what belongs to a board of the past. Null: whatever a store says is believed.
  std::function<bool(const std::string& peer, const std::string& generation, Duration limit)>
      vouches = {};
};

// They may be long, and are handed on without a copy. Null: none, or no others than before.
using CountedEpochList = std::vector<CountedEpoch>;
using CountedEpochs = std::shared_ptr<const CountedEpochList>;

class BoardClient {
 public:
  explicit BoardClient(BoardClientConfig config) : config_(std::move(config)) {}

  // The next Poll() writes these. Of several records only the last one is written. `counted`: who
  // is in each epoch that the record says it has seen; nothing: those that were given last.
  void Publish(MemberRecord record, CountedEpochs counted);
  // Offers a place to the coordinator.
  void Offer(const BoardPlace& place) { offer_ = place; }
  void ReportBreak(const BreakRecord& record) { breaks_.emplace(record.id, record); }
  // The next Poll() is the first one over a new connection, where another board may be.
  void NoteConnection() {
    is_connection_new_ = true;
    strange_since_.reset();
  }
  // To be called after Buried, once nothing is left of the former registration.
  void RegisterAnew() { may_register_ = true; }

  struct Step {
    Status status;
    bool news = false;      // the board has changed: tell the coordinator
    bool beat = false;      // the board has this member's beat as of `now`
    std::vector<MemberEvent> events;
  };
  Step Poll(Store& store, TimePoint now);
  TimePoint NextPoll() const { return next_poll_; }
  // Since when the polls have found that nobody has opened the board yet; nothing: somebody has.
  const std::optional<TimePoint>& unopened_since() const { return unopened_since_; }
  // All that was to be written is on the board.
  bool settled() const;
  // No board has this host, or will have it.
  bool is_unknown() const {
    return !registration_ && (generation_.name.empty() || !may_register_ || refused_);
  }
  // The highest promise `outside` that this board may have, be it that its answer was lost.
  int64_t promised() const { return generation_.promised; }
  // The newest epoch that this board named.
  int64_t newest_epoch() const { return generation_.seen.epoch; }

  std::optional<int64_t> slot() const {
    return registration_ ? std::optional(registration_->slot) : std::nullopt;
  }

 private:
  Status Run(Store& store, TimePoint now, Step& step);
  Result<bool> FindGeneration(Store& store, TimePoint now, Step& step);
  Status RefuseIfStrange(Store& store, TimePoint now, Step& step);
  Status CheckProtocol(Store& store, Step& step);
  void RefuseBoard(int64_t version, Step& step);
  void Refuse(const std::string& why, Step& step);
  template <class T>
  Result<T> Noted(Result<T> parsed, const std::string& text);
  Result<bool> Read(Store& store, Step& step);
  Status ReadOfJob(const BoardSnapshot& board, Step& step);
  void EnterGeneration(const std::string& generation);
  Result<bool> IsVouchedFor(Store& store, const std::string& generation, Duration limit) const;
  Status ReadSuccession(const BoardSnapshot& board, Step& step);
  Status WriteOffer(Store& store);
  Status WriteCounted(Store& store);
  Status ReadMine(const std::string& text, Step& step);
  Status ReadEpoch(Store& store, const std::string& number, Step& step);
  Status Register(Store& store, Step& step);
  Status Write(Store& store, Step& step);
  Status WriteBreaks(Store& store);
  Status Beat(Store& store, TimePoint now, Step& step);
  void LoseSlot(const Tombstone& tombstone, Step& step);

  const BoardKeys& keys() const { return generation_.keys; }
  // Of the record of a member that is registered.
  std::string own_key() const { return keys().Member(registration_->slot); }

  // A record of this member, and its text as the board has it or shall have it.
  struct Published {
    MemberRecord record;
    std::string text;
  };

  // What has been read of a generation and reported.
  struct Seen {
    int64_t epoch = 0;
    std::string epoch_id;
    std::string broken, joining, stop, end, shunned, presence, kind, succession;
  };

  struct Generation {
    std::string name;
    BoardKeys keys;
    bool is_checked = false;             // it is of this version of the protocol
    std::optional<int64_t> tried_slot;   // it was given, but the record may not be there yet
    int64_t promised = 0;                // by any record that was sent
    std::set<std::string> counted;       // the ids of epochs whose hosts this board can count
    Seen seen;
  };

  // The beat, as far as is known.
  struct Beaten {
    int64_t count = 0;
    std::optional<std::string> text;     // as it is on the board
  };

  struct Registration {
    int64_t slot = 0;
    Published written;                   // as it is on the board
    std::optional<TimePoint> beaten;
    Beaten last;
  };

  const BoardClientConfig config_;
  std::optional<Published> wanted_;   // to be on the board
  CountedEpochs counted_;
  std::optional<BoardPlace> offer_;
  std::map<std::string, BreakRecord> breaks_;   // by the epoch's id
  bool is_connection_new_ = true;
  bool may_register_ = true;
  bool refused_ = false;            // the board is of another version, or token
  bool had_board_ = false;          // this member was registered, on any
  std::optional<TimePoint> strange_since_;   // since when there is a board that is not believed
  std::optional<int64_t> other_;    // the version of a record that could not be parsed
  Generation generation_;
  std::optional<Registration> registration_;
  bool hurry_ = false;              // something was written that `news` does not count yet
  bool awaits_coordinator_ = false;   // as of the last poll
  std::optional<TimePoint> unopened_since_;
  TimePoint next_poll_;
};

}  // namespace keel
