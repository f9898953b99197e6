// Takes paths apart.
#include "tools/keel/log_sources.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"

namespace keel {
namespace {

constexpr size_t kRunDigits = 8;

bool IsNumber(const std::string& text) {
  return !text.empty() && text.size() < 10 &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

// "keelrun.log", and "keelrun.log.1", which is what is called so once it is full.
bool IsLogName(std::string name) {
  if (IsFullLog(name)) name.resize(name.rfind('.'));
  for (const char* const end : {".log", ".err", ".out", ".jsonl", ".txt"}) {
    if (name.ends_with(end)) return true;
  }
  return false;
}

// The eight digits of "job_1234abcd"; empty: it is no run's folder.
std::string RunNumber(const std::string& folder) {
  if (folder.size() <= kRunDigits || folder[folder.size() - kRunDigits - 1] != '_') return "";
  const std::string digits = folder.substr(folder.size() - kRunDigits);
  return digits.find_first_not_of("0123456789abcdef") == std::string::npos ? digits : "";
}

struct TakenApart {
  LogSource source;
  std::string above;   // the folders above that of the run
  std::string run;     // its number
};

std::optional<TakenApart> TakeApart(const std::string& path) {
  std::vector<std::string> parts = SplitList(path, '/');
  if (parts.empty()) return std::nullopt;
  TakenApart apart;
  apart.source.path = path;
  const std::string name = parts.back();
  parts.pop_back();
  if (name.starts_with("filtered_std")) return std::nullopt;   // its lines are elsewhere, too
  const size_t depth = parts.size();
  const bool is_workers = (name == "stdout.log" || name == "stderr.log") && depth >= 2 &&
                          IsNumber(parts[depth - 1]) && parts[depth - 2].starts_with("attempt_") &&
                          IsNumber(parts[depth - 2].substr(8));
  if (is_workers) {
    apart.source.stream = name.substr(0, 6);
    apart.source.local_rank = std::stoi(parts[depth - 1]);
    apart.source.attempt = std::stoi(parts[depth - 2].substr(8));
    apart.source.who = "worker" + parts[depth - 1];
    if (apart.source.attempt > 0) apart.source.who += "." + std::to_string(apart.source.attempt);
    parts.resize(depth - 2);
    if (!parts.empty()) apart.run = RunNumber(parts.back());
    if (!apart.run.empty()) parts.pop_back();
  } else {
    if (!IsLogName(name)) return std::nullopt;
    apart.source.who = name.substr(0, name.find('.', 1));
  }
  apart.above = JoinList(parts, "/");
  return apart;
}

}  // namespace

std::vector<LogSource> LogSourcesOf(const std::vector<std::string>& paths) {
  std::vector<TakenApart> all;
  std::map<std::string, std::set<std::string>> runs;   // by the folders above
  for (const std::string& path : paths) {
    auto apart = TakeApart(path);
    if (!apart) continue;
    if (!apart->run.empty()) runs[apart->above].insert(apart->run);
    all.push_back(std::move(*apart));
  }
  std::vector<LogSource> sources;
  for (TakenApart& apart : all) {
    const bool has_several = !apart.run.empty() && runs[apart.above].size() > 1;
    apart.source.host = apart.above;
    if (has_several) apart.source.host += (apart.above.empty() ? "" : "/") + apart.run;
    sources.push_back(std::move(apart.source));
  }
  return sources;
}

bool IsFullLog(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot != std::string::npos && IsNumber(path.substr(dot + 1));
}

bool MayHoldLogs(const std::string& folder_name) {
  return !folder_name.starts_with('.') && !folder_name.starts_with("step-");
}

}  // namespace keel
