// Causes come in the order of kDeathCauses.
#include "elastic/report/blame_words.h"

#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "elastic/protocol/records.h"

namespace keel {

int64_t DeathCount(const HostBlame& blame) {
  int64_t count = 0;
  for (const DeathCause& cause : kDeathCauses) count += blame.*cause.count;
  return count;
}

std::string DeathsText(const HostBlame& blame) {
  std::vector<std::string> words;
  for (const DeathCause& cause : kDeathCauses) {
    const int64_t count = blame.*cause.count;
    if (count > 0) words.push_back(std::to_string(count) + " " + cause.words);
  }
  return words.empty() ? "none" : JoinList(words, ", ");
}

std::string BlameText(const HostBlame& blame, const std::string& health) {
  std::vector<std::string> words;
  const std::string deaths = DeathsText(blame);
  if (deaths != "none") words.push_back("workers that died: " + deaths);
  const WorkerChecks& checks = blame.checks;
  if (checks.differences > 0) {
    words.push_back(std::to_string(checks.differences) + " of " +
                    CountText(static_cast<uint64_t>(checks.rechecks), "comparison") +
                    " came out differently");
  }
  if (checks.slow_steps > 0) {
    words.push_back(CountText(static_cast<uint64_t>(checks.slow_steps), "step") +
                    " much slower than those of most");
  }
  if (!health.empty() && health != kHealthGood) words.push_back("not fit");
  return words.empty() ? "" : "  this host: " + JoinList(words, "; ") + "\n";
}

Json BlameJson(const HostBlame& blame) {
  Json deaths = Json::object();
  for (const DeathCause& cause : kDeathCauses) deaths[cause.name] = blame.*cause.count;
  return {{"deaths", std::move(deaths)},
          {"rechecks", blame.checks.rechecks},
          {"differences", blame.checks.differences},
          {"slow_steps", blame.checks.slow_steps}};
}

}  // namespace keel
