// It reads all that it can first, for later.
#include "tests/sim/stranger.h"

#include <algorithm>
#include <iterator>

#include "elastic/protocol/board_keys.h"
#include "store/seal/sealed_value.h"

namespace keel {
namespace {

constexpr size_t kSeenMax = 16;

std::vector<std::string> KeysOf(const std::string& job, const std::string& generation, int slots) {
  const BoardKeys keys(job, generation);
  std::vector<std::string> all = {
      GenerationKey(job), ProtocolKey(job), keys.Kind(), keys.NewestEpoch(), keys.Joining(),
      keys.Stop(), keys.End(), keys.Shunned(), keys.Succession(), keys.Offer(), keys.Presence()};
  for (int slot = 0; slot < slots; ++slot) {
    all.push_back(keys.Member(slot));
    all.push_back(keys.Beat(slot));
  }
  for (int epoch = 1; epoch < 8; ++epoch) all.push_back(keys.Epoch(epoch));
  return all;
}

}  // namespace

const Seal& SimSeal() {
  static const Seal seal("the secret of the simulator");
  return seal;
}

std::string SimStranger::Strike(MemoryBoard& board, const std::string& job, int slots) {
  const auto store = board.Connect("stranger");
  const auto text = store->Get(GenerationKey(job));
  if (!text.ok() || !*text) return "";
  const auto opened = OpenSealed(SimSeal(), GenerationKey(job), **text);
  if (!opened && LooksSealed(**text)) return "";   // it has spoilt it itself
  const std::string generation(opened ? opened->value : std::string_view(**text));
  const std::vector<std::string> keys = KeysOf(job, generation, slots);
  const auto values = store->GetMany(keys);
  std::vector<size_t> there;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!(*values)[i]) continue;
    there.push_back(i);
    std::vector<std::string>& seen = seen_[keys[i]];
    if (std::ranges::find(seen, *(*values)[i]) == seen.end()) seen.push_back(*(*values)[i]);
    if (seen.size() > kSeenMax) seen.erase(seen.begin());
  }
  const size_t chosen = there[random_.Uniform(there.size())];
  const std::string& key = keys[chosen];
  (void)store->Set(key, Forged(key, *(*values)[chosen]));
  return "a stranger writes " + key.substr(key.find('/', key.find('/') + 1) + 1);
}

std::string SimStranger::Forged(const std::string& key, const std::string& text) {
  const std::vector<std::string>& own = seen_.at(key);
  std::string forged = text;
  switch (random_.Uniform(5)) {
    case 0: return "-";
    case 1: return text.substr(0, random_.Uniform(text.size() + 1));
    case 2:
      if (forged.empty()) return "0";
      forged[random_.Uniform(forged.size())] ^= static_cast<char>(1 + random_.Uniform(255));
      return forged;
    case 3: return own[random_.Uniform(own.size())];
    default:
      auto other = seen_.begin();
      std::advance(other, static_cast<std::ptrdiff_t>(random_.Uniform(seen_.size())));
      return other->second.empty() ? "1" : other->second.back();
  }
}

}  // namespace keel
