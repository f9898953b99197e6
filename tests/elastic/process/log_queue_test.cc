// A log whose console takes a part of it.
#include "elastic/process/log_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

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

}  // namespace
}  // namespace keel
