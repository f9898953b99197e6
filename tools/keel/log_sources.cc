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

// "keelrun" of "keelrun.log"; empty: it is no log's name.
std::string WithoutEnding(const std::string& name) {
  for (const std::string end : {".log", ".err", ".out", ".jsonl", ".txt"}) {
    if (name == end) return name;
    if (name.ends_with(end)) return name.substr(0, name.size() - end.size());
  }
  return "";
}

// The same, and of "keelrun.log.1", which is what it is called once it is full. Where there is no
// "keelrun.log" it is no full log, but "keelrun.1".
std::string WhoOf(const std::string& path, const std::string& name,
                  const std::set<std::string>& paths) {
  const std::string before = LogBefore(name);
  if (before.empty()) return WithoutEnding(name);
  const std::string who = WithoutEnding(before);
  return who.empty() || paths.contains(LogBefore(path)) ? who : who + name.substr(before.size());
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

std::optional<TakenApart> TakeApart(const std::string& path,
                                    const std::set<std::string>& all) {
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
    apart.source.who = WhoOf(path, name, all);
    if (apart.source.who.empty()) return std::nullopt;
  }
  apart.above = JoinList(parts, "/");
  return apart;
}

}  // namespace

std::vector<LogSource> LogSourcesOf(const std::vector<std::string>& paths) {
  const std::set<std::string> known(paths.begin(), paths.end());
  std::vector<TakenApart> all;
  std::map<std::string, std::set<std::string>> runs;   // by the folders above
  for (const std::string& path : paths) {
    auto apart = TakeApart(path, known);
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

std::vector<std::string> RootNamesOf(const std::vector<std::string>& roots) {
  std::vector<std::vector<std::string>> all;
  size_t most = 1;
  for (const std::string& root : roots) {
    all.push_back(SplitList(root, '/'));
    std::erase_if(all.back(), [](const std::string& part) { return part.empty() || part == "."; });
    if (all.back().empty()) all.back().push_back(root.starts_with('/') ? "/" : ".");
    most = std::max(most, all.back().size());
  }
  const auto ends_alike = [&] {
    return all.size() > 1 && std::all_of(all.begin(), all.end(), [&](const auto& parts) {
             return parts.size() > 1 && parts.back() == all.front().back();
           });
  };
  while (ends_alike()) {
    for (auto& parts : all) parts.pop_back();
  }
  std::vector<std::string> names;
  for (size_t count = 1; count <= most; ++count) {
    names.clear();
    for (const auto& parts : all) {
      const size_t left_out = parts.size() - std::min(count, parts.size());
      names.push_back(JoinList({parts.begin() + static_cast<ptrdiff_t>(left_out), parts.end()},
                               "/"));
    }
    if (std::set<std::string>(names.begin(), names.end()).size() == names.size()) break;
  }
  return names;
}

std::string LogBefore(const std::string& path) {
  const size_t dot = path.rfind('.');
  const bool has_number = dot != std::string::npos && IsNumber(path.substr(dot + 1));
  return has_number ? path.substr(0, dot) : "";
}

bool MayHoldLogs(const std::string& folder_name) {
  return !folder_name.starts_with('.') && !folder_name.starts_with("step-");
}

}  // namespace keel
