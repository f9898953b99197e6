// Loading ahead changes nothing: each request gets what it asked for, however requests come.
#include "trainer/data/load_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "base/random.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

// What is loaded says for whom.
std::string Text(const LoadRequest& request) {
  return std::to_string(request.step) + "." + std::to_string(request.cursor) + "." +
         std::to_string(request.lane);
}

// Counts what is loaded, and fails where it is told to.
struct Source {
  std::mutex mutex;
  std::multiset<std::string> loaded;
  std::string bad;

  LoadAhead<std::string>::Spec Spec(int threads, size_t ahead) {
    return {.load = [this](const LoadRequest& request) -> Result<std::string> {
              const std::lock_guard lock(mutex);
              loaded.insert(Text(request));
              if (Text(request) == bad) return Error{Code::kInvalid, "sample 7 is unreadable"};
              return Text(request);
            },
            .threads = threads,
            .ahead = ahead};
  }
  size_t count() {
    const std::lock_guard lock(mutex);
    return loaded.size();
  }
};

constexpr uint64_t kPerStep = 12;
LoadRequest At(uint64_t step, int lane) { return {step, step * kPerStep, lane}; }

void TakeStep(LoadAhead<std::string>& loader, uint64_t step, const LoadOrder& order) {
  for (int lane = order.lanes.begin; lane < order.lanes.end; ++lane) {
    ASSERT_OK_AND_ASSIGN(const std::string got, loader.Take(At(step, lane), order));
    EXPECT_EQ(got, Text(At(step, lane)));
  }
}

TEST(LoadAhead, LoadsEachRequestOnceInAQuietRun) {
  for (const int threads : {1, 3}) {
    Source source;
    {
      LoadAhead<std::string> loader(source.Spec(threads, 5));
      for (uint64_t step = 0; step < 20; ++step) TakeStep(loader, step, {{2, 5}, kPerStep, 20});
    }
    EXPECT_EQ(source.loaded.size(), 60u);
    EXPECT_EQ(std::set(source.loaded.begin(), source.loaded.end()).size(), 60u);
  }
}

// Beside the order, the dataset is not asked by more threads at once, and nothing is loaded twice.
TEST(LoadAhead, OneBesideTheOrderIsLoadedNextAndTheOthersStay) {
  for (const int threads : {1, 3}) {
    Source source;
    {
      LoadAhead<std::string> loader(source.Spec(threads, 5));
      for (uint64_t step = 0; step < 20; ++step) {
        {
          const std::lock_guard lock(source.mutex);
          source.bad = step == 7 ? Text(At(7, 9)) : "";
        }
        const Result<std::string> got = loader.TakeBeside(At(step, 9));
        EXPECT_EQ(got.ok(), step != 7);
        if (got.ok()) {
          EXPECT_EQ(*got, Text(At(step, 9)));
        }
        TakeStep(loader, step, {{2, 5}, kPerStep, 20});
      }
    }
    EXPECT_EQ(source.loaded.size(), 80u);
    EXPECT_EQ(std::set(source.loaded.begin(), source.loaded.end()).size(), 80u);
  }
}

TEST(LoadAhead, NeverLoadsMoreThanItMayHold) {
  Source source;
  const LoadOrder order{{0, 4}, kPerStep, 100};
  LoadAhead<std::string> loader(source.Spec(2, 3));
  for (size_t taken = 1; taken <= 40; ++taken) {
    const auto number = static_cast<uint64_t>(taken - 1);
    ASSERT_OK(loader.Take(At(number / 4, static_cast<int>(number % 4)), order));
    EXPECT_LE(source.count(), taken + 3);
  }
}

TEST(LoadAhead, AStepThatIsRedoneOrGoesToOtherLanesGetsItsOwn) {
  const uint64_t seed = EntropySeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int run = 0; run < 20; ++run) {
    Source source;
    LoadAhead<std::string> loader(source.Spec(1 + static_cast<int>(random.Uniform(3)),
                                              1 + random.Uniform(9)));
    LoadOrder order{{0, 6}, kPerStep, 30};
    for (uint64_t step = 0; step < 30;) {
      if (random.Chance(0.3)) {   // a break, in the middle of a step
        const int done = static_cast<int>(random.Uniform(6));
        for (int lane = order.lanes.begin; lane < order.lanes.end && lane < done; ++lane) {
          ASSERT_OK(loader.Take(At(step, lane), order));
        }
        const int begin = static_cast<int>(random.Uniform(6));
        order.lanes = {begin, begin + 1 + static_cast<int>(random.Uniform(6 - begin))};
      }
      TakeStep(loader, step++, order);
      if (random.Chance(0.1)) step -= random.Uniform(step + 1);   // an older state was taken over
    }
  }
}

TEST(LoadAhead, KeepsWhatStillFits) {
  Source source;
  const LoadOrder order{{0, 4}, kPerStep, 100};
  LoadAhead<std::string> loader(source.Spec(1, 4));
  ASSERT_OK(loader.Take(At(0, 0), order));
  // As if the break had come with lane 1 loaded: the redone step loads lane 0 alone anew.
  for (int lane = 0; lane < 4; ++lane) ASSERT_OK(loader.Take(At(0, lane), order));
  const std::lock_guard lock(source.mutex);
  EXPECT_EQ(source.loaded.count(Text(At(0, 0))), 2u);
  for (int lane = 1; lane < 4; ++lane) EXPECT_EQ(source.loaded.count(Text(At(0, lane))), 1u);
}

TEST(LoadAhead, AnErrorComesOutAtItsRequestAndNotBefore) {
  Source source;
  source.bad = Text(At(1, 1));
  const LoadOrder order{{0, 2}, kPerStep, 100};
  LoadAhead<std::string> loader(source.Spec(2, 6));
  TakeStep(loader, 0, order);
  ASSERT_OK(loader.Take(At(1, 0), order));
  const auto bad = loader.Take(At(1, 1), order);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().message, "sample 7 is unreadable");
  {
    const std::lock_guard lock(source.mutex);
    source.bad.clear();
  }
  TakeStep(loader, 1, order);   // redone: the disk is back
}

TEST(LoadOrder, EndsWithTheJob) {
  const LoadOrder order{{1, 3}, 8, 2};
  EXPECT_EQ(order.After({0, 0, 1}), (LoadRequest{0, 0, 2}));
  EXPECT_EQ(order.After({0, 0, 2}), (LoadRequest{1, 8, 1}));
  EXPECT_EQ(order.After({1, 8, 2}), std::nullopt);
}

}  // namespace
}  // namespace keel
