// What every Store shares: limits on sizes, the text of a timed-out wait, the token nobody raises.
#include "store/store.h"

#include "base/text.h"

namespace keel {
namespace {

constexpr size_t kShownBytes = 40;

}  // namespace

const CancelToken& CancelToken::Never() {
  static const CancelToken never{nullptr};
  return never;
}

Result<bool> Store::Has(const std::string& key) {
  KEEL_TRY_ASSIGN(const auto value, Get(key));
  return value.has_value();
}

Status CheckKey(const std::string& key) {
  if (key.empty()) return Error{Code::kInvalid, "a store key is empty"};
  if (key.size() > kStoreKeyBytesMax) {
    return Error{Code::kInvalid, "store key '" + Beginning(key, kShownBytes) + "...' has " +
                                     std::to_string(key.size()) + " bytes; the limit is " +
                                     std::to_string(kStoreKeyBytesMax)};
  }
  return Ok();
}

Status CheckKeyAndValue(const std::string& key, const std::string& value) {
  KEEL_TRY(CheckKey(key));
  if (value.size() > kStoreValueBytesMax) {
    return Error{Code::kInvalid, "the value for store key '" + key + "' has " +
                                     std::to_string(value.size()) + " bytes; the limit is " +
                                     std::to_string(kStoreValueBytesMax)};
  }
  return Ok();
}

Error WaitTimedOut(const std::vector<std::string>& missing, size_t asked, Duration limit) {
  constexpr size_t kNamed = 4;
  std::string names;
  for (size_t i = 0; i < missing.size() && i < kNamed; ++i) {
    names += (i == 0 ? "" : ", ") + missing[i];
  }
  if (missing.size() > kNamed) {
    names += " and " + std::to_string(missing.size() - kNamed) + " more";
  }
  return {Code::kTimeout, "waited " + DurationText(limit) + " for " +
                              std::to_string(missing.size()) + " of " + std::to_string(asked) +
                              " store keys: " + names};
}

}  // namespace keel
