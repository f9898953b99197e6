// Slices: against a reference that tries every element, and what the error messages say.
#include "tools/keel/slice.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <optional>
#include <string>

#include "base/random.h"
#include "ckpt/layout.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

using Shape = std::vector<int64_t>;

std::vector<uint64_t> ElementsOf(const Slice& slice) {
  std::vector<uint64_t> elements;
  SliceRuns runs(slice);
  for (ElementRun run; runs.Next(&run);) {
    for (uint64_t i = 0; i < run.count; ++i) {
      elements.push_back(run.first + i * static_cast<uint64_t>(run.step));
    }
  }
  return elements;
}

std::vector<uint64_t> Elements(const std::string& text, const Shape& shape) {
  const auto slice = Slice::Parse(text, shape);
  EXPECT_TRUE(slice.ok()) << slice.error().message;
  return slice.ok() ? ElementsOf(*slice) : std::vector<uint64_t>();
}

std::string ErrorOf(const std::string& text, const Shape& shape) {
  const auto slice = Slice::Parse(text, shape);
  EXPECT_FALSE(slice.ok()) << text;
  return slice.ok() ? "" : slice.error().message;
}

TEST(Slice, NothingMeansAll) {
  EXPECT_EQ(Elements("", {2, 3}), (std::vector<uint64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(Elements(" ... ", {2, 3}), Elements("", {2, 3}));
  EXPECT_EQ(Elements("[:]", {2, 3}), Elements("", {2, 3}));
  EXPECT_EQ(Elements("", {}), std::vector<uint64_t>{0}) << "a scalar";
  EXPECT_EQ(Elements("...", {}), std::vector<uint64_t>{0});
  EXPECT_TRUE(Elements("", {0, 4}).empty());
}

// As python3 -c "print(list(range(5))[...])" prints them.
TEST(Slice, PicksWhatPythonPicks) {
  const std::pair<const char*, std::vector<uint64_t>> rows[] = {
      {"1:3", {1, 2}},       {":2", {0, 1}},          {"3:", {3, 4}},
      {"-2:", {3, 4}},       {":-3", {0, 1}},         {"::2", {0, 2, 4}},
      {"1::3", {1, 4}},      {"::-1", {4, 3, 2, 1, 0}}, {"3:0:-2", {3, 1}},
      {"-1:-4:-1", {4, 3, 2}}, {"2::-1", {2, 1, 0}},  {":2:-1", {4, 3}},
      {"7:", {}},            {"3:1", {}},             {"-9:2", {0, 1}},
      {":99", {0, 1, 2, 3, 4}}, {"99::-2", {4, 2, 0}}, {"0:-9:-1", {0}},
      {"::9223372036854775807", {0}}, {"::-9223372036854775808", {4}},
      {"-9223372036854775808:9223372036854775807", {0, 1, 2, 3, 4}}};
  for (const auto& [text, expected] : rows) EXPECT_EQ(Elements(text, {5}), expected) << text;
}

TEST(Slice, WholeNumbersTakeTheirDimensionAway) {
  const auto slice = Slice::Parse("0:10, 3, ::2, -1", {4, 5, 6, 7});
  ASSERT_OK(slice);
  EXPECT_EQ(slice->shape(), (Shape{4, 3}));
  EXPECT_EQ(slice->count(), 12u);
  EXPECT_EQ(ElementsOf(*slice).front(), 3u * 42 + 6);
  EXPECT_EQ(Slice::Parse("..., -1", {2, 3, 4})->shape(), (Shape{2, 3}));
  EXPECT_EQ(Slice::Parse("0, ..., 0", {2, 3, 4})->shape(), (Shape{3}));
  EXPECT_EQ(Slice::Parse("1,", {2, 3, 4})->shape(), (Shape{3, 4}));
  EXPECT_EQ(Slice::Parse("1, 2, 3", {2, 3, 4})->shape(), Shape{});
}

TEST(Slice, ErrorsNameTheDimensionAndItsSize) {
  EXPECT_EQ(ErrorOf("0, 3", {2, 3}),
            "slice '0, 3' of shape [2, 3]: index 3 is not in dimension 1, which has 3 elements: -3 "
            "to 2 are");
  EXPECT_NE(ErrorOf("..., -4", {2, 3}).find("dimension 1, which has 3"), std::string::npos);
  EXPECT_NE(ErrorOf("0", {0, 4}).find("dimension 0, which has 0 elements"), std::string::npos);
  EXPECT_NE(ErrorOf("::0", {4}).find("a step of 0"), std::string::npos);
  EXPECT_NE(ErrorOf("1:2:3:4", {9}).find("start:stop:step"), std::string::npos);
  EXPECT_NE(ErrorOf("0, 0, 0", {2, 3}).find("3 dimensions are named, the tensor has 2"),
            std::string::npos);
  EXPECT_NE(ErrorOf("0", {}).find("the tensor has 0"), std::string::npos);
  EXPECT_NE(ErrorOf("..., ...", {2}).find("only once"), std::string::npos);
  for (const char* text : {"x", "1.5", ",", "1:,x", "1 2", "None", "[0", "1,,2", "0x1", ":a"}) {
    EXPECT_NE(ErrorOf(text, {4, 4, 4}).find("dimension"), std::string::npos) << text;
  }
}

TEST(Slice, HugeEmptyShapesAreNoTrouble) {
  const int64_t huge = INT64_MAX;
  EXPECT_EQ(Slice::Parse("", {huge, 0, huge})->count(), 0u);
  EXPECT_EQ(Slice::Parse("-1, ..., ::-3", {huge, 0, huge})->count(), 0u);
}

// --- random slices against a reference ---

struct AxisText {
  bool is_index = false;
  std::optional<int64_t> start, stop, step;
};

// Whether Python's slice takes element i, by the words of its documentation and no formula: walk
// from the start by the step until the stop is reached.
std::vector<int64_t> Walked(const AxisText& axis, int64_t size) {
  if (axis.is_index) return {*axis.start < 0 ? *axis.start + size : *axis.start};
  const int64_t step = axis.step.value_or(1);
  const auto from_end = [&](int64_t end) { return end < 0 ? end + size : end; };
  int64_t at = step > 0 ? 0 : size - 1;
  if (axis.start.has_value()) {
    at = from_end(*axis.start);
    if (step > 0 && at < 0) at = 0;
    if (step < 0 && at >= size) at = size - 1;
  }
  std::vector<int64_t> taken;
  for (; at >= 0 && at < size; at += step) {
    const bool is_past = axis.stop.has_value() && (step > 0 ? at >= from_end(*axis.stop)
                                                            : at <= from_end(*axis.stop));
    if (is_past) break;
    taken.push_back(at);
  }
  return taken;
}

std::vector<uint64_t> Reference(const std::vector<AxisText>& axes, const Shape& shape) {
  std::vector<uint64_t> elements{0};
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    std::vector<uint64_t> longer;
    for (const uint64_t before : elements) {
      for (const int64_t index : Walked(axes[axis], shape[axis])) {
        longer.push_back(before * static_cast<uint64_t>(shape[axis]) +
                         static_cast<uint64_t>(index));
      }
    }
    elements = longer;
  }
  return elements;
}

std::optional<int64_t> RandomEnd(Random& random, int64_t size) {
  if (random.Chance(0.5)) return std::nullopt;
  return static_cast<int64_t>(random.Uniform(4 * static_cast<uint64_t>(size) + 4)) - 2 * size - 2;
}

AxisText RandomAxis(Random& random, int64_t size) {
  if (size > 0 && random.Chance(0.2)) {
    const auto bound = 2 * static_cast<uint64_t>(size);
    return {true, static_cast<int64_t>(random.Uniform(bound)) - size, {}, {}};
  }
  AxisText axis{false, RandomEnd(random, size), RandomEnd(random, size), {}};
  if (random.Chance(0.6)) axis.step = static_cast<int64_t>(random.Uniform(9)) - 4;
  if (axis.step == 0) axis.step.reset();
  return axis;
}

std::string TextOf(const AxisText& axis) {
  if (axis.is_index) return std::to_string(*axis.start);
  const auto text = [](std::optional<int64_t> end) {
    return end.has_value() ? std::to_string(*end) : std::string();
  };
  return text(axis.start) + ":" + text(axis.stop) +
         (axis.step.has_value() ? ":" + text(axis.step) : "");
}

TEST(Slice, RandomSlicesPickWhatTheReferencePicks) {
  const uint64_t seed = 20261121;
  Random random(seed);
  std::printf("seed %d\n", static_cast<int>(seed));
  uint64_t picked = 0;
  for (int round = 0; round < 5000; ++round) {
    Shape shape(random.Uniform(5));
    for (int64_t& size : shape) {
      size = random.Chance(0.05) ? 0 : static_cast<int64_t>(random.Uniform(7) + 1);
    }
    std::vector<AxisText> axes;
    std::string text;
    for (const int64_t size : shape) {
      axes.push_back(RandomAxis(random, size));
      text += (text.empty() ? "" : random.Chance(0.5) ? "," : " , ") + TextOf(axes.back());
    }
    const auto slice = Slice::Parse(text, shape);
    ASSERT_OK(slice) << "round " << round;
    const std::vector<uint64_t> expected = Reference(axes, shape);
    ASSERT_EQ(ElementsOf(*slice), expected) << text << " of " << ShapeText(shape);
    ASSERT_EQ(slice->count(), expected.size());
    uint64_t count = 1;
    for (const int64_t size : slice->shape()) count *= static_cast<uint64_t>(size);
    ASSERT_EQ(count, expected.size()) << text << " of " << ShapeText(shape);
    picked += expected.size();
  }
  EXPECT_GT(picked, 10'000u) << "most slices pick nothing: the test tests nothing";
}

}  // namespace
}  // namespace keel
