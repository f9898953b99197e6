// Makes names, and parses them by making them again.
#include "ckpt/names.h"

#include "base/text.h"
#include "ckpt/format.h"

namespace keel {
namespace {

constexpr std::string_view kShardSuffix = ".keel";
constexpr std::string_view kLockSuffix = ".lck";
constexpr std::string_view kTempSuffix = "-manifest.tmp";
constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kBeforeDamagedId = ".damaged-";
constexpr std::string_view kMarkPrefix = "job-";
constexpr std::string_view kMarkSuffix = ".mark";
constexpr std::string_view kLaterLockSuffix = ".lock";

// Accepts whole numbers of at most 18 digits only; empty for anything else.
std::optional<uint64_t> Digits(std::string_view text) {
  if (text.empty() || text.size() > 18) return std::nullopt;
  uint64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  return number;
}

std::string Padded(uint64_t number, size_t digits) {
  std::string text = std::to_string(number);
  if (text.size() < digits) text.insert(0, digits - text.size(), '0');
  return text;
}

std::string Stem(const ShardName& shard) {
  return shard.attempt + "-shard-" + Padded(shard.part, 4) + "-of-" + Padded(shard.parts, 4);
}

}  // namespace

std::string LaterJobLockName(int64_t epoch) {
  return std::string(kMarkPrefix) + std::to_string(epoch) + std::string(kLaterLockSuffix);
}

bool IsLaterJobLockName(std::string_view name) {
  if (!name.starts_with(kMarkPrefix) || !name.ends_with(kLaterLockSuffix)) return false;
  const size_t others = kMarkPrefix.size() + kLaterLockSuffix.size();
  if (name.size() <= others) return false;
  const auto epoch = ParseInteger(name.substr(kMarkPrefix.size(), name.size() - others));
  return epoch.ok() && LaterJobLockName(*epoch) == name;
}

std::string JobMarkName(std::string_view id) {
  return std::string(kMarkPrefix) + std::string(id) + std::string(kMarkSuffix);
}

bool IsJobMarkName(std::string_view name) {
  if (!name.starts_with(kMarkPrefix) || !name.ends_with(kMarkSuffix)) return false;
  const size_t others = kMarkPrefix.size() + kMarkSuffix.size();
  if (name.size() != others + kAttemptBytes) return false;
  return CheckAttempt(name.substr(kMarkPrefix.size(), kAttemptBytes)).ok();
}

std::string NewAttempt(Random& random) { return RandomId(random, kAttemptBytes); }

Status CheckAttempt(std::string_view attempt) {
  bool good = attempt.size() == kAttemptBytes;
  for (const char c : attempt) good = good && ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'));
  if (good) return Ok();
  return Error{Code::kInvalid, Shown(attempt) + " is not an attempt id: 16 digits of lower-case "
                                                "hex are expected (NewAttempt() makes them)"};
}

std::string StepDirName(uint64_t step) { return std::string(kStepPrefix) + Padded(step, 9); }

std::string DamagedStepDirName(uint64_t step, std::string_view id) {
  return StepDirName(step) + std::string(kBeforeDamagedId) + std::string(id);
}

std::optional<uint64_t> ParseStepDirName(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  const auto step = Digits(name.substr(kStepPrefix.size()));
  if (!step.has_value() || StepDirName(*step) != name) return std::nullopt;
  return step;
}

std::optional<uint64_t> StepOfDirName(std::string_view name) {
  return ParseStepDirName(name.substr(0, name.find(kBeforeDamagedId)));
}

std::string ShardFileName(const ShardName& shard) {
  return Stem(shard) + std::string(kShardSuffix);
}

std::string ShardLockName(const ShardName& shard, uint32_t lock) {
  return Stem(shard) + std::string(kLockSuffix) + std::to_string(lock);
}

std::string ManifestTempName(std::string_view attempt) {
  return std::string(attempt) + std::string(kTempSuffix);
}

StepFile ParseStepFile(std::string_view name) {
  using Kind = StepFile::Kind;
  if (name == kManifestName) return {Kind::kManifest, {}};
  if (name == kPinName) return {Kind::kPin, {}};
  if (name == kPinTempName) return {Kind::kPinTemp, {}};
  if (name == kCommitLockName) return {Kind::kCommitLock, {}};
  ShardName shard;
  shard.attempt = name.substr(0, kAttemptBytes);
  if (!CheckAttempt(shard.attempt).ok()) return {};
  if (name == ManifestTempName(shard.attempt)) return {Kind::kManifestTemp, shard};
  // "<attempt>-shard-0000-of-0003.keel"; the suffix of a lock is as long
  constexpr size_t kPartAt = kAttemptBytes + 7;
  constexpr size_t kPartsAt = kPartAt + 8;
  if (name.size() != kPartsAt + 4 + kShardSuffix.size()) return {};
  const auto part = Digits(name.substr(kPartAt, 4));
  const auto parts = Digits(name.substr(kPartsAt, 4));
  if (!part.has_value() || !parts.has_value() || *part >= *parts) return {};
  shard.part = static_cast<uint32_t>(*part);
  shard.parts = static_cast<uint32_t>(*parts);
  if (name == ShardFileName(shard)) return {Kind::kShard, shard};
  for (uint32_t lock = 0; lock < kShardLocks; ++lock) {
    if (name == ShardLockName(shard, lock)) return {Kind::kShardLock, shard};
  }
  return {};
}

}  // namespace keel
