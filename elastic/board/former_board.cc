// Reads the newest epoch and its members' records, then asks the peer ports of all at once.
#include "elastic/board/former_board.h"

#include <utility>
#include <vector>

#include "elastic/board/ask.h"
#include "elastic/board/snapshot.h"
#include "elastic/decisions/follow.h"
#include "elastic/protocol/board_keys.h"

namespace keel {
namespace {

// So many hosts may take the role one after the other, and be lost, each before it forms an epoch.
constexpr int64_t kBoardsRead = 4;

// Only what is on a board can be beyond understanding. A store that fails is asked again, whatever
// it says: a load balancer or a file of certificates that is being replaced has many words.
template <class T>
Result<T> Asked(Result<T> answer) {
  if (answer.ok() || IsPassing(answer.error().code)) return answer;
  return Error{Code::kPeerLost, answer.error().message};
}

Result<std::optional<EpochRecord>> NewestEpochOf(Store& store, const BoardKeys& keys) {
  const std::optional<EpochRecord> none;
  KEEL_TRY_ASSIGN(const auto newest, Asked(store.Get(keys.NewestEpoch())));
  if (!newest) return none;
  KEEL_TRY_ASSIGN(const int64_t number, ParseCount(keys.NewestEpoch(), *newest));
  if (number == 0) return none;
  KEEL_TRY_ASSIGN(const auto text, Asked(store.Get(keys.Epoch(number))));
  if (!text) return none;
  KEEL_TRY_ASSIGN(EpochRecord epoch, ParseEpoch(keys.Epoch(number), *text));
  return std::optional(std::move(epoch));
}

// A host and its peer port; that is empty where nobody knows it any more.
struct MaybeInside {
  EpochHost host;
  std::string peer;
};

Result<std::vector<MaybeInside>> HostsInside(Store& store, const BoardKeys& keys,
                                             const EpochRecord& epoch) {
  std::vector<std::string> records;
  for (const EpochHost& host : epoch.hosts) records.push_back(keys.Member(host.slot));
  KEEL_TRY_ASSIGN(const BoardSnapshot board, Asked(BoardSnapshot::Take(store, records)));
  std::vector<MaybeInside> inside;
  for (size_t i = 0; i < records.size(); ++i) {
    MaybeInside host{epoch.hosts[i], ""};
    const std::string* const held = board.Of(records[i]);
    const Result<MemberSlot> slot =
        held != nullptr ? ParseMemberSlot(records[i], *held) : Result<MemberSlot>(MemberSlot{});
    if (slot.ok() && slot->record) {
      if (slot->record->state == MemberState::kLeft) continue;
      host.peer = slot->record->peer;
    }
    inside.push_back(std::move(host));
  }
  return inside;
}

// What a board tells of the newest epoch.
struct Told {
  bool is_opened = false;
  bool is_own = false;                 // the epoch was formed there
  std::optional<EpochRecord> epoch;    // else it is what was known when that board was opened
  std::vector<MaybeInside> inside;
};

Result<Told> ReadTold(Store& store, const std::string& job) {
  Told told;
  KEEL_TRY_ASSIGN(const auto generation, Asked(store.Get(GenerationKey(job))));
  told.is_opened = generation.has_value();
  if (!told.is_opened) return told;
  const BoardKeys keys(job, *generation);
  KEEL_TRY_ASSIGN(told.epoch, NewestEpochOf(store, keys));
  told.is_own = told.epoch.has_value();
  if (told.is_own) {
    KEEL_TRY_ASSIGN(told.inside, HostsInside(store, keys, *told.epoch));
    return told;
  }
  KEEL_TRY_ASSIGN(const auto former, Asked(store.Get(keys.Former())));
  if (!former) return told;
  KEEL_TRY_ASSIGN(told.epoch, ParseEpoch(keys.Former(), *former));
  for (const EpochHost& host : told.epoch->hosts) told.inside.push_back({host, ""});
  return told;
}

// Whoever had the role last may have opened no board, or formed no epoch there. Then the board on
// which the epoch was formed tells most: it knows where its hosts listen.
Result<Told> ReadNewest(const OpenBoard& open, int64_t term, const std::string& job) {
  Told newest;
  for (int64_t one = term; one >= 1 && one > term - kBoardsRead; --one) {
    KEEL_TRY_ASSIGN(const std::unique_ptr<Store> store, Asked(open(one)));
    Result<Told> told = ReadTold(*store, job);
    // One that cannot be understood takes nothing from what a later one has told.
    if (!told.ok() && newest.epoch && !IsPassing(told.error().code)) break;
    KEEL_TRY(told);
    if (told->is_own) return told;
    const bool knew_of_none = told->is_opened && !told->epoch;
    if (!newest.epoch) newest = *std::move(told);
    if (knew_of_none) break;
  }
  return newest;
}

}  // namespace

bool IsPassing(Code code) {
  return code == Code::kTimeout || code == Code::kPeerLost || code == Code::kCancelled;
}

Result<FormerBoard> ReadFormerBoard(const OpenBoard& open, int64_t term,
                                    const PeerQuestion& question, const std::string& coordinator,
                                    const CancelToken& ending) {
  using Kind = PeerAnswer::Kind;
  KEEL_TRY_ASSIGN(Told newest, ReadNewest(open, term, question.job));
  FormerBoard former;
  former.epoch = std::move(newest.epoch);
  if (former.epoch) former.epoch->hosts.clear();
  std::vector<std::string> asked = {coordinator};
  for (const MaybeInside& host : newest.inside) {
    if (!host.peer.empty()) asked.push_back(host.peer);
  }
  const std::vector<PeerAnswer> answers = AskPeers(asked, question, kAskLimit, ending);
  former.coordinator_lives =
      answers.front().kind == Kind::kSight || answers.front().kind == Kind::kUnknown;
  size_t next = 1;
  for (MaybeInside& host : newest.inside) {
    const bool is_dead = !host.peer.empty() && answers[next++].kind == Kind::kRefused;
    if (!is_dead) former.epoch->hosts.push_back(std::move(host.host));
  }
  return former;
}

}  // namespace keel
