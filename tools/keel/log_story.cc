// Filters, then words.
#include "tools/keel/log_story.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/json.h"
#include "base/text.h"

namespace keel {
namespace {

constexpr size_t kToldMost = 64;
constexpr int64_t kTwiceWithinNanos = 1'000'000'000;
constexpr int64_t kRankMost = 1'000'000;
constexpr size_t kLabelMost = 28;   // wider ones are shown whole, and cost their line its column

size_t LevelRank(std::string_view level) {
  constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warn", "error"};
  const auto found = std::find(kLevels.begin(), kLevels.end(), level);
  return found == kLevels.end() ? 1 : static_cast<size_t>(found - kLevels.begin());
}

template <class T>
bool IsAmong(const std::vector<T>& list, const T& one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}

// That "default12" may be about: a role may end in a digit, too.
std::vector<int> LocalRanksOf(const std::string& copy_of) {
  std::vector<int> ranks;
  for (size_t at = copy_of.find_last_not_of("0123456789") + 1; at < copy_of.size(); ++at) {
    const auto rank = ParseInteger(copy_of.substr(at));
    if (rank.ok() && *rank <= kRankMost) ranks.push_back(static_cast<int>(*rank));
  }
  return ranks;
}

// What two entries have in common that a training program writes at once; empty: it writes one.
std::string WrittenTwice(const LogWords& words) {
  const bool is_summary = words.event == "summary" && words.fields.contains("steps");
  if (words.event != "step" && words.event != "evaluation" && !is_summary) return "";
  const auto member = [&](const char* name) {
    return words.fields.contains(name) ? DumpJson(words.fields[name]) : std::string();
  };
  return words.event + " " + member(is_summary ? "steps" : "step") + " " + member("loss") +
         member("value");
}

}  // namespace

void LogStory::Add(LogSource source) {
  if (source.local_rank && IsOfHost(source)) workers_.emplace(source.root, *source.local_rank);
  label_width_ = std::max(label_width_, std::min(source.label().size(), kLabelMost));
  sources_.push_back(std::move(source));
}

bool LogStory::IsInWorkersFile(const LogEntry& copy) const {
  const std::string& root = sources_[copy.source].root;
  const std::vector<int> ranks = LocalRanksOf(copy.words.copy_of);
  return std::any_of(ranks.begin(), ranks.end(),
                     [&](int rank) { return workers_.contains({root, rank}); });
}

bool LogStory::IsRepeated(const LogEntry& entry) {
  if (IsInWorkersFile(entry)) return true;
  const std::string what = WrittenTwice(entry.words);
  if (what.empty()) return false;
  const bool by_worker = sources_[entry.source].local_rank.has_value();
  const auto other = std::find_if(told_.begin(), told_.end(), [&](const Told& told) {
    return told.by_worker != by_worker && told.what == what &&
           std::abs(told.nanos - entry.nanos) < kTwiceWithinNanos;
  });
  if (other != told_.end()) {
    told_.erase(other);
    return true;
  }
  told_.push_back({by_worker, entry.nanos, what});
  if (told_.size() > kToldMost) told_.pop_front();
  return false;
}

bool LogStory::IsOfHost(const LogSource& source) const {
  return filter_.hosts.empty() || IsAmong(filter_.hosts, source.host);
}

bool LogStory::IsOfRank(const LogEntry& entry) const {
  if (filter_.local_ranks.empty()) return true;
  if (const auto& rank = sources_[entry.source].local_rank) {
    return IsAmong(filter_.local_ranks, *rank);
  }
  for (const int rank : LocalRanksOf(entry.words.copy_of)) {
    if (IsAmong(filter_.local_ranks, rank)) return true;
  }
  const auto told = Field<int>(entry.words.fields, "local_rank");
  return told.ok() && IsAmong(filter_.local_ranks, *told);
}

bool LogStory::Tells(const LogEntry& entry) {
  if (entry.is_notice) return true;
  const LogWords& words = entry.words;
  if (filter_.only_events && (!words.is_event() || words.event == "step")) return false;
  if (LevelRank(words.level) < LevelRank(filter_.least_level)) return false;
  if (filter_.since && entry.nanos < *filter_.since) return false;
  if (filter_.until && entry.nanos >= *filter_.until) return false;
  return IsOfHost(sources_[entry.source]) && IsOfRank(entry) && !IsRepeated(entry);
}

std::string LogStory::Text(const LogEntry& entry) const {
  const LogWords& words = entry.words;
  std::string label = Printable(sources_[entry.source].label());
  label.resize(std::max(label.size(), label_width_), ' ');
  std::string text = Printable(words.text);
  if (words.level == "error") text = paint_.Bad(text);
  if (words.level == "warn") text = paint_.Warn(text);
  if (entry.cut_bytes > 0) text += " ... (" + BytesText(entry.cut_bytes) + " more)";
  if (entry.is_torn) text += " (unfinished line)";
  return (words.nanos ? " " : "~") + UtcStamp(entry.nanos) + " " + label + "  " +
         (words.copy_of.empty() ? "" : "[" + Printable(words.copy_of) + "]: ") + text + "\n";
}

std::string LogStory::JsonLine(const LogEntry& entry) const {
  const LogWords& words = entry.words;
  const LogSource& source = sources_[entry.source];
  Json json = {{"time", UtcStamp(entry.nanos)},
               {"time_is_told", words.nanos.has_value()},
               {"host", source.host},
               {"who", source.who}};
  if (source.local_rank) {
    json["local_rank"] = *source.local_rank;
    json["attempt"] = source.attempt;
    json["stream"] = source.stream;
  }
  json["file"] = source.path;
  if (words.is_event()) {
    json["level"] = words.level;
    json["event"] = words.event;
    json["fields"] = words.fields;
  } else {
    json["text"] = words.text;
  }
  if (!words.copy_of.empty()) json["copy_of"] = words.copy_of;
  if (entry.cut_bytes > 0) json["cut_bytes"] = entry.cut_bytes;
  if (entry.is_torn) json["torn"] = true;
  return DumpJson(json) + "\n";
}

}  // namespace keel
