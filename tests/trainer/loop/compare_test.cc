// Members that go on together compare a large state piece by piece: a bit that changed between two
// epochs, wherever it is, is found within as many steps as there are pieces, and before it is
// saved, unless the steps themselves round it away before. Of two members both end, of three one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "base/log.h"
#include "base/random.h"
#include "tests/harness/expect_ok.h"
#include "tests/trainer/crew.h"
#include "tests/trainer/quiet_peer.h"
#include "tests/trainer/tasks.h"
#include "trainer/loop/epoch_run.h"
#include "trainer/state/state_pieces.h"

namespace keel {
namespace {

using testing::HasSubstr;

constexpr uint64_t kStepsCompared = 40;   // more than there are pieces
constexpr uint64_t kParked = 2;   // steps of the first epoch

constexpr uint64_t kSmallPieces = 1 << 10;
constexpr uint64_t kOnePiece = 1 << 30;   // larger than any state here

std::unique_ptr<TrainState> MakeCompared(const std::string& name, uint64_t piece_bytes) {
  static std::mutex mutex;   // building draws from the one generator that all threads share
  const std::lock_guard lock(mutex);
  torch::manual_seed(1);
  Task task = MakeTask(name, 0);
  TrainProgram program{.model = task.model, .loss = task.loss, .dataset = std::move(task.dataset),
                       .optimizer = *MakeAdamW(TensorsOf(*task.model).parameters, {})};
  TrainConfig config{.steps = kStepsCompared, .lanes = 2, .lane_batch = 2};
  config.digest_every = 0;
  config.piece_bytes = piece_bytes;
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

class Compared {
 protected:
  Compared() {
    at::set_num_threads(1);
    SetLogLevel(LogLevel::kError);
  }

  void Make(int members, const std::string& model, uint64_t piece_bytes) {
    while (static_cast<int>(states_.size()) < members) {
      states_.push_back(MakeCompared(model, piece_bytes));
    }
  }

  // `parks_at`: somebody asks to join at that step; 0: nobody does.
  std::vector<Result<EpochOutcome>> Epoch(uint64_t parks_at = 0) {
    const int members = static_cast<int>(states_.size());
    std::vector<Result<EpochOutcome>> outcomes(states_.size(),
                                               Error{Code::kCancelled, "it did not run"});
    const std::string prefix = crew_.NewPrefix();
    GroupCrew::OnThreads(members, [&](int rank) {
      TrainState& state = *states_[static_cast<size_t>(rank)];
      EpochCallbacks peer;
      peer.watch = [](auto) { return std::shared_ptr<void>(); };
      peer.wishes = [&] {
        return EpochCallbacks::Wishes{.join = state.step() + 1 == parks_at};
      };
      outcomes[static_cast<size_t>(rank)] =
          RunEpoch(state, crew_.SpecOf(rank, members, prefix), CancelToken::Never(), peer);
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
    }
  }

  GroupCrew crew_;
  std::vector<std::unique_ptr<TrainState>> states_;
};

class ComparedByPieces : public Compared, public testing::TestWithParam<const char*> {
 protected:
  ComparedByPieces() {
    Make(2, GetParam(), kSmallPieces);
    EXPECT_GT(states_[0]->pieces(), 4u);
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

class ComparedByMost : public Compared, public testing::Test {
 protected:
  void Change(size_t member) {
    const at::NoGradGuard no_grad;
    states_[member]->parameters().front().view({-1})[0] += 0.25;
  }

  // The second member ends, and the others go on without it.
  void ExpectTheSecondLeaves() {
    const auto outcomes = Epoch();
    for (size_t rank = 0; rank < outcomes.size(); ++rank) {
      if (rank == 1) {
        ASSERT_FALSE(outcomes[rank].ok());
        EXPECT_EQ(outcomes[rank].error().code, Code::kCorrupt) << outcomes[rank].error().message;
        EXPECT_THAT(outcomes[rank].error().message, HasSubstr("rank 1 has other bits"));
      } else {
        ASSERT_OK(outcomes[rank]);
        EXPECT_EQ(outcomes[rank]->end, EpochEnd::kBroken);
        EXPECT_THAT(outcomes[rank]->reason, HasSubstr("rank 1"));
      }
    }
    states_.erase(states_.begin() + 1);
  }

  void ExpectFinished() {
    for (const auto& outcome : Epoch()) {
      ASSERT_OK(outcome);
      EXPECT_EQ(outcome->end, EpochEnd::kFinished) << outcome->reason;
    }
  }

  // They made no step with the one that was wrong.
  void ExpectBitsOfAWorkerAlone() {
    const Digest alone = Alone();
    for (const auto& state : states_) EXPECT_EQ(state->registry().StateDigest(), alone);
  }

  Digest Alone() {
    const auto state = MakeCompared("mlp", kOnePiece);
    const auto outcome =
        RunEpoch(*state, crew_.SpecOf(0, 1, crew_.NewPrefix()), CancelToken::Never(), QuietPeer());
    EXPECT_OK(outcome);
    return state->registry().StateDigest();
  }
};

TEST_F(ComparedByMost, AtANewMembershipOneOfThreeLeavesAndTheOthersGoOn) {
  Make(3, "mlp", kOnePiece);
  Park();
  Change(1);
  ASSERT_NO_FATAL_FAILURE(ExpectTheSecondLeaves());
  ExpectFinished();
  ExpectBitsOfAWorkerAlone();
}

// It has received some of the state from each of them.
TEST_F(ComparedByMost, ANewcomerReceivesAnewWhatItHasFromOneThatIsWrong) {
  Make(3, "mlp", kOnePiece);
  Park();
  Make(4, "mlp", kOnePiece);
  Change(1);
  ASSERT_NO_FATAL_FAILURE(ExpectTheSecondLeaves());
  EXPECT_FALSE(states_.back()->whole());
  ExpectFinished();
  ExpectBitsOfAWorkerAlone();
}

// Pieces are compared from the last one to the first, so most are left then.
TEST_F(ComparedByMost, AtTheEndOfTheJobOneOfThreeLeavesAndTheOthersEndIt) {
  Make(3, "mlp", kSmallPieces);
  ASSERT_GT(states_[0]->pieces(), 4u);
  Park(kStepsCompared - 2);
  Change(1);
  ASSERT_NO_FATAL_FAILURE(ExpectTheSecondLeaves());
  EXPECT_EQ(states_[0]->step(), kStepsCompared);
  ExpectFinished();
  EXPECT_EQ(states_[0]->registry().StateDigest(), states_[1]->registry().StateDigest());
}

TEST_F(ComparedByMost, OfThreeThatAllDifferAllFail) {
  Make(3, "mlp", kOnePiece);
  Park();
  Change(1);
  Change(2);
  Change(2);
  for (const auto& outcome : Epoch()) {
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, Code::kCorrupt) << outcome.error().message;
  }
}

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
