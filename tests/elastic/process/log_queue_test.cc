// A log whose console takes a part of it.
#include "elastic/process/log_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "base/json.h"

namespace keel {
namespace {

TEST(LogQueue, OfWhatAFullDiskDidNotTakeTheNextLineTells) {
  std::string disk;
  size_t room = 10;
  LogQueue queue([&](std::string_view line, const CancelToken&) {
    const size_t fits = std::min(room, line.size());
    disk += line.substr(0, fits);
    room -= fits;
    return fits;
  });
  const auto add = [&](std::string_view line) {
    queue.Add(line);
    EXPECT_TRUE(queue.Flush(RealClock().Monotonic() + std::chrono::minutes(1)));
  };
  add("first\n");
  add("second\n");
  add("third\n");
  room = 1000;
  add("fourth\n");
  EXPECT_EQ(disk,
            "first\nseco\n"
            "... 2 lines of the log are missing here: stderr did not take them ...\n"
            "fourth\n");
}

TEST(LogQueue, ALineOfAnySizeIsTakenWhereNothingWaits) {
  std::string disk;
  LogQueue queue([&](std::string_view line, const CancelToken&) {
    disk += line;
    return line.size();
  });
  const std::string large = std::string(3 << 20, 'x') + "\n";
  queue.Add(large);
  EXPECT_TRUE(queue.Flush(RealClock().Monotonic() + std::chrono::minutes(1)));
  EXPECT_TRUE(disk == large) << disk.size();
}

TEST(LogQueue, WhatIsLostLastIsToldAtTheEndInTheFormOfTheLog) {
  std::string disk;
  bool is_full = true;
  LogQueue queue([&](std::string_view line, const CancelToken&) {
    if (is_full) return size_t{0};
    disk += line;
    return line.size();
  });
  const auto flush = [&] {
    EXPECT_TRUE(queue.Flush(RealClock().Monotonic() + std::chrono::minutes(1)));
  };
  queue.Add("{\"event\":\"first\"}\n");
  queue.Add("{\"event\":\"second\"}\n");
  flush();
  is_full = false;
  flush();
  const auto note = ParseJson(disk);
  ASSERT_TRUE(note.ok()) << disk;
  EXPECT_EQ((*note)["level"], "warn");
  EXPECT_EQ((*note)["event"], "log-lines-missing");
  EXPECT_EQ((*note)["lines"], 2);
  flush();
  EXPECT_EQ(std::count(disk.begin(), disk.end(), '\n'), 1) << "it is told once";
}

}  // namespace
}  // namespace keel
