// SerialQueue: order, draining, and nothing lost at the end.
#include "trainer/group/serial_queue.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <vector>

namespace keel {
namespace {

TEST(SerialQueue, RunsJobsInOrder) {
  std::vector<int> seen;
  SerialQueue queue;
  for (int i = 0; i < 1000; ++i) queue.Submit([&seen, i] { seen.push_back(i); });
  queue.Drain();
  ASSERT_EQ(seen.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
}

TEST(SerialQueue, WhatWasSubmittedRunsBeforeTheQueueIsGone) {
  int ran = 0;
  {
    SerialQueue queue;
    for (int i = 0; i < 100; ++i) queue.Submit([&ran] { ++ran; });
  }
  EXPECT_EQ(ran, 100);
}

TEST(SerialQueue, SaysWhetherItIsDrainedInTime) {
  std::promise<void> go;
  SerialQueue queue;
  queue.Submit([&go] { go.get_future().wait(); });
  EXPECT_FALSE(queue.DrainFor(std::chrono::milliseconds(1)));
  go.set_value();
  EXPECT_TRUE(queue.DrainFor(std::chrono::seconds(60)));
}

TEST(SerialQueue, WhatAJobHoldsIsGoneOnceItIsDrained) {
  const auto held = std::make_shared<int>(1);
  SerialQueue queue;
  for (int i = 0; i < 100; ++i) {
    queue.Submit([held] { (void)*held; });
    queue.Drain();
    EXPECT_EQ(held.use_count(), 1);
  }
}

}  // namespace
}  // namespace keel
