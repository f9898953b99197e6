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

// A loss may read it.
TEST(Evidence, WhatTheProgramKeepsIsReadIfItIsThere) {
  const auto state = StateOf("mlp", 1);
  const at::Tensor kept = at::full({3}, 2.5);
  state->program().kept = {{"scale", kept}};
  MemoryFiles files;
  LaneEvidence evidence{.step = 3, .lane = 1};
  for (const NamedTensor& one : state->model().tensors.parameters) {
    evidence.parameters.push_back(one.name);
  }
  ASSERT_OK(WriteEvidence(files, "/new.safetensors", evidence, EvidenceTensors(*state)));
  ASSERT_OK(WriteEvidence(files, "/old.safetensors", evidence, AsSaved(state->model().tensors)));
  kept.fill_(1);
  ASSERT_OK(ReadEvidence(files, "/old.safetensors", *state));
  EXPECT_TRUE(kept.equal(at::full({3}, 1.0)));
  ASSERT_OK(ReadEvidence(files, "/new.safetensors", *state));
  EXPECT_TRUE(kept.equal(at::full({3}, 2.5)));
  state->program().kept = {{"scale", at::zeros({4})}};
  EXPECT_FALSE(ReadEvidence(files, "/new.safetensors", *state).ok());
}

}  // namespace
}  // namespace keel
