// Each operation is one of the store beneath, but for what a stranger has spoilt.
#include "store/seal/sealed_store.h"

#include <utility>

#include "base/log.h"

namespace keel {
namespace {

// Each time somebody else has written the key meanwhile.
constexpr int kTriesMost = 16;

const char* TextOf(SealedPast::Verdict verdict) {
  return verdict == SealedPast::Verdict::kOld
             ? "its writer has written a later one: somebody has put it back"
             : "it has no seal of this job's token";
}

}  // namespace

SealedStore::SealedStore(std::unique_ptr<Store> store, std::shared_ptr<SealedPast> past,
                         Config config)
    : store_(std::move(store)), past_(std::move(past)), config_(std::move(config)),
      writer_(past_->NewWriter()) {}

// The store beneath would speak of the sealed value's size.
Status SealedStore::CheckSize(const std::string& key, const std::string& value) const {
  KEEL_TRY(CheckKeyAndValue(key, value));
  if (IsOpen(key) || value.size() <= kStoreValueBytesMax - kSealedBytesMore) return Ok();
  return Error{Code::kInvalid, "the value for store key '" + key + "' has " +
                                   std::to_string(value.size()) + " bytes; with a seal the limit "
                                   "is " + std::to_string(kStoreValueBytesMax - kSealedBytesMore)};
}

std::string SealedStore::Sealed(const std::string& key, const std::string& value) {
  return SealedText(past_->seal(), key, {writer_, ++count_, value});
}

Result<SealedStore::Value> SealedStore::Read(const std::string& key, const Value& text) {
  using Verdict = SealedPast::Verdict;
  if (IsOpen(key)) return text;
  SealedPast::Judged judged = past_->Judge(key, text);
  if (judged.verdict == Verdict::kOld) {
    // Another connection of this process may have seen a later one since this was read.
    KEEL_TRY_ASSIGN(const Value again, store_->Get(key));
    judged = past_->Judge(key, again);
  }
  if (judged.verdict == Verdict::kBelieved || judged.verdict == Verdict::kAbsent) {
    return std::move(judged.value);
  }
  if (const auto times = past_->Tell(RealClock().Monotonic())) {
    LogWarn("store-stranger", {{"store", config_.address},
                               {"key", key},
                               {"reason", TextOf(judged.verdict)},
                               {"times", *times}});
  }
  if (judged.is_own) KEEL_TRY(Replace(key, text, judged.instead));
  return std::move(judged.value);
}

// No store compares with an empty value, which c10d takes for an absent key; none of us writes one.
Result<Store::Outcome> SealedStore::Replace(const std::string& key, const Value& text,
                                            const Value& with) {
  if (text != "") return store_->CompareSet(key, text, with.value());
  KEEL_TRY(store_->Set(key, with.value()));
  return Outcome{true, with};
}

Status SealedStore::Set(const std::string& key, const std::string& value) {
  KEEL_TRY(CheckSize(key, value));
  if (IsOpen(key)) return store_->Set(key, value);
  const std::string sealed = Sealed(key, value);
  KEEL_TRY(store_->Set(key, sealed));
  (void)past_->Judge(key, sealed);   // so that an earlier one is known to be old
  return Ok();
}

Result<SealedStore::Value> SealedStore::Get(const std::string& key) {
  KEEL_TRY_ASSIGN(const Value text, store_->Get(key));
  return Read(key, text);
}

Result<std::vector<std::optional<std::string>>> SealedStore::GetMany(
    const std::vector<std::string>& keys) {
  KEEL_TRY_ASSIGN(std::vector<Value> values, store_->GetMany(keys));
  for (size_t i = 0; i < keys.size(); ++i) {
    KEEL_TRY_ASSIGN(values[i], Read(keys[i], values[i]));
  }
  return values;
}

// What the key is likely to hold is tried first, so that most often nothing is asked before.
Result<Store::Outcome> SealedStore::CompareSet(const std::string& key, const Value& expected,
                                               const std::string& desired) {
  KEEL_TRY(CheckSize(key, desired));
  if (IsOpen(key)) return store_->CompareSet(key, expected, desired);
  Value text = expected ? past_->LastText(key) : std::nullopt;
  bool is_guess = true;
  if ((expected && !text) || expected == desired) {
    KEEL_TRY_ASSIGN(text, store_->Get(key));
    is_guess = false;
  }
  for (int i = 0; i < kTriesMost; ++i) {
    Value now = past_->Judge(key, text).value;
    if (now != expected || now == desired) {
      if (!is_guess) return Outcome{now == desired, std::move(now)};
      KEEL_TRY_ASSIGN(text, store_->Get(key));
      is_guess = false;
      continue;
    }
    const std::string sealed = Sealed(key, desired);
    KEEL_TRY_ASSIGN(const Outcome outcome, Replace(key, text, sealed));
    if (outcome.holds_desired) {
      (void)past_->Judge(key, sealed);
      return Outcome{true, desired};
    }
    text = outcome.now;
    is_guess = false;
  }
  return Error{Code::kTimeout, "writing store key '" + key + "': strangers write it each time"};
}

Result<std::unique_ptr<Store>> SealedStore::Clone() {
  KEEL_TRY_ASSIGN(std::unique_ptr<Store> other, store_->Clone());
  return std::unique_ptr<Store>(
      std::make_unique<SealedStore>(std::move(other), past_, config_));
}

}  // namespace keel
