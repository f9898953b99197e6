// A value that has not changed is known by its bytes, and its seal need not be computed again.
#include "store/seal/sealed_past.h"

#include <utility>

#include "base/random.h"
#include "store/seal/number_bytes.h"

namespace keel {

std::string SealedPast::NewWriter() {
  std::string writer = NumberBytes(EntropySeed());
  const std::lock_guard lock(mutex_);
  own_.insert(writer);
  return writer;
}

SealedPast::Judged SealedPast::Judge(const std::string& key,
                                     const std::optional<std::string>& text) {
  if (!text) return {};
  const std::lock_guard lock(mutex_);
  const auto known = seen_.find(key);
  if (known != seen_.end() && known->second.text == *text) {
    const SealedValue& same = known->second.sealed;
    return {Verdict::kBelieved, same.value, {}, own_.contains(same.writer)};
  }
  std::optional<SealedValue> opened = OpenSealed(seal_, key, *text);
  bool is_old = false;
  if (opened && known != seen_.end()) {
    const auto count = known->second.counts.find(opened->writer);
    is_old = count != known->second.counts.end() && opened->count <= count->second;
  }
  if (!opened || is_old) {
    const Verdict verdict = is_old ? Verdict::kOld : Verdict::kUnsealed;
    if (known == seen_.end()) return {verdict, std::nullopt};
    const Seen& last = known->second;
    return {verdict, last.sealed.value, last.text, own_.contains(last.sealed.writer)};
  }
  Seen& seen = seen_[key];
  seen.text = *text;
  seen.counts[opened->writer] = opened->count;
  seen.sealed = *std::move(opened);
  return {Verdict::kBelieved, seen.sealed.value, {}, own_.contains(seen.sealed.writer)};
}

std::optional<int64_t> SealedPast::Tell(TimePoint now) {
  const std::lock_guard lock(mutex_);
  return told_.Tell(now);
}

std::optional<std::string> SealedPast::LastText(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto known = seen_.find(key);
  return known == seen_.end() ? std::nullopt : std::optional(known->second.text);
}

}  // namespace keel
