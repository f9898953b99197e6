// What the coordinator does for a board to which strangers can write.
#include "elastic/board/coordinator.h"
#include "elastic/board/snapshot.h"

namespace keel {
namespace {

// A number that cannot be read so many times in a row is none.
constexpr int kNotReadMost = 3;

}  // namespace

// Where strangers may write, too, the coordinator looks at what it alone writes, for a sealed store
// puts back what they have spoilt: newcomers have not seen what was there before. The name of the
// generation may also be that of another board, whose seal is as good.
Status Coordinator::MendOwn(Store& store) {
  const std::string generation_key = GenerationKey(config_.job);
  std::vector<std::string> own = {
      generation_key, ProtocolKey(config_.job), keys_.Presence(), keys_.NewestEpoch(),
      keys_.Kind(), keys_.Joining(), keys_.End(), keys_.Shunned(), keys_.Succession()};
  if (view().epoch) own.push_back(keys_.Epoch(view().epoch->record.number));
  for (const HostView& host : view().hosts) {
    if (host.gone) own.push_back(keys_.Member(host.slot));   // its tombstone
  }
  KEEL_TRY_ASSIGN(const BoardSnapshot board, BoardSnapshot::Take(store, own));
  const std::string* const generation = board.Of(generation_key);
  if (generation != nullptr && *generation == generation_) return Ok();
  return store.Set(generation_key, generation_);
}

// Of a number that is added to. A stranger may have put words there, which nobody can add to: then
// it begins anew, at no less than `least`. Who is given a slot twice finds that it is taken.
Result<int64_t> Coordinator::NumberAt(Store& store, const std::string& key, int64_t least) {
  int& failures = not_read_[key];
  if (config_.is_sealed && failures >= kNotReadMost) {
    failures = 0;
    KEEL_TRY(store.Delete(key));
    KEEL_TRY(store.Add(key, least));
  }
  ++failures;
  KEEL_TRY_ASSIGN(const int64_t number, store.Add(key, 0));
  failures = 0;
  return number;
}

}  // namespace keel
