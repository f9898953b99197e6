// A value that has not changed is known by its bytes, and its seal need not be computed again.
#include "store/seal/sealed_past.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace keel {
namespace {

constexpr size_t kBytesMax = 64 << 20;

}  // namespace

uint64_t SealedPast::Moment() const {
  const std::lock_guard lock(mutex_);
  return moment_;
}

SealedPast::Judged SealedPast::Judge(const std::string& key, std::optional<std::string>&& text,
                                     uint64_t since) {
  if (!text) return {};
  const std::lock_guard lock(mutex_);
  const auto known = seen_.find(key);
  const bool is_known = known != seen_.end();
  Verdict verdict = Verdict::kBelieved;
  if (!is_known || known->second.text != *text) {
    const auto opened = OpenSealed(seal_, key, *text);
    const auto is_old = [&] {
      const auto count = known->second.counts.find(opened->writer);
      return count != known->second.counts.end() && opened->count <= count->second;
    };
    if (is_known && known->second.taken > since) {
      verdict = Verdict::kLate;
    } else if (!opened) {
      verdict = Verdict::kUnsealed;
    } else if (is_known && is_old()) {
      verdict = Verdict::kOld;
    } else {
      Take(key, *opened, *std::move(text));
    }
  }
  if (verdict != Verdict::kBelieved && !is_known) return {verdict, std::nullopt};
  Seen& seen = seen_.find(key)->second;
  seen.asked = moment_;
  Judged judged{verdict, std::string(ValueIn(seen.text))};
  if (verdict != Verdict::kBelieved) judged.instead = seen.text;
  return judged;
}

void SealedPast::Take(const std::string& key, const SealedValue& opened, std::string text) {
  Seen& seen = seen_[key];
  seen.counts[std::string(opened.writer)] = opened.count;
  seen.taken = ++moment_;
  bytes_ += text.size() - seen.text.size();
  seen.text = std::move(text);
  if (bytes_ > kBytesMax) ForgetLongestUnasked();
}

// Half of all, so that it happens seldom. Those of the present are asked for all the time.
void SealedPast::ForgetLongestUnasked() {
  std::vector<std::pair<uint64_t, std::string>> by_age;
  for (const auto& [key, seen] : seen_) by_age.emplace_back(std::max(seen.asked, seen.taken), key);
  std::sort(by_age.begin(), by_age.end());
  for (const auto& [age, key] : by_age) {
    if (bytes_ <= kBytesMax / 2 || age == moment_) return;
    const auto seen = seen_.find(key);
    bytes_ -= seen->second.text.size();
    seen_.erase(seen);
  }
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
