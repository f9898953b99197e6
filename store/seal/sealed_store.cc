// Each operation is one of the store beneath, but for what a stranger has spoilt.
#include "store/seal/sealed_store.h"

#include <utility>

#include "base/log.h"
#include "base/random.h"
#include "store/seal/number_bytes.h"

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
      writer_(NumberBytes(EntropySeed())) {}

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

// `since`: the moment before it was asked for.
Result<SealedStore::Value> SealedStore::Read(const std::string& key, Value text, uint64_t since) {
  using Verdict = SealedPast::Verdict;
  if (IsOpen(key)) return text;
  SealedPast::Judged judged = past_->Judge(key, std::move(text), since);
  for (int i = 0; judged.verdict == Verdict::kLate && i < kTriesMost; ++i) {
    since = past_->Moment();
    KEEL_TRY_ASSIGN(text, store_->Get(key));
    judged = past_->Judge(key, std::move(text), since);
  }
  if (judged.verdict != Verdict::kUnsealed && judged.verdict != Verdict::kOld) {
    return std::move(judged.value);
  }
  if (const auto times = past_->Tell(RealClock().Monotonic())) {
    LogWarn("store-stranger", {{"store", config_.address},
                               {"key", key},
                               {"reason", TextOf(judged.verdict)},
                               {"times", *times}});
  }
  if (judged.instead) KEEL_TRY(Replace(key, text, *judged.instead));
  return std::move(judged.value);
}

// c10d takes an empty value for an absent key, and finds it where nothing is expected; other stores
// cannot compare with it here.
Result<Store::Outcome> SealedStore::Replace(const std::string& key, const Value& text,
                                            const std::string& with) {
  const bool is_empty = text == "";
  KEEL_TRY_ASSIGN(Outcome outcome,
                  store_->CompareSet(key, is_empty ? std::nullopt : text, with));
  if (!is_empty || outcome.holds_desired || outcome.now != "") return outcome;
  KEEL_TRY(store_->Set(key, with));
  return Outcome{true, with};
}

Status SealedStore::Set(const std::string& key, const std::string& value) {
  KEEL_TRY(CheckSize(key, value));
  if (IsOpen(key)) return store_->Set(key, value);
  const std::string sealed = Sealed(key, value);
  const uint64_t since = past_->Moment();
  KEEL_TRY(store_->Set(key, sealed));
  (void)past_->Judge(key, Value(sealed), since);   // so that an earlier one is known to be old
  return Ok();
}

Result<SealedStore::Value> SealedStore::Get(const std::string& key) {
  const uint64_t since = past_->Moment();
  KEEL_TRY_ASSIGN(Value text, store_->Get(key));
  return Read(key, std::move(text), since);
}

Result<std::vector<std::optional<std::string>>> SealedStore::GetMany(
    const std::vector<std::string>& keys) {
  const uint64_t since = past_->Moment();
  KEEL_TRY_ASSIGN(std::vector<Value> values, store_->GetMany(keys));
  for (size_t i = 0; i < keys.size(); ++i) {
    KEEL_TRY_ASSIGN(values[i], Read(keys[i], std::move(values[i]), since));
  }
  return values;
}

// What the key is likely to hold is tried first, so that most often nothing is asked before.
Result<Store::Outcome> SealedStore::CompareSet(const std::string& key, const Value& expected,
                                               const std::string& desired) {
  KEEL_TRY(CheckSize(key, desired));
  if (IsOpen(key)) return store_->CompareSet(key, expected, desired);
  uint64_t since = past_->Moment();
  Value text = expected ? past_->LastText(key) : std::nullopt;
  bool is_guess = true;
  if ((expected && !text) || expected == desired) {
    KEEL_TRY_ASSIGN(text, store_->Get(key));
    is_guess = false;
  }
  for (int i = 0; i < kTriesMost; ++i) {
    SealedPast::Judged judged = past_->Judge(key, Value(text), since);
    const uint64_t before = past_->Moment();
    Value now = std::move(judged.value);
    if (judged.verdict == SealedPast::Verdict::kLate) {
      KEEL_TRY_ASSIGN(text, store_->Get(key));
    } else if (now != expected || now == desired) {
      if (!is_guess) return Outcome{now == desired, std::move(now)};
      KEEL_TRY_ASSIGN(text, store_->Get(key));
    } else {
      const std::string sealed = Sealed(key, desired);
      KEEL_TRY_ASSIGN(const Outcome outcome, Replace(key, text, sealed));
      if (outcome.holds_desired) {
        (void)past_->Judge(key, Value(sealed), before);
        return Outcome{true, desired};
      }
      text = outcome.now;
    }
    since = before;
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
