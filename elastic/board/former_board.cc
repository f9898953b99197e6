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

Result<std::optional<EpochRecord>> NewestEpochOf(Store& store, const BoardKeys& keys) {
  const std::optional<EpochRecord> none;
  KEEL_TRY_ASSIGN(const auto newest, store.Get(keys.NewestEpoch()));
  if (!newest) return none;
  KEEL_TRY_ASSIGN(const int64_t number, ParseCount(keys.NewestEpoch(), *newest));
  if (number == 0) return none;
  KEEL_TRY_ASSIGN(const auto text, store.Get(keys.Epoch(number)));
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
  KEEL_TRY_ASSIGN(const BoardSnapshot board, BoardSnapshot::Take(store, records));
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

}  // namespace

Result<FormerBoard> ReadFormerBoard(Store& store, const PeerQuestion& question,
                                    const std::string& coordinator, const CancelToken& ending) {
  using Kind = PeerAnswer::Kind;
  FormerBoard former;
  std::vector<MaybeInside> inside;
  KEEL_TRY_ASSIGN(const auto generation, store.Get(GenerationKey(question.job)));
  if (generation) {
    const BoardKeys keys(question.job, *generation);
    KEEL_TRY_ASSIGN(former.epoch, NewestEpochOf(store, keys));
    if (former.epoch) {
      KEEL_TRY_ASSIGN(inside, HostsInside(store, keys, *former.epoch));
      former.epoch->hosts.clear();
    }
  }
  std::vector<std::string> asked = {coordinator};
  for (const MaybeInside& host : inside) {
    if (!host.peer.empty()) asked.push_back(host.peer);
  }
  const std::vector<PeerAnswer> answers = AskPeers(asked, question, kAskLimit, ending);
  former.coordinator_lives =
      answers.front().kind == Kind::kSight || answers.front().kind == Kind::kUnknown;
  size_t next = 1;
  for (MaybeInside& host : inside) {
    const bool is_dead = !host.peer.empty() && answers[next++].kind == Kind::kRefused;
    if (!is_dead) former.epoch->hosts.push_back(std::move(host.host));
  }
  return former;
}

}  // namespace keel
