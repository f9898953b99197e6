// The key that names the generation, under which all others lie; keys that are written once.
#include "elastic/protocol/board_keys.h"

namespace keel {

std::string GenerationKey(const std::string& job) { return "keel/" + job + "/generation"; }
std::string BesideKey(const std::string& job) { return "keel/" + job + "/beside"; }
std::string ProtocolKey(const std::string& job) { return "keel/" + job + "/protocol"; }

Result<std::string> WriteOnce(Store& store, const std::string& key, const std::string& text) {
  KEEL_TRY_ASSIGN(Store::Outcome outcome, store.CompareSet(key, std::nullopt, text));
  if (!outcome.holds_desired && outcome.now == kNothingYet) {
    KEEL_TRY_ASSIGN(outcome, store.CompareSet(key, kNothingYet, text));
  }
  if (outcome.holds_desired) return text;
  if (outcome.now) return *std::move(outcome.now);
  return Error{Code::kInvalid, "somebody deleted store key " + key + " while it was written"};
}

}  // namespace keel
