// A heap of the next entry of each log.
#include "tools/keel/log_merge.h"

#include <utility>

namespace keel {

void LogMerge::Add(int64_t nanos) { logs_.push_back({nanos}); }

void LogMerge::SetUntold(int64_t nanos) {
  for (Log& log : logs_) {
    if (!log.has_told) log.nanos = nanos;
  }
}

void LogMerge::Ask(size_t source) {
  Log& log = logs_[source];
  std::optional<LogEntry> entry = next_(source);
  log.is_waiting = !entry.has_value();
  if (!entry) return;
  if (entry->words.nanos) {
    log.nanos = *entry->words.nanos;
    log.has_told = true;
  }
  entry->source = source;
  entry->nanos = log.nanos;
  heads_.push(std::move(*entry));
}

std::optional<LogEntry> LogMerge::Next() {
  if (heads_.empty()) {
    for (size_t source = 0; source < logs_.size(); ++source) {
      if (logs_[source].is_waiting) Ask(source);
    }
  }
  if (heads_.empty()) return std::nullopt;
  LogEntry entry = heads_.top();
  heads_.pop();
  Ask(entry.source);
  return entry;
}

}  // namespace keel
