// TransferPlan: every byte once, and work shared.
#include "trainer/exchange/transfer_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.h"

namespace keel {
namespace {

TEST(TransferPlan, PiecesCoverEveryByteOnceInOrder) {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<uint64_t> sizes(random.Uniform(8));
    for (uint64_t& size : sizes) size = random.Uniform(100);
    const uint64_t most = 1 + random.Uniform(40);
    std::vector<uint64_t> covered(sizes.size(), 0);
    const auto pieces = CutPieces(sizes, most);
    for (const TransferPiece& piece : pieces) {
      uint64_t bytes = 0;
      for (const TransferSpan& span : piece.spans) {
        EXPECT_EQ(span.offset, covered[span.tensor]);
        EXPECT_GT(span.bytes, 0u);
        covered[span.tensor] += span.bytes;
        bytes += span.bytes;
      }
      EXPECT_EQ(bytes, piece.bytes);
      EXPECT_LE(bytes, most);
    }
    EXPECT_EQ(covered, sizes);
    for (size_t i = 0; i + 1 < pieces.size(); ++i) EXPECT_EQ(pieces[i].bytes, most);
  }
}

TEST(TransferPlan, SourcesAndNeedySharePiecesEvenly) {
  for (int sources = 1; sources <= 5; ++sources) {
    for (int needy = 1; needy <= 5; ++needy) {
      std::vector<int> from, to;
      for (int i = 0; i < sources; ++i) from.push_back(i);
      for (int i = 0; i < needy; ++i) to.push_back(100 + i);
      std::map<int, int> sent, passed;
      const int pieces = sources * needy * 4;
      for (int i = 0; i < pieces; ++i) {
        const TransferRoute route = RouteOf(static_cast<size_t>(i), from, to);
        ++sent[route.source];
        ++passed[route.first];
      }
      for (const auto& [rank, count] : sent) EXPECT_EQ(count, pieces / sources) << rank;
      for (const auto& [rank, count] : passed) EXPECT_EQ(count, pieces / needy) << rank;
      EXPECT_EQ(sent.size(), static_cast<size_t>(sources));
      EXPECT_EQ(passed.size(), static_cast<size_t>(needy));
    }
  }
}

}  // namespace
}  // namespace keel
