// Evidence of a lane: what is written is read back as it was, also how it lay in memory.
#include "trainer/loop/evidence.h"

#include <gtest/gtest.h>

#include "base/memory_files.h"
#include "tests/harness/expect_ok.h"
#include "tests/trainer/small_state.h"
#include "trainer/state/image.h"

namespace keel {
namespace {

// Kernels of convolutions and BatchNorm come to other bits where it lies otherwise.
TEST(Evidence, ABatchLiesInMemoryAsItDid) {
  const auto state = StateOf("mlp", 1);
  MemoryFiles files;
  LaneEvidence evidence{.step = 3, .lane = 1};
  for (const NamedTensor& one : state->model().tensors.parameters) {
    evidence.parameters.push_back(one.name);
  }
  Batch batch;
  batch.data = at::rand({2, 4, 4, 3}).permute({0, 3, 1, 2});
  batch.target = at::rand({2, 3});
  batch.more = {at::rand({3, 2}).t(), at::rand({4}).expand({2, 4})};
  evidence.batch = batch;
  ASSERT_OK(WriteEvidence(files, "/e.safetensors", evidence, AsSaved(state->model().tensors)));
  const auto read = ReadEvidence(files, "/e.safetensors", *state);
  ASSERT_OK(read);
  ASSERT_TRUE(read->batch.has_value());
  EXPECT_TRUE(read->batch->data.equal(batch.data));
  EXPECT_EQ(read->batch->data.strides(), batch.data.strides());
  EXPECT_TRUE(read->batch->target.is_contiguous());
  EXPECT_EQ(read->batch->more[0].strides(), batch.more[0].strides());
  // Memory that several elements share is given to each of them.
  EXPECT_TRUE(read->batch->more[1].equal(batch.more[1]));
}

}  // namespace
}  // namespace keel
