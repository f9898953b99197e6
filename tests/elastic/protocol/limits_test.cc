// PROTOCOL.md's table of limits has the numbers that the code has.
#include "elastic/protocol/limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "base/text.h"
#include "tests/support/file_text.h"

namespace keel {
namespace {

struct Row {
  std::string wait;
  std::string limit;
  bool operator==(const Row&) const = default;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.wait << " | " << row.limit; }

// The first two cells of each row of a table: of section 11, or of section 12.
std::vector<Row> RowsOfDocument(const std::string& heading, const std::string& what_follows) {
  const std::string text = ReadFile(KEEL_SOURCE_DIR "/elastic/PROTOCOL.md");
  const size_t start = text.find(heading);
  const size_t end = text.find(what_follows, start);
  EXPECT_NE(end, std::string::npos) << "there is another table, or it has another place";
  if (end == std::string::npos) return {};
  std::vector<Row> rows;
  for (const std::string& line : SplitList(text.substr(start, end - start), '\n')) {
    const std::vector<std::string> cells = SplitList(line, '|');
    rows.push_back({cells.at(0), cells.at(1)});
  }
  rows.erase(rows.begin(), rows.begin() + 2);   // the heading
  return rows;
}

std::string Text(Duration limit) {
  if (limit < std::chrono::seconds(1)) {
    return std::to_string(limit / std::chrono::milliseconds(1)) + " ms";
  }
  return std::to_string(limit / std::chrono::seconds(1)) + " s";
}
std::string Part(int part) { return part == 3 ? "a third" : "1/" + std::to_string(part); }
std::string Times(int times) {
  return times == 10 ? "ten times" : times == 4 ? "four times" : std::to_string(times) + " times";
}

std::vector<Row> HostRows() {
  return {
      {"for the store at the endpoint", "`join_timeout` " + Text(kJoinLimit)},
      {"for the store of a foreign epoch to be opened",
       Text(kEpochStoreLimit) + "; a module that does not load ends the job (1) as soon as a "
                                "worker, or the board, needs it"},
      {"for MIN hosts", "`join_timeout` " + Text(kJoinLimit)},
      {"for more than MIN", "`last_call_timeout` " + Text(kLastCallLimit) + "; " +
                                Text(kRejoinLimit) + " where hosts were members before"},
      {"beats", "`keep_alive_interval` " + Text(kBeatInterval) + " × `keep_alive_max_attempt` " +
                    std::to_string(kBeatsMissedMax) + "; " + Times(kOwnBeatLimits) +
                    " that for the host in the coordinator's own process"},
      {"a worker parks", "`park_limit` " + Text(kParkLimit)},
      {"a worker stops, or ends after its `bye`", "`--shutdown-timeout` " + Text(kShutdownLimit)},
      {"a lost host that may run on alone", "`fence_limit` " + Text(kFenceLimit)},
      {"a worker, for its supervisor to say anything",
       "`quiet_limit`: as `store_limit`, at least " + Text(kQuietLimitMin)},
      {"exec to ready", "`start_limit` " + Text(kStartLimit)},
      {"a closed presence connection", "`presence_grace` " + Text(kPresenceGrace)},
      // Each service has its own (elastic/notice/services.cc).
      {"a metadata service, for one answer", "2 to 25 s; Azure's first one 130 s"},
  };
}

std::vector<Row> LastRows() {
  return {
      {"a stop: to save", "the wish's deadline; `save_limit` where the job ends by itself"},
      {"a stop, where neither the worker gets on nor the store is reached",
       Part(kAlonePart) + " of that deadline, at least " + Text(kAloneLimitMin)},
      {"a stop: all hosts", "that deadline and `stop_grace` " + Text(kStopGrace)},
      {"the doctor: for the other hosts, and then for what each has seen",
       "`--doctor-limit` " + Text(kDoctorLimit) + "; " + Text(kDoctorTellLimit)},
      {"the end: that all members read it", "`close_limit` " + Text(kCloseLimit)},
      {"a worker that closed its link, or got a signal to write its stacks", Text(kLinkGrace)},
      {"`epoch` to the first `at`", "`enter_limit` " + Text(kEnterLimit)},
      {"nothing moves", "`--hang-limit` auto: " + std::to_string(kHangSteps) +
                            " × the median step, at least " + Text(kHangLimitMin) +
                            "; given: at least " + Text(kHangLook)},
      {"nothing moves, while the job stops",
       Part(kStopPart) + " of the stop's deadline, if that is less"},
      {"nothing moves, and all workers of several are in their own code",
       Times(kOwnCodeLimits) + " that limit; a warning at the limit"},
  };
}

TEST(Limits, AreThoseOfTheProtocolsTable) {
  std::vector<Row> wanted = HostRows();
  const std::vector<Row> last = LastRows();
  wanted.insert(wanted.end(), last.begin(), last.end());
  EXPECT_EQ(RowsOfDocument("| wait | limit | named |", "\n## 12."), wanted);
  EXPECT_EQ(kLinkGrace, kStacksLimit) << "they share a row";
}

TEST(Limits, OfWhoCoordinatesAreThoseOfTheProtocolsTable) {
  const std::vector<Row> wanted = {
      {"for an heir that is asked to open the next board",
       "`kHeirLimit` " + DurationText(kHeirLimit)},
      {"no epoch is formed during a hand-over",
       "`kHandOverPatience` " + DurationText(kHandOverPatience)},
      {"a launcher that ends, for its role to be taken",
       "`kHandOverLimit` " + DurationText(kHandOverLimit)},
      {"each heir after the one before it, where the coordinator's machine refuses",
       "`kTurnAfterRefusal` " + DurationText(kTurnAfterRefusal)},
      {"the same, where it is silent",
       "`beat_limit`, then `kTurnAfterSilence` " + DurationText(kTurnAfterSilence)},
      {"a coordinator was heard lately", "`kHeardLately` " + DurationText(kHeardLately)},
      {"a silent place that another job's store names", "`fence_limit` " + Text(kFenceLimit)},
      {"for a quorum", "`store_limit` " + Text(kStoreLimit)},
  };
  EXPECT_EQ(RowsOfDocument("| wait | limit |\n", "\n### What holds"), wanted);
}

TEST(Limits, OfTheTextAreThoseOfTheTable) {
  std::string text = ReadFile(KEEL_SOURCE_DIR "/elastic/PROTOCOL.md");
  std::replace(text.begin(), text.end(), '\n', ' ');
  for (const std::string& words :
       {"`store_limit` (" + Text(kStoreLimit) + ")",
        "`presence_grace` (" + Text(kPresenceGrace) + ")",
        "it is told every " + Text(kWaitTold) + ":",
        Part(kAlonePart) + " of its time (at least " + Text(kAloneLimitMin) + ")"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words;
  }
}

}  // namespace
}  // namespace keel
