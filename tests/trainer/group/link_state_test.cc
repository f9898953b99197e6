// The states of a link over NCCL, as the table in its header has them.
#include "trainer/group/nccl/link_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace keel {
namespace {

using S = LinkState;
using E = LinkEvent;

// The rows of the table, as words.
std::vector<std::vector<std::string>> Table() {
  std::ifstream file(KEEL_SOURCE_DIR "/trainer/group/nccl/link_state.h");
  std::vector<std::vector<std::string>> rows;
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("//   ")) continue;
    std::vector<std::string> row;
    std::string word;
    for (std::istringstream words(line.substr(5)); words >> word;) {
      if (word != "|") row.push_back(word);
    }
    rows.push_back(row);
  }
  return rows;
}

TEST(LinkState, GoesWhereTheTableSays) {
  const std::vector<std::vector<std::string>> table = Table();
  ASSERT_EQ(table.size(), kLinkStateNames.size() + 1);
  const std::vector<std::pair<std::string, E>> events = {
      {"ready", E::kReady}, {"enqueue", E::kEnqueue}, {"done", E::kDone}, {"failed", E::kFailed},
      {"abort", E::kAbort}, {"leave", E::kLeave}, {"stopped", E::kStopped}};
  ASSERT_EQ(table[0].size(), events.size() + 1);
  for (size_t state = 0; state < kLinkStateNames.size(); ++state) {
    const std::vector<std::string>& row = table[state + 1];
    ASSERT_EQ(row[0], kLinkStateNames[state]);
    for (size_t event = 0; event < events.size(); ++event) {
      ASSERT_EQ(table[0][event + 1], events[event].first);
      const S next = After(static_cast<S>(state), events[event].second);
      const std::string expected = row[event + 1] == "-" ? row[0] : row[event + 1];
      EXPECT_EQ(NameOf(next), expected) << row[0] << ", " << events[event].first;
    }
  }
}

// Whatever happens before, an abort and the ends of what it begins lead out of it.
TEST(LinkState, EndsFromEverywhereOnceItIsAborted) {
  for (size_t state = 0; state < kLinkStateNames.size(); ++state) {
    S now = After(static_cast<S>(state), E::kAbort);
    for (const E event : {E::kStopped, E::kDone}) now = After(now, event);
    EXPECT_EQ(now, S::kGone) << kLinkStateNames[state];
  }
}

}  // namespace
}  // namespace keel
