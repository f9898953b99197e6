// One bit that one member computes wrongly in a step that is rechecked is found before the step is
// applied: the right one is named, and the others end with the bits of a worker alone.
#include "trainer/loop/recheck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/posix_files.h"
#include "base/random.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/sanitizers.h"
#include "tests/support/file_text.h"
#include "tests/support/temp_dir.h"
#include "tests/trainer/crew.h"
#include "tests/trainer/flip_bit.h"
#include "tests/trainer/quiet_peer.h"
#include "tests/trainer/tasks.h"
#include "tests/trainer/watched_means.h"
#include "trainer/exchange/bucket.h"
#include "trainer/exchange/gradient_buckets.h"
#include "trainer/loop/epoch_run.h"
#include "trainer/loop/recompute.h"

namespace keel {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kRecheckedSteps = 12;
constexpr int kRecheckedLanes = 6;

enum class Planted { kGradient, kLoss, kBuffer, kSum, kAdder, kSecondAdder, kNode };

// What goes wrong on one member.
struct PlantedFault {
  Planted what = Planted::kGradient;
  uint64_t step = 0;
  bool always = false;     // from that step on; else the first time in it
  bool fickle = false;     // another bit each time
  uint64_t where = 0;      // draws the tensor and the bit
};

// A member, with a state of its own, and what is wrong with it.
class RecheckedMember {
 public:
  RecheckedMember(const std::string& model, std::optional<PlantedFault> fault, uint64_t every,
                  OnCorruption on_corruption = OnCorruption::kStop, bool places_lanes = true,
                  const std::string& evidence_dir = "", bool keeps_scale = false)
      : fault_(std::move(fault)) {
    static std::mutex mutex;   // building draws from the one generator that all threads share
    const std::lock_guard lock(mutex);
    torch::manual_seed(1);
    Task task = MakeTask(model, 0);
    TrainProgram program;
    program.model = task.model;
    const ModelTensors tensors = TensorsOf(*task.model);
    for (const NamedTensor& buffer : tensors.buffers) {
      if (buffer.tensor.is_floating_point()) buffers_.push_back(buffer.tensor);
    }
    program.loss = [this, loss = task.loss](const Batch& batch) { return Loss(loss, batch); };
    program.dataset = std::move(task.dataset);
    program.optimizer = *MakeAdamW(tensors.parameters, {});
    if (keeps_scale) {
      program.kept = {{"scale", scale_}};
      program.on_step = [this](const StepReport&) {
        scale_.mul_(1.25);
        return Ok();
      };
    }
    TrainConfig config{.steps = kRecheckedSteps, .lanes = kRecheckedLanes, .lane_batch = 2};
    config.recheck_every = every;
    config.on_corruption = on_corruption;
    config.places_lanes = places_lanes;
    config.evidence_dir = evidence_dir;
    auto state = TrainState::Make(config, std::move(program));
    KEEL_CHECK(state.ok(), state.error().message);
    state_ = std::move(*state);
    if (fault_ && fault_->what == Planted::kGradient) Hook();
  }

  TrainState& state() { return *state_; }

  // One bit, whatever comes of it.
  void FlipInOptimizer(uint64_t where) {
    const auto tensors = state_->program().optimizer->state();
    FlipBitOf(tensors[where % tensors.size()].tensor, where);
  }
  // That is done in that step, between the sums and the vote.
  void AtStep(uint64_t step, std::function<void()> what) {
    at_step_ = step;
    what_ = std::move(what);
  }

  // That is done as it computes its n-th lane in that step.
  void AtLane(uint64_t step, int number, std::function<void()> what) {
    lane_step_ = step;
    lane_number_ = number;
    at_lane_ = std::move(what);
  }

  // Called as something was added, in the thread that did it. `in_place`: where it counts.
  void OnAdded(const at::Tensor& sum, bool in_place) {
    if (fault_ && fault_->what == Planted::kNode && !in_place && IsDue()) {
      ++times_;   // between the first time and the second
      FlipBitOf(state_->gradients()->buckets().front()->buffer(), fault_->where);
    }
    const auto which = in_place ? Planted::kAdder : Planted::kSecondAdder;
    if (!fault_ || fault_->what != which || !IsDue()) return;
    ++times_;
    FlipBitOf(sum, fault_->where + (fault_->fickle ? static_cast<uint64_t>(times_) : 0));
  }
  bool OwnsSum(const at::Tensor& sum) const {
    if (!state_->gradients()) return false;
    const auto* const begin = static_cast<const std::byte*>(sum.const_data_ptr());
    for (const auto& bucket : state_->gradients()->buckets()) {
      const at::Tensor& buffer = bucket->buffer();
      const auto* const first = static_cast<const std::byte*>(buffer.const_data_ptr());
      if (begin >= first && begin < first + buffer.nbytes()) return true;
    }
    return false;
  }

  // Called between the sums and the vote.
  void BeforeVote() {
    if (what_ && state_->step() == at_step_) std::exchange(what_, nullptr)();
    if (!fault_ || fault_->what != Planted::kSum || !IsDue()) return;
    const auto& parameters = state_->parameters();
    FlipBitOf(parameters[fault_->where % parameters.size()].grad(), fault_->where);
    ++times_;
  }

 private:
  bool IsDue() const {
    if (fault_->always) return state_->step() >= fault_->step;
    return state_->step() == fault_->step && times_ == 0;
  }

  at::Tensor Loss(const std::function<at::Tensor(const Batch&)>& loss, const Batch& batch) {
    if (at_lane_ && state_->step() == lane_step_ && --lane_number_ == 0) at_lane_();
    const at::Tensor made = loss(batch) * scale_[0];
    if (!fault_ || !IsDue()) return made;
    if (fault_->what == Planted::kLoss) {
      ++times_;
      return made + 1e-3;
    }
    if (fault_->what == Planted::kBuffer && !buffers_.empty()) {
      ++times_;
      const at::NoGradGuard no_grad;
      FlipBitOf(buffers_[fault_->where % buffers_.size()], fault_->where);
    }
    return made;
  }

  void Hook() {
    const auto& parameters = state_->parameters();
    parameters[fault_->where % parameters.size()].register_hook([this](const at::Tensor& made) {
      if (!IsDue()) return made;
      ++times_;
      const at::Tensor wrong = made.clone();
      FlipBitOf(wrong, fault_->where + (fault_->fickle ? static_cast<uint64_t>(times_) : 0));
      return wrong;
    });
  }

  const std::optional<PlantedFault> fault_;
  int times_ = 0;
  uint64_t at_step_ = 0;
  std::function<void()> what_;
  uint64_t lane_step_ = 0;
  int lane_number_ = 0;
  std::function<void()> at_lane_;
  std::vector<at::Tensor> buffers_;
  at::Tensor scale_ = at::ones({1});   // of losses
  std::unique_ptr<TrainState> state_;
};

class RecheckTest : public testing::Test {
 protected:
  RecheckTest() {
    at::set_num_threads(1);
    SetLogLevel(LogLevel::kError);
    LogToCallback([this](std::string_view line) {
      const std::lock_guard lock(log_mutex_);
      log_ += line;
    });
  }
  ~RecheckTest() override { LogToStderr(); }

  // These ranks have the fault.
  void Make(const std::string& model, int size, const std::vector<int>& wrong,
            const PlantedFault& fault, uint64_t every = 1,
            OnCorruption on_corruption = OnCorruption::kStop) {
    log_.clear();
    members_.clear();
    for (int rank = 0; rank < size; ++rank) {
      const bool is_wrong = std::find(wrong.begin(), wrong.end(), rank) != wrong.end();
      members_.push_back(std::make_unique<RecheckedMember>(
          model, is_wrong ? std::optional(fault) : std::nullopt, every, on_corruption,
          places_lanes_, evidence_dir_, keeps_scale_));
    }
  }

  // One epoch of these members, by rank.
  std::vector<Result<EpochOutcome>> Epoch() {
    const int size = static_cast<int>(members_.size());
    std::vector<Result<EpochOutcome>> outcomes(members_.size(),
                                               Error{Code::kCancelled, "it did not run"});
    const std::string prefix = crew_.NewPrefix();
    adders_.clear();
    const at::CallbackHandle watch = WatchMeans([this](const at::Tensor& mean) { OnAdded(mean); });
    GroupCrew::OnThreads(size, [&](int rank) {
      RecheckedMember& member = *members_[static_cast<size_t>(rank)];
      EpochCallbacks peer = QuietPeer();
      peer.fingerprint = rank == odd_one_ ? "torch=2.10" : "torch=2.11";
      peer.inexact_allowed = inexact_allowed_;
      if (rank == 0) {
        peer.watch = [this](auto abort) {
          abort_first_ = abort;
          return std::shared_ptr<void>();
        };
      }
      peer.evidence = &keepers_[static_cast<size_t>(rank)];
      WorkerChecks& checks = checks_[static_cast<size_t>(rank)];
      peer.checked = [&checks](const WorkerChecks& more) {
        checks.rechecks += more.rechecks;
        checks.differences += more.differences;
      };
      peer.wishes = [&] {
        member.BeforeVote();
        return EpochCallbacks::Wishes{.join = member.state().step() + 1 == join_at_};
      };
      EpochGroup::Spec spec = crew_.SpecOf(rank, size, prefix);
      // Each member adds in a thread of its own, which operates on the group before.
      spec.before_each = [this, &member] {
        const std::lock_guard lock(adders_mutex_);
        adders_[std::this_thread::get_id()] = &member;
      };
      for (int one = 0; one < size; ++one) {
        spec.members.push_back("host" + std::to_string(one / per_host_) + "/0");
      }
      spec.host = "node" + std::to_string(rank / per_host_);
      outcomes[static_cast<size_t>(rank)] =
          RunEpoch(member.state(), spec, CancelToken::Never(), peer);
    });
    at::removeCallback(watch);
    return outcomes;
  }

  void OnAdded(const at::Tensor& mean) {
    for (const auto& member : members_) {
      if (member->OwnsSum(mean)) return member->OnAdded(mean, /*in_place=*/true);
    }
    const std::lock_guard lock(adders_mutex_);
    const auto adder = adders_.find(std::this_thread::get_id());
    if (adder != adders_.end()) adder->second->OnAdded(mean, /*in_place=*/false);
  }

  std::string Alone(const std::string& model) {
    RecheckedMember member(model, std::nullopt, 0);
    EXPECT_OK(RunEpoch(member.state(), crew_.SpecOf(0, 1, crew_.NewPrefix()),
                       CancelToken::Never(), QuietPeer()));
    return member.state().registry().StateDigest().Hex();
  }

  void ExpectBits(const std::string& expected) {
    for (const auto& member : members_) {
      EXPECT_EQ(member->state().step(), kRecheckedSteps);
      EXPECT_EQ(member->state().registry().StateDigest().Hex(), expected);
    }
  }

  std::vector<EpochOutcome> ExpectEnds(EpochEnd end) {
    std::vector<EpochOutcome> ended;
    for (const auto& outcome : Epoch()) {
      EXPECT_OK(outcome);
      ended.push_back(outcome.ok() ? *outcome : EpochOutcome{});
      EXPECT_EQ(ended.back().end, end) << ended.back().reason;
    }
    return ended;
  }

  // Exactly that one fails, before the step is applied; the others make it again without it.
  void ExpectNamed(int wrong, uint64_t step) {
    const auto outcomes = Epoch();
    for (size_t rank = 0; rank < outcomes.size(); ++rank) {
      EXPECT_EQ(members_[rank]->state().step(), step);
      if (static_cast<int>(rank) == wrong) {
        ASSERT_FALSE(outcomes[rank].ok());
        EXPECT_EQ(outcomes[rank].error().code, Code::kCorrupt) << outcomes[rank].error().message;
        EXPECT_THAT(outcomes[rank].error().message, HasSubstr("rank " + std::to_string(wrong)));
      } else {
        ASSERT_OK(outcomes[rank]);
        EXPECT_EQ(outcomes[rank]->end, EpochEnd::kBoundary);
      }
    }
    EXPECT_THAT(log_, HasSubstr("corruption step=" + std::to_string(step)));
    members_.erase(members_.begin() + wrong);
    ExpectEnds(EpochEnd::kFinished);
  }

  // The same, and it may become known only after the others have gone on.
  void ExpectLeaves(int wrong, uint64_t step, EpochEnd others) {
    const auto outcomes = Epoch();
    for (size_t rank = 0; rank < outcomes.size(); ++rank) {
      if (static_cast<int>(rank) == wrong) {
        EXPECT_EQ(members_[rank]->state().step(), step);
        ASSERT_FALSE(outcomes[rank].ok());
        EXPECT_EQ(outcomes[rank].error().code, Code::kCorrupt) << outcomes[rank].error().message;
        EXPECT_THAT(outcomes[rank].error().message,
                    AllOf(HasSubstr("rank " + std::to_string(wrong)), HasSubstr("do not trust")));
        EXPECT_TRUE(members_[rank]->state().is_unfit());
      } else {
        ASSERT_OK(outcomes[rank]);
        EXPECT_EQ(outcomes[rank]->end, others) << outcomes[rank]->reason;
        EXPECT_EQ(members_[rank]->state().step(), others == EpochEnd::kBroken ? step + 1 : step);
      }
    }
    EXPECT_THAT(log_, HasSubstr("in=sums member=\"rank " + std::to_string(wrong)));
    members_.erase(members_.begin() + wrong);
    ExpectEnds(EpochEnd::kFinished);
  }

  int per_host_ = 1;
  bool places_lanes_ = true;
  bool inexact_allowed_ = false;
  int odd_one_ = -1;       // whose kernels are others; -1: nobody's
  uint64_t join_at_ = 0;   // somebody asks to; 0: nobody does
  bool keeps_scale_ = false;   // beside the model; it grows with each step
  std::array<WorkerChecks, 8> checks_;   // by rank, of all epochs
  std::string evidence_dir_;
  std::function<void(const std::string& reason)> abort_first_;   // the first member's epoch
  std::array<EvidenceKeeper, 8> keepers_;   // by rank
  GroupCrew crew_;
  std::mutex log_mutex_;
  std::string log_;
  std::mutex adders_mutex_;
  std::map<std::thread::id, RecheckedMember*> adders_;   // by thread
  std::vector<std::unique_ptr<RecheckedMember>> members_;
};

TEST_F(RecheckTest, NobodyIsAccusedWhereNothingIsWrong) {
  for (const char* const model : {"mlp", "gpt", "resnet"}) {
    const std::string expected = Alone(model);
    for (const int size : {1, 2, 4}) {
      if (!kAllRounds && size != 4) continue;
      Make(model, size, {}, {});
      ExpectEnds(EpochEnd::kFinished);
      ExpectBits(expected);
      EXPECT_EQ(log_, "");
    }
  }
}

// Each has computed two lanes of its own and one of another's; then all hear who else came to what.
// Among those that are left the step may be none that is rechecked by itself.
TEST_F(RecheckTest, ADifferenceIsRememberedThoughTheEpochEndsBeforeItIsJudged) {
  Make("mlp", 3, {1}, {.what = Planted::kGradient, .step = 2, .always = true}, 3);
  members_[0]->AtLane(2, 4, [this] { abort_first_("a member was lost"); });
  ExpectEnds(EpochEnd::kBroken);
  EXPECT_THAT(log_, AllOf(HasSubstr("corruption-not-judged step=2"),
                          HasSubstr("rank 1 (node1/0)")));
  for (const auto& member : members_) {
    EXPECT_EQ(member->state().step(), 2);
    EXPECT_TRUE(member->state().Report().unproven);
  }
  log_.clear();
  ExpectNamed(1, 2);
  EXPECT_THAT(log_, Not(HasSubstr("corruption-not-judged")));
  for (const auto& member : members_) EXPECT_FALSE(member->state().Report().unproven);
}

TEST_F(RecheckTest, OnlyWhoeverComputesByTheSameKernelsIsCompared) {
  inexact_allowed_ = true;
  Make("mlp", 3, {1}, {.what = Planted::kGradient, .step = 2});
  ExpectNamed(1, 2);
  odd_one_ = 2;
  Make("mlp", 3, {1}, {.what = Planted::kGradient, .step = 2});
  ExpectEnds(EpochEnd::kFinished);
  EXPECT_EQ(log_, "");
}

TEST_F(RecheckTest, TheStateOfWhoeverComputesByOtherKernelsMayBeAnother) {
  inexact_allowed_ = true;
  odd_one_ = 1;
  join_at_ = 3;
  Make("mlp", 2, {}, {});
  ExpectEnds(EpochEnd::kBoundary);
  members_[1]->FlipInOptimizer(7);
  join_at_ = 0;
  ExpectEnds(EpochEnd::kFinished);
  EXPECT_EQ(log_, "");
}

// One has its own bits, and the other one those of a member by other kernels that is gone.
TEST_F(RecheckTest, WhatOtherKernelsHaveLeftIsHeldAgainstNobodyWhoIsLeft) {
  inexact_allowed_ = true;
  odd_one_ = 0;
  join_at_ = 3;
  Make("mlp", 2, {}, {});
  ExpectEnds(EpochEnd::kBoundary);
  members_[1]->FlipInOptimizer(7);
  members_.push_back(
      std::make_unique<RecheckedMember>("mlp", std::nullopt, 1, OnCorruption::kStop));
  join_at_ = 5;
  ExpectEnds(EpochEnd::kBoundary);
  members_.erase(members_.begin());
  odd_one_ = -1;
  join_at_ = 0;
  ExpectEnds(EpochEnd::kFinished);
  EXPECT_EQ(log_, "");
}

// Workers that have no lane check, too.
TEST_F(RecheckTest, MoreWorkersThanLanes) {
  const std::string expected = Alone("mlp");
  Make("mlp", kRecheckedLanes + 2, {}, {});
  ExpectEnds(EpochEnd::kFinished);
  ExpectBits(expected);
  EXPECT_EQ(log_, "");
}

// What is saved tells anybody who was wrong: in which elements, and in buffers.
TEST_F(RecheckTest, TheEvidenceTellsAnotherMachineWhoWasWrong) {
  const TempDir folder;
  evidence_dir_ = folder.path();
  PosixFiles files;
  for (const auto& [model, what] : {std::pair{"mlp", Planted::kGradient},
                                    std::pair{"gpt", Planted::kGradient},
                                    std::pair{"resnet", Planted::kGradient},
                                    std::pair{"resnet", Planted::kBuffer},
                                    std::pair{"mlp", Planted::kLoss}}) {
    if (!kAllRounds && what == Planted::kGradient && model != std::string_view("mlp")) continue;
    SCOPED_TRACE(testing::Message() << model << " " << static_cast<int>(what));
    const std::string expected = Alone(model);
    Make(model, 3, {1}, {.what = what, .step = 5, .always = true, .where = 77});
    ASSERT_NO_FATAL_FAILURE(ExpectNamed(1, 5));
    ExpectBits(expected);
    for (EvidenceKeeper& keeper : keepers_) std::destroy_at(&keeper), std::construct_at(&keeper);
    const auto list = files.List(folder.path());
    ASSERT_OK(list);
    ASSERT_EQ(list->size(), 1u);
    const std::string path = folder.File(list->front().name);
    RecheckedMember elsewhere(model, std::nullopt, 0);
    const auto recomputed = Recompute(elsewhere.state(), "torch=2.11", files, path);
    ASSERT_OK(recomputed);
    EXPECT_EQ(recomputed->step, 5u);
    EXPECT_GE(recomputed->claims.size(), 5u);
    for (const RecomputedClaim& claim : recomputed->claims) {
      const bool is_wrong = claim.member.find("rank 1") == 0;
      EXPECT_EQ(claim.differs.empty(), !is_wrong) << claim.member << ": " << claim.differs;
      const bool has_elements = what != Planted::kLoss && is_wrong && !claim.is_second;
      EXPECT_EQ(claim.differs.find(" element") != std::string::npos, has_elements)
          << claim.differs;
    }
    EXPECT_FALSE(Recompute(elsewhere.state(), "torch=2.12", files, path).ok());
    // Of another model, or cut short.
    RecheckedMember other(std::string_view(model) == "mlp" ? "gpt" : "mlp", std::nullopt, 0);
    EXPECT_FALSE(Recompute(other.state(), "torch=2.11", files, path).ok());
    const std::string whole = ReadFile(path);
    WriteFile(path, whole.substr(0, whole.size() / 2));
    EXPECT_FALSE(Recompute(elsewhere.state(), "torch=2.11", files, path).ok());
    ASSERT_OK(files.Remove(path));
  }
}

// A folder that cannot be written costs the evidence, and nothing else.
TEST_F(RecheckTest, WithoutAPlaceForTheEvidenceTheJobGoesOn) {
  evidence_dir_ = "/proc/no-such-folder";
  const std::string expected = Alone("mlp");
  Make("mlp", 3, {1}, {.step = 5, .where = 77});
  ASSERT_NO_FATAL_FAILURE(ExpectNamed(1, 5));
  ExpectBits(expected);
}

// With two, too, since who is right comes to the same bits again.
TEST_F(RecheckTest, WhoeverIsWrongOnceIsNamed) {
  Random random(11);
  for (const char* const model : {"mlp", "gpt", "resnet"}) {
    const std::string expected = Alone(model);
    for (int round = 0; round < Rounds(5, 1); ++round) {
      const int size = 2 + round % 3;
      const int wrong = static_cast<int>(random.Uniform(static_cast<uint64_t>(size)));
      const auto what = static_cast<Planted>(random.Uniform(3));
      if (what == Planted::kBuffer && std::string_view(model) != "resnet") continue;
      const PlantedFault fault{
          .what = what, .step = random.Uniform(kRecheckedSteps), .where = random.Next()};
      SCOPED_TRACE(testing::Message() << model << " " << size << " " << wrong << " "
                                      << static_cast<int>(what) << " " << fault.step);
      Make(model, size, {wrong}, fault);
      ASSERT_NO_FATAL_FAILURE(ExpectNamed(wrong, fault.step));
      ExpectBits(expected);
    }
  }
}

TEST_F(RecheckTest, WhoeverIsAlwaysWrongIsNamedWithAThirdOne) {
  Random random(12);
  const std::string expected = Alone("mlp");
  for (int round = 0; round < Rounds(6, 2); ++round) {
    const int size = 3 + round % 2;
    const int wrong = static_cast<int>(random.Uniform(static_cast<uint64_t>(size)));
    const PlantedFault fault{.what = round % 4 == 0 ? Planted::kLoss : Planted::kGradient,
                             .step = random.Uniform(kRecheckedSteps), .always = true,
                             .where = random.Next()};
    Make("mlp", size, {wrong}, fault);
    ASSERT_NO_FATAL_FAILURE(ExpectNamed(wrong, fault.step));
    ExpectBits(expected);
  }
}

TEST_F(RecheckTest, WhoHoldsOtherSumsIsNamed) {
  Random random(13);
  const std::string expected = Alone("mlp");
  for (int round = 0; round < Rounds(6, 3); ++round) {
    const int wrong = round % 3;
    const PlantedFault fault{.what = Planted::kSum, .step = random.Uniform(kRecheckedSteps),
                             .always = round % 2 == 0, .where = random.Next()};
    Make("mlp", 3, {wrong}, fault);
    ASSERT_NO_FATAL_FAILURE(ExpectNamed(wrong, fault.step));
    EXPECT_THAT(log_, HasSubstr("in=sums"));
    ExpectBits(expected);
  }
}

// The step is made again, which shows who was wrong: of two, too.
TEST_F(RecheckTest, WhoeverAddsWronglyOnceIsNamed) {
  Random random(14);
  const std::string expected = Alone("mlp");
  for (int round = 0; round < Rounds(8, 3); ++round) {
    const int size = 2 + round % 3;
    const int wrong = static_cast<int>(random.Uniform(static_cast<uint64_t>(size)));
    const auto what = round % 2 == 0 ? Planted::kAdder : Planted::kSecondAdder;
    const uint64_t step = 1 + random.Uniform(kRecheckedSteps - 2);
    SCOPED_TRACE(testing::Message() << size << " " << wrong << " " << static_cast<int>(what)
                                    << " " << step);
    Make("mlp", size, {wrong}, {.what = what, .step = step, .where = random.Next()});
    ExpectEnds(EpochEnd::kBoundary);
    EXPECT_THAT(log_, HasSubstr("corruption step=" + std::to_string(step) + " in=sums"));
    ExpectLeaves(wrong, step, EpochEnd::kBroken);
    ExpectBits(expected);
  }
}

TEST_F(RecheckTest, WhoeverAddsWronglyEachTimeIsNamedWithAThirdOne) {
  Random random(15);
  const std::string expected = Alone("mlp");
  for (int round = 0; round < Rounds(6, 3); ++round) {
    const int size = 3 + round % 2;
    const int wrong = static_cast<int>(random.Uniform(static_cast<uint64_t>(size)));
    const bool counts = round % 3 > 0;
    const uint64_t step = 1 + random.Uniform(kRecheckedSteps - 2);
    SCOPED_TRACE(testing::Message() << size << " " << wrong << " " << counts << " " << step);
    Make("mlp", size, {wrong}, {.what = counts ? Planted::kAdder : Planted::kSecondAdder,
                                .step = step, .always = true, .fickle = round % 2 == 1,
                                .where = random.Next()});
    ExpectEnds(EpochEnd::kBoundary);
    ExpectLeaves(wrong, step, EpochEnd::kBoundary);
    ExpectBits(expected);
  }
}

TEST_F(RecheckTest, OfTwoThatAddDifferentlyForEverNobodyIsNamed) {
  Make("mlp", 2, {1}, {.what = Planted::kAdder, .step = 4, .always = true, .where = 5});
  ExpectEnds(EpochEnd::kBoundary);
  ExpectEnds(EpochEnd::kBoundary);
  const auto outcomes = ExpectEnds(EpochEnd::kDoubted);
  EXPECT_THAT(outcomes[0].reason,
              AllOf(HasSubstr("step 4: rank 0 (node0/0) or rank 1 (node1/0) adds"),
                    HasSubstr("3 times (each one comes to its own sum)")));
  EXPECT_EQ(outcomes[1].reason, outcomes[0].reason);
  Make("mlp", 2, {1},
       {.what = Planted::kAdder, .step = 4, .always = true, .fickle = true, .where = 5});
  ExpectEnds(EpochEnd::kBoundary);
  ExpectLeaves(1, 4, EpochEnd::kBoundary);
}

// The first step in which it computes is rechecked.
TEST_F(RecheckTest, ANewcomerThatComputesWronglyIsNamedBeforeItCounts) {
  const std::string expected = Alone("mlp");
  const uint64_t never = 1000;
  join_at_ = 5;
  Make("mlp", 2, {}, {}, never);
  ExpectEnds(EpochEnd::kBoundary);
  members_.push_back(std::make_unique<RecheckedMember>(
      "mlp", PlantedFault{.step = 0, .always = true, .where = 5}, never));
  ASSERT_NO_FATAL_FAILURE(ExpectNamed(2, 5));
  ExpectBits(expected);
  EXPECT_THAT(log_, HasSubstr("in=\"lane "));
}

// It is still to be rechecked in the next epoch, which it begins with a state of its own.
TEST_F(RecheckTest, ANewcomerWhoseFirstStepBreaksIsRecheckedAfterwards) {
  const uint64_t never = 1000;
  join_at_ = 5;
  Make("mlp", 2, {}, {}, never);
  ExpectEnds(EpochEnd::kBoundary);
  members_.push_back(std::make_unique<RecheckedMember>(
      "mlp", PlantedFault{.step = 0, .always = true, .where = 5}, never));
  members_[0]->AtStep(5, [this] { abort_first_("lost"); });
  ExpectEnds(EpochEnd::kBroken);
  for (const auto& member : members_) EXPECT_EQ(member->state().step(), 5u);
  ASSERT_NO_FATAL_FAILURE(ExpectNamed(2, 5));
}

// Who comes to a step in doubt does not know what was said.
TEST_F(RecheckTest, SumsAreDoubtedAnewWhereSomebodyIsNew) {
  Make("mlp", 2, {1}, {.what = Planted::kAdder, .step = 7, .always = true, .where = 9},
       /*every=*/8);
  ExpectEnds(EpochEnd::kBoundary);
  members_[0] = std::make_unique<RecheckedMember>("mlp", std::nullopt, 8);
  ExpectEnds(EpochEnd::kBoundary);
  ExpectEnds(EpochEnd::kDoubted);
  const std::string expected = Alone("mlp");
  for (const auto what : {Planted::kAdder, Planted::kSecondAdder}) {
    Make("mlp", 3, {1}, {.what = what, .step = 7, .always = true, .where = 9}, /*every=*/8);
    ExpectEnds(EpochEnd::kBoundary);
    members_[2] = std::make_unique<RecheckedMember>("mlp", std::nullopt, 8);
    ExpectEnds(EpochEnd::kBoundary);
    ExpectLeaves(1, 7, EpochEnd::kBoundary);
    ExpectBits(expected);
  }
}

// Of four one leaves between, and the slices are others then.
TEST_F(RecheckTest, SumsAreDoubtedAnewWhereSomebodyHasLeft) {
  const std::string expected = Alone("mlp");
  Make("mlp", 4, {1}, {.what = Planted::kAdder, .step = 7, .always = true, .where = 9},
       /*every=*/8);
  ExpectEnds(EpochEnd::kBoundary);
  members_.erase(members_.begin() + 3);
  ExpectEnds(EpochEnd::kBoundary);
  ExpectLeaves(1, 7, EpochEnd::kBoundary);
  ExpectBits(expected);
}

// One that it shipped changes between the two times, so those who add come to different sums.
TEST_F(RecheckTest, NobodyIsNamedForWhatChangedBeforeItWasAdded) {
  for (const int size : {2, 3}) {
    const std::string expected = Alone("mlp");
    for (const uint64_t where : {51u, 5043u, 9011u, 20019u}) {   // a highest bit of an exponent
      if (!kAllRounds && where != 51u) continue;
      Make("mlp", size, {1}, {.what = Planted::kNode, .step = 5, .where = where});
      ExpectEnds(EpochEnd::kBoundary);
      EXPECT_THAT(log_, HasSubstr("corruption step=5 in=sums"));
      ExpectEnds(EpochEnd::kFinished);
      ExpectBits(expected);
    }
  }
}

// There is no other machine.
TEST_F(RecheckTest, WhoAddsWronglyAloneMakesTheStepAgain) {
  const std::string expected = Alone("mlp");
  Make("mlp", 1, {0}, {.what = Planted::kAdder, .step = 3, .where = 5});
  ExpectEnds(EpochEnd::kBoundary);
  ExpectEnds(EpochEnd::kFinished);
  ExpectBits(expected);
  Make("mlp", 1, {0}, {.what = Planted::kAdder, .step = 3, .always = true, .where = 5});
  ExpectEnds(EpochEnd::kBoundary);
  ExpectEnds(EpochEnd::kBoundary);
  ExpectEnds(EpochEnd::kDoubted);
}

TEST_F(RecheckTest, TwoThatDifferForEverStop) {
  Make("mlp", 2, {1}, {.step = 4, .always = true, .where = 5});
  ExpectEnds(EpochEnd::kBoundary);
  const auto outcomes = ExpectEnds(EpochEnd::kDoubted);
  EXPECT_THAT(outcomes[0].reason, AllOf(HasSubstr("step 4, lane "), HasSubstr("--on-corruption")));
  EXPECT_EQ(outcomes[1].reason, outcomes[0].reason);
}

// What the owner of a lane came to is applied, with all members, as if nobody had looked.
TEST_F(RecheckTest, TheUserMayContinue) {
  const PlantedFault fault{.step = 8, .always = true, .where = 5};
  places_lanes_ = false;   // else other lanes may be those of the one that is wrong
  for (const int size : {2, 4}) {   // on two hosts
    per_host_ = size / 2;
    const std::vector<int> wrong = size == 2 ? std::vector{1} : std::vector{0, 1};
    Make("mlp", size, wrong, fault, /*every=*/0);
    ExpectEnds(EpochEnd::kFinished);
    const std::string unseen = members_[0]->state().registry().StateDigest().Hex();
    Make("mlp", size, wrong, fault, /*every=*/1, OnCorruption::kContinue);
    for (uint64_t step = 8; step < kRecheckedSteps; ++step) ExpectEnds(EpochEnd::kBoundary);
    ExpectEnds(EpochEnd::kFinished);
    ExpectBits(unseen);
    EXPECT_NE(unseen, Alone("mlp"));
    EXPECT_THAT(log_, HasSubstr("as --on-corruption=continue says"));
  }
}

// The host's other worker is no witness.
TEST_F(RecheckTest, AHostThatIsWrongInAllItsWorkersAccusesNobody) {
  per_host_ = 2;
  Make("mlp", 4, {0, 1}, {.step = 4, .always = true, .where = 5});
  ExpectEnds(EpochEnd::kBoundary);
  ExpectEnds(EpochEnd::kDoubted);
}

// Of two hosts either one has a witness beside the one that is right.
TEST_F(RecheckTest, OneWorkerOfTwoHostsIsNamedWhereverItIs) {
  const std::string expected = Alone("mlp");
  per_host_ = 2;
  for (const int wrong : {0, 1, 2, 3}) {
    if (!kAllRounds && wrong % 2 == 0) continue;
    const uint64_t step = 5 + static_cast<uint64_t>(wrong);
    Make("mlp", 4, {wrong}, {.step = step, .always = true, .where = 5});
    ASSERT_NO_FATAL_FAILURE(ExpectNamed(wrong, step));
    ExpectBits(expected);
  }
}

// Of the last layer's bias, which each sample's loss depends on.
TEST_F(RecheckTest, WhoBeganWithOtherParametersIsNamedAsSuch) {
  const std::string expected = Alone("mlp");
  const auto change = [this] {
    const at::Tensor& parameter = members_[1]->state().parameters().back();
    members_[1]->AtStep(2, [parameter] { FlipBitOf(parameter.detach(), 22); });
  };
  Make("mlp", 3, {}, {}, /*every=*/4);
  change();
  ASSERT_NO_FATAL_FAILURE(ExpectNamed(1, 3));
  EXPECT_THAT(log_, HasSubstr("in=state"));
  ExpectBits(expected);
  Make("mlp", 2, {}, {}, /*every=*/4);
  change();
  for (const auto& outcome : Epoch()) {
    ASSERT_FALSE(outcome.ok());
    EXPECT_THAT(outcome.error().message,
                AllOf(HasSubstr("before step 3 bits of the state of rank 1"),
                      HasSubstr("memory")));
  }
}

// Most bits of it change no parameter that anybody could see.
TEST_F(RecheckTest, WhoseOptimizerLostABitIsNamed) {
  Random random(17);
  const std::string expected = Alone("mlp");
  for (int round = 0; round < Rounds(10, 3); ++round) {
    const int wrong = round % 3;
    const uint64_t step = random.Uniform(kRecheckedSteps - 1);
    Make("mlp", 3, {}, {});
    RecheckedMember& member = *members_[static_cast<size_t>(wrong)];
    member.AtStep(step, [&member, where = random.Next()] { member.FlipInOptimizer(where); });
    ASSERT_NO_FATAL_FAILURE(ExpectNamed(wrong, step));
    EXPECT_THAT(log_, HasSubstr("in=state"));
    ExpectBits(expected);
  }
}

// A newcomer learns of it from those who are left.
TEST_F(RecheckTest, AStepInDoubtIsRecheckedByThoseWhoDoNotKnowOfIt) {
  Make("mlp", 2, {0}, {.what = Planted::kSum, .step = 7, .always = true, .where = 9},
       /*every=*/8);
  ExpectEnds(EpochEnd::kBoundary);
  members_[1] = std::make_unique<RecheckedMember>("mlp", std::nullopt, 8);
  ExpectEnds(EpochEnd::kDoubted);
}

TEST_F(RecheckTest, TwoWithOtherSumsMakeTheStepAgainAndStopTheSecondTime) {
  const std::string expected = Alone("mlp");
  Make("mlp", 2, {0}, {.what = Planted::kSum, .step = 7, .where = 9});
  ExpectEnds(EpochEnd::kBoundary);
  ExpectEnds(EpochEnd::kFinished);
  ExpectBits(expected);
  EXPECT_THAT(log_, HasSubstr("corruption step=7 in=sums"));
  Make("mlp", 2, {0}, {.what = Planted::kSum, .step = 7, .always = true, .where = 9});
  ExpectEnds(EpochEnd::kBoundary);
  ExpectEnds(EpochEnd::kDoubted);
}

TEST_F(RecheckTest, OneAloneIsComparedWithItself) {
  const std::string expected = Alone("mlp");
  Make("mlp", 1, {0}, {.step = 3, .where = 5});
  ExpectEnds(EpochEnd::kBoundary);
  EXPECT_EQ(members_[0]->state().step(), 3u);
  ExpectEnds(EpochEnd::kFinished);
  ExpectBits(expected);
  Make("mlp", 1, {0}, {.step = 3, .always = true, .fickle = true, .where = 5});
  ExpectEnds(EpochEnd::kBoundary);
  EXPECT_THAT(ExpectEnds(EpochEnd::kDoubted)[0].reason, HasSubstr("computed the lane twice"));
  Make("mlp", 1, {0}, {.step = kRecheckedSteps - 1, .always = true, .fickle = true, .where = 5},
       /*every=*/1, OnCorruption::kContinue);
  ExpectEnds(EpochEnd::kBoundary);
  ExpectEnds(EpochEnd::kFinished);
}

// In steps between, a wrong gradient is everybody's: that is why rechecks are frequent.
TEST_F(RecheckTest, OnlyEverySoManySteps) {
  Make("mlp", 3, {1}, {.step = 4, .where = 5}, /*every=*/4);
  ExpectEnds(EpochEnd::kFinished);
  EXPECT_EQ(log_, "");
  Make("mlp", 3, {1}, {.step = 7, .where = 5}, /*every=*/4);
  ASSERT_NO_FATAL_FAILURE(ExpectNamed(1, 7));
}

// It is not of the model, and another value at every step.
TEST_F(RecheckTest, TheEvidenceHoldsWhatTheLossReadsBesideTheModel) {
  const TempDir folder;
  evidence_dir_ = folder.path();
  keeps_scale_ = true;
  Make("mlp", 3, {1}, {.step = 5, .always = true, .where = 77});
  ASSERT_NO_FATAL_FAILURE(ExpectNamed(1, 5));
  for (EvidenceKeeper& keeper : keepers_) std::destroy_at(&keeper), std::construct_at(&keeper);
  PosixFiles files;
  const auto list = files.List(folder.path());
  ASSERT_OK(list);
  ASSERT_EQ(list->size(), 1u);
  RecheckedMember elsewhere("mlp", std::nullopt, 0, OnCorruption::kStop, true, "",
                            /*keeps_scale=*/true);
  const auto recomputed = Recompute(elsewhere.state(), "torch=2.11", files,
                                    folder.File(list->front().name));
  ASSERT_OK(recomputed);
  for (const RecomputedClaim& claim : recomputed->claims) {
    const bool is_wrong = claim.member.find("rank 1") == 0;
    EXPECT_EQ(claim.differs.empty(), !is_wrong) << claim.member << ": " << claim.differs;
  }
}

// Or more would have come out differently than was compared.
TEST_F(RecheckTest, SumsThatDifferAreCountedAmongWhatWasCompared) {
  Make("mlp", 1, {0}, {.what = Planted::kAdder, .step = 3, .where = 5});
  ExpectEnds(EpochEnd::kBoundary);
  EXPECT_EQ(checks_[0].differences, 1);
  const int64_t compared = checks_[0].rechecks;
  ExpectEnds(EpochEnd::kFinished);
  checks_[0] = {};
  Make("mlp", 1, {}, {});
  ExpectEnds(EpochEnd::kFinished);
  EXPECT_EQ(compared, checks_[0].rechecks / static_cast<int64_t>(kRecheckedSteps) * 4 + 1)
      << "four steps, and the sum";
}

}  // namespace
}  // namespace keel
