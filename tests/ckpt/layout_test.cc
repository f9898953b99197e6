// Tensors find their places, frames never hold two widths, and parts add up.
#include "ckpt/layout.h"

#include <gtest/gtest.h>

#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

TEST(Dtype, NamesReadBack) {
  for (const Dtype dtype : AllDtypes()) {
    ASSERT_OK_AND_ASSIGN(const Dtype parsed, ParseDtype(DtypeName(dtype)));
    EXPECT_EQ(parsed, dtype);
    EXPECT_EQ(DtypeBytes(dtype) % LaneWidth(dtype), 0u);
  }
  EXPECT_EQ(ParseDtype("float32").error().code, Code::kInvalid);
}

TEST(Layout, OrdersByWidthAndAlignsEachTensor) {
  ASSERT_OK_AND_ASSIGN(const Layout layout, Layout::Make({{"a", Dtype::kBf16, {3}},
                                                          {"b", Dtype::kF32, {5}},
                                                          {"c", Dtype::kI64, {1}},
                                                          {"d", Dtype::kF32, {2}},
                                                          {"e", Dtype::kF64, {9}}},
                                                         128));
  const auto& tensors = layout.tensors();
  EXPECT_EQ(tensors[4].offset, 0u);    // f64 first: 72 bytes
  EXPECT_EQ(tensors[1].offset, 128u);  // a new width begins at a new frame
  EXPECT_EQ(tensors[3].offset, 192u);
  EXPECT_EQ(tensors[0].offset, 256u);
  EXPECT_EQ(tensors[2].offset, 384u);  // integers are left to zstd
  EXPECT_EQ(layout.frame_count(), 4u);
  EXPECT_EQ(layout.Frame(0).bytes, 72u);
  EXPECT_EQ(layout.Frame(1).bytes, 72u);
  EXPECT_EQ(layout.Frame(1).width, 4u);
  EXPECT_EQ(layout.Frame(2).width, 2u);
  EXPECT_EQ(layout.Frame(3).width, 1u);
  EXPECT_EQ(layout.PiecesOf(1).size(), 2u);
  EXPECT_EQ(layout.PiecesOf(1)[1].frame_offset, 64u);
}

TEST(Layout, PiecesOfAllFramesCoverEachTensorOnce) {
  for (const uint32_t frame_bytes : {64u, 128u, 4096u}) {
    const TestState state = TestState::Make(3, 700);
    ASSERT_OK_AND_ASSIGN(const Layout layout, Layout::Make(state.specs, frame_bytes));
    std::vector<uint64_t> covered(state.specs.size());
    for (uint64_t frame = 0; frame < layout.frame_count(); ++frame) {
      EXPECT_EQ(layout.PiecesOf(frame).size(), layout.PieceCount(frame));
      for (const Piece& piece : layout.PiecesOf(frame)) {
        EXPECT_EQ(piece.tensor_offset, covered[piece.tensor]);
        covered[piece.tensor] += piece.bytes;
        EXPECT_EQ(LaneWidth(state.specs[piece.tensor].dtype), layout.Frame(frame).width);
        const FrameRange range = layout.FramesOf(piece.tensor);
        EXPECT_TRUE(frame >= range.first && frame < range.end());
      }
    }
    for (size_t i = 0; i < covered.size(); ++i) EXPECT_EQ(covered[i], layout.tensors()[i].bytes);
  }
}

TEST(Layout, PartsHoldEveryFrameOnce) {
  ASSERT_OK_AND_ASSIGN(const Layout layout, Layout::Make({{"a", Dtype::kF32, {1000}}}, 64));
  for (uint32_t parts = 1; parts < 80; ++parts) {
    uint64_t next = 0;
    for (uint32_t part = 0; part < parts; ++part) {
      EXPECT_EQ(layout.PartOf(part, parts).first, next);
      next = layout.PartOf(part, parts).end();
    }
    EXPECT_EQ(next, layout.frame_count());
  }
}

TEST(Layout, RefusesWhatCannotBeStored) {
  const auto code = [](std::vector<TensorSpec> specs, uint32_t frame_bytes = kFrameBytes) {
    const auto layout = Layout::Make(std::move(specs), frame_bytes);
    return layout.ok() ? "fine" : layout.error().message;
  };
  EXPECT_NE(code({{"a", Dtype::kU8, {1}}, {"a", Dtype::kU8, {1}}}).find("'a' is there twice"),
            std::string::npos);
  EXPECT_NE(code({{"", Dtype::kU8, {1}}}).find("empty"), std::string::npos);
  EXPECT_NE(code({{"a\xff", Dtype::kU8, {1}}}).find("UTF-8"), std::string::npos);
  EXPECT_NE(code({{"a\n", Dtype::kU8, {1}}}).find("control"), std::string::npos);
  EXPECT_NE(code({{"a", Dtype::kU8, {-1}}}).find("negative"), std::string::npos);
  EXPECT_NE(code({{"a", Dtype::kF64, {1 << 30, 1 << 30, 1 << 30}}}).find("larger"),
            std::string::npos);
  EXPECT_NE(code({{"a", Dtype::kU8, {int64_t{1} << 55}},
                  {"b", Dtype::kU8, {int64_t{1} << 55}},
                  {"c", Dtype::kU8, {1}}}).find("2^56"),
            std::string::npos);
  EXPECT_NE(code({}, 100).find("multiple of 64"), std::string::npos);
  EXPECT_EQ(code({{"a", Dtype::kU8, {0, int64_t{1} << 62}}, {"\xc3\xa4", Dtype::kU8, {}}}), "fine");
}

TEST(Layout, OfNothingHasNoFrames) {
  ASSERT_OK_AND_ASSIGN(const Layout layout, Layout::Make({}));
  EXPECT_EQ(layout.frame_count(), 0u);
  EXPECT_EQ(layout.PartOf(2, 3).count, 0u);
}

}  // namespace
}  // namespace keel
