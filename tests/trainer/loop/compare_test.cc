// Members that go on together compare a large state piece by piece: a bit that changed between two
// epochs, wherever it is, ends the job within as many steps as there are pieces, and before it is
// saved, unless the steps themselves round it away before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "base/log.h"
#include "base/random.h"
#include "tests/harness/expect_ok.h"
#include "tests/trainer/crew.h"
#include "tests/trainer/tasks.h"
#include "trainer/loop/epoch_run.h"
#include "trainer/state/state_pieces.h"

namespace keel {
namespace {

using testing::HasSubstr;

constexpr uint64_t kStepsCompared = 40;   // more than there are pieces
constexpr uint64_t kParked = 2;   // steps of the first epoch

std::unique_ptr<TrainState> MakeCompared(const std::string& name) {
  static std::mutex mutex;   // building draws from the one generator that all threads share
  const std::lock_guard lock(mutex);
  torch::manual_seed(1);
  Task task = MakeTask(name);
  TrainProgram program{.model = task.model, .loss = task.loss, .dataset = std::move(task.dataset),
                       .optimizer = *MakeAdamW(TensorsOf(*task.model).parameters, {})};
  TrainConfig config{.steps = kStepsCompared, .lanes = 2, .lane_batch = 2};
  config.digest_every = 0;
  config.piece_bytes = 1 << 10;
  auto state = TrainState::Make(config, std::move(program));
  KEEL_CHECK(state.ok(), state.error().message);
  return std::move(*state);
}

// One bit of one of them; of its value no more than what lets it stay a number.
void FlipABit(const std::vector<at::Tensor>& tensors, Random& random) {
  const at::Tensor& hit = tensors[random.Uniform(tensors.size())];
  if (hit.numel() == 0) return;
  const size_t element = random.Uniform(static_cast<uint64_t>(hit.numel())) * hit.element_size();
  auto* const bytes = static_cast<unsigned char*>(hit.mutable_data_ptr()) + element;
  bytes[random.Uniform(2)] ^= static_cast<unsigned char>(1u << random.Uniform(8));
}

class ComparedByPieces : public testing::TestWithParam<const char*> {
 protected:
  ComparedByPieces() {
    at::set_num_threads(1);
    SetLogLevel(LogLevel::kError);
    for (int rank = 0; rank < 2; ++rank) states_.push_back(MakeCompared(GetParam()));
  }

  // `parks_at`: somebody asks to join at that step; 0: nobody does.
  std::vector<Result<EpochOutcome>> Epoch(uint64_t parks_at = 0) {
    std::vector<Result<EpochOutcome>> outcomes(2, Error{Code::kCancelled, "it did not run"});
    const std::string prefix = crew_.NewPrefix();
    GroupCrew::OnThreads(2, [&](int rank) {
      TrainState& state = *states_[static_cast<size_t>(rank)];
      EpochCallbacks peer;
      peer.watch = [](auto) { return std::shared_ptr<void>(); };
      peer.wishes = [&] {
        return EpochCallbacks::Wishes{.join = state.step() + 1 == parks_at};
      };
      outcomes[static_cast<size_t>(rank)] =
          RunEpoch(state, crew_.SpecOf(rank, 2, prefix), CancelToken::Never(), peer);
    });
    return outcomes;
  }

  void Park(uint64_t at = kParked) {
    for (const auto& outcome : Epoch(at)) {
      ASSERT_OK(outcome);
      ASSERT_EQ(outcome->end, EpochEnd::kBoundary);
    }
    for (const auto& state : states_) {
      EXPECT_EQ(state->step(), at);
      EXPECT_GT(state->pieces(), 4u);
    }
  }

  // Whether it finished.
  static bool ExpectFoundIfNotFinished(const Result<EpochOutcome>& outcome) {
    // An epoch that broke did so because the other member had found it first.
    if (outcome.ok()) return outcome->end == EpochEnd::kFinished;
    EXPECT_EQ(outcome.error().code, Code::kCorrupt) << outcome.error().message;
    EXPECT_THAT(outcome.error().message, HasSubstr("the state of rank 1 "));
    EXPECT_THAT(outcome.error().message, HasSubstr("differ"));
    return false;
  }

  GroupCrew crew_;
  std::vector<std::unique_ptr<TrainState>> states_;
};

TEST_P(ComparedByPieces, WhatIsTheSameGoesOn) {
  Park();
  for (const auto& outcome : Epoch()) {
    ASSERT_OK(outcome);
    EXPECT_EQ(outcome->end, EpochEnd::kFinished);
  }
  EXPECT_EQ(states_[0]->registry().StateDigest(), states_[1]->registry().StateDigest());
}

TEST_P(ComparedByPieces, AnyBitThatChangedIsFoundOrLeavesNoTrace) {
  Park();
  const uint64_t seed = EntropySeed();
  SCOPED_TRACE(seed);
  Random random(seed);
  FlipABit(states_[1]->registry().FlatAliases(), random);
  bool finished = true;
  for (const auto& outcome : Epoch()) finished &= ExpectFoundIfNotFinished(outcome);
  if (!finished) return;
  EXPECT_EQ(states_[0]->registry().StateDigest(), states_[1]->registry().StateDigest());
}

// Steps hardly change a weight.
TEST_P(ComparedByPieces, AWeightThatChangedIsFound) {
  Park();
  const at::NoGradGuard no_grad;
  states_[1]->parameters().back().view({-1})[0] += 0.25;
  for (const auto& outcome : Epoch()) EXPECT_FALSE(ExpectFoundIfNotFinished(outcome));
  EXPECT_LE(states_[0]->step(), kParked + states_[0]->pieces());
}

// What is left is compared before the last step counts.
TEST_P(ComparedByPieces, AJobThatEndsSoonerIsComparedAtItsEnd) {
  Park(kStepsCompared - 2);
  const at::NoGradGuard no_grad;
  states_[1]->parameters().front().view({-1})[0] += 0.25;
  for (const auto& outcome : Epoch()) EXPECT_FALSE(ExpectFoundIfNotFinished(outcome));
}

INSTANTIATE_TEST_SUITE_P(Models, ComparedByPieces, testing::Values("mlp", "resnet", "gpt"));

TEST(StatePieces, EachByteIsInOneOfThem) {
  const std::vector<at::Tensor> flat{at::arange(37, at::kFloat), at::ones({5}, at::kDouble),
                                     at::ones({3}, at::kByte), at::empty({0}),
                                     at::ones({301}, at::kBFloat16)};
  for (const uint64_t pieces : {1, 2, 3, 7, 32}) {
    std::vector<Digest> before;
    for (uint64_t piece = 0; piece < pieces; ++piece) {
      before.push_back(DigestOfPiece(flat, piece, pieces));
    }
    for (const at::Tensor& tensor : flat) {
      auto* const bytes = static_cast<unsigned char*>(tensor.mutable_data_ptr());
      for (size_t i = 0; i < tensor.nbytes(); ++i) {
        bytes[i] ^= 1;
        uint64_t changed = 0;
        for (uint64_t piece = 0; piece < pieces; ++piece) {
          changed += DigestOfPiece(flat, piece, pieces) != before[piece];
        }
        bytes[i] ^= 1;
        ASSERT_EQ(changed, 1u) << "byte " << i << " of " << tensor.sizes() << ", " << pieces;
      }
    }
  }
}

TEST(StatePieces, ThereAreFewAndTheyAreLarge) {
  constexpr uint64_t kPiece = 16 << 20;
  EXPECT_EQ(PiecesFor(0, kPiece), 1u);
  EXPECT_EQ(PiecesFor(kPiece, kPiece), 1u);
  EXPECT_EQ(PiecesFor(kPiece + 1, kPiece), 2u);
  EXPECT_EQ(PiecesFor(uint64_t{12} << 30, kPiece), 32u);
}

}  // namespace
}  // namespace keel
