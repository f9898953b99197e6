// Exchange: the gradients of real backward passes have the same bits for every number of workers,
// and a break anywhere ends every call.
#include "trainer/exchange/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <torch/nn.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>

#include "base/large_pages.h"
#include "base/random.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/large_pages_seen.h"
#include "tests/trainer/crew.h"
#include "trainer/exchange/bucket.h"
#include "trainer/exchange/flat_reduction.h"
#include "trainer/exchange/gradient_buckets.h"
#include "trainer/exchange/gradient_watch.h"

namespace keel {
namespace {

using Tensors = std::vector<at::Tensor>;

Exchange::Options OptionsOf(int lanes, Reduce reduce = Reduce::kTree) {
  return {.lanes = lanes, .reduce = reduce};
}

std::shared_ptr<GradientBuckets> BucketsOf(Tensors parameters, const BucketLimits& limits = {}) {
  return std::make_shared<GradientBuckets>(std::move(parameters), limits);
}

// Small, so that there are several of them.
constexpr BucketLimits kSmall{.most_bytes = 16 << 10, .last_bytes = 2 << 10};

// Numbers without any generator, the same in every thread.
at::Tensor Wave(at::IntArrayRef shape, double phase) {
  int64_t numel = 1;
  for (const int64_t size : shape) numel *= size;
  return at::sin(at::arange(numel, at::kFloat) * 0.7391 + phase).view(shape);
}

class Mlp {
 public:
  Mlp() {
    net_->push_back(torch::nn::Linear(20, 64));
    net_->push_back(torch::nn::ReLU());
    net_->push_back(torch::nn::Linear(64, 70));
    net_->push_back(torch::nn::ReLU());
    net_->push_back(torch::nn::Linear(70, 10));
    const torch::NoGradGuard no_grad;
    for (at::Tensor& parameter : net_->parameters()) {
      parameter.copy_(Wave(parameter.sizes(), 0.3) * 0.2);
    }
    unused_ = Wave({33}, 1.0).requires_grad_();
    seldom_ = Wave({33}, 2.0).requires_grad_();
    buckets_ = BucketsOf(parameters(), kSmall);
  }

  const std::shared_ptr<GradientBuckets>& buckets() const { return buckets_; }

  // One of them is never used, one in some lanes.
  Tensors parameters() const {
    Tensors all = net_->parameters();
    all.push_back(unused_);
    all.push_back(seldom_);
    return all;
  }

  at::Tensor Loss(int step, int lane) {
    const at::Tensor out = net_->forward(Wave({7, 20}, step + 0.13 * lane));
    const at::Tensor loss = (out * Wave({7, 10}, lane)).pow(2).mean();
    return lane % 4 == 1 ? loss : loss + (seldom_ * SignedZeros(lane)).sum();
  }

 private:
  // What seldom_'s gradient is: to which adding a zero makes a difference.
  static at::Tensor SignedZeros(int lane) {
    at::Tensor values = at::full({33}, -0.0f);
    values[lane % 33] = 1.5f;
    return values;
  }

  torch::nn::Sequential net_;
  at::Tensor unused_;
  std::shared_ptr<GradientBuckets> buckets_;
  at::Tensor seldom_;
};

// The definition, top down: independent of the code under test.
at::Tensor NodeSum(const std::vector<at::Tensor>& lanes, int begin, int size) {
  if (size == 1) return lanes[static_cast<size_t>(begin)].clone();
  return NodeSum(lanes, begin, size / 2) + NodeSum(lanes, begin + size / 2, size / 2);
}

at::Tensor TreeMean(const std::vector<at::Tensor>& lanes) {
  const int count = static_cast<int>(lanes.size());
  at::Tensor sum;
  for (int begin = 0; begin < count;) {
    int size = 1;
    while (begin + 2 * size <= count) size *= 2;
    const at::Tensor node = NodeSum(lanes, begin, size);
    sum = begin == 0 ? node : sum + node;
    begin += size;
  }
  return sum * (1.0 / count);
}

Tensors Reference(int step, int lanes) {
  Mlp model;
  const Tensors parameters = model.parameters();
  std::vector<std::vector<at::Tensor>> gradients(parameters.size());
  for (int lane = 0; lane < lanes; ++lane) {
    for (at::Tensor parameter : parameters) parameter.mutable_grad() = at::Tensor();
    model.Loss(step, lane).backward();
    for (size_t i = 0; i < parameters.size(); ++i) {
      const at::Tensor& gradient = parameters[i].grad();
      gradients[i].push_back(gradient.defined() ? gradient.clone()
                                                : at::zeros_like(parameters[i]));
    }
  }
  Tensors means;
  for (const auto& of_lanes : gradients) means.push_back(TreeMean(of_lanes).detach());
  return means;
}

Status Step(Exchange& exchange, Mlp& model, int step) {
  const LaneRange lanes = exchange.lanes();
  for (int lane = lanes.begin; lane < lanes.end; ++lane) {
    KEEL_TRY(exchange.Backward(model.Loss(step, lane)));
  }
  return exchange.Finish();
}

std::unique_ptr<Exchange> Opened(Mlp& model, EpochGroup& group, const Exchange::Options& options) {
  auto exchange = Exchange::Open(model.buckets(), group, options);
  KEEL_CHECK(exchange.ok(), exchange.error().message);
  return std::move(*exchange);
}

bool SameBits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() &&
         std::memcmp(a.contiguous().data_ptr(), b.contiguous().data_ptr(), a.nbytes()) == 0;
}

void ExpectSameBits(const Tensors& parameters, const Tensors& reference,
                    const std::string& where) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    ASSERT_TRUE(parameters[i].grad().defined()) << where << ", parameter " << i;
    EXPECT_TRUE(SameBits(parameters[i].grad(), reference[i])) << where << ", parameter " << i;
  }
}

std::string Workers(int size) { return std::to_string(size) + " workers"; }

class ExchangeTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { at::set_num_threads(1); }

  // Each step's gradients, by step.
  static std::vector<Tensors> References(int lanes) {
    std::vector<Tensors> all;
    for (int step = 0; step < kSteps; ++step) all.push_back(Reference(step, lanes));
    return all;
  }
  void ExpectGradients(int lanes, int size, const std::vector<Tensors>& reference) {
    crew_.Run(size, [&](EpochGroup& group) {
      Mlp model;
      const auto exchange = Opened(model, group, OptionsOf(lanes));
      if (size % 2 == 0) exchange->WarmUp();
      for (int step = 0; step < kSteps; ++step) {
        const Status done = Step(*exchange, model, step);
        ASSERT_TRUE(done.ok()) << done.error().message;
        ExpectSameBits(model.parameters(), reference[static_cast<size_t>(step)],
                       std::to_string(lanes) + " lanes, " + Workers(size) + ", step " +
                           std::to_string(step));
      }
    });
  }

  static constexpr int kSteps = 3;
  GroupCrew crew_;
};

TEST_F(ExchangeTest, GradientsHaveTheBitsOfTheTreeForEveryNumberOfWorkers) {
  for (const int lanes : {1, 3, 8, 12}) {
    const std::vector<Tensors> reference = References(lanes);
    for (int size = 1; size <= 6; ++size) ExpectGradients(lanes, size, reference);
  }
  EXPECT_GT(Reference(0, 8)[0].abs().sum().item<double>(), 0.0);
  EXPECT_FALSE(SameBits(Reference(0, 8)[0], Reference(1, 8)[0]));
}

// Read where they lie; partly, as the others are sent to; or only where they are large. The last
// two lanes have workers without any.
TEST_F(ExchangeTest, HowGradientsTravelMakesNoDifference) {
  const std::function<size_t(int)> ways[] = {
      [](int) { return 1; },
      [](int rank) { return rank == 1 ? EpochGroup::kNeverRead : 1; },
      [](int rank) { return rank == 0 ? 4096 : 1; },
  };
  for (const int lanes : {7, 2}) {
    const std::vector<Tensors> reference = References(lanes);
    for (const auto& way : ways) {
      crew_.read_bytes_min = way;
      for (int size = 2; size <= 5; ++size) ExpectGradients(lanes, size, reference);
    }
  }
}

TEST_F(ExchangeTest, GradientsOutliveTheExchange) {
  const Tensors reference = Reference(4, 8);
  crew_.Run(2, [&](EpochGroup& group) {
    Mlp model;
    auto exchange = Opened(model, group, OptionsOf(8));
    ASSERT_TRUE(Step(*exchange, model, 4).ok());
    exchange = Opened(model, group, OptionsOf(8));  // as after a break, before they are applied
    exchange.reset();
    ExpectSameBits(model.parameters(), reference, "after a break");
  });
}

// Who computes a lane decides no bit, also where that changes from step to step.
TEST_F(ExchangeTest, LanesMayMoveBetweenSteps) {
  constexpr int kLanes = 9;
  constexpr int kSize = 4;
  const std::vector<Tensors> reference = References(kLanes);
  const int ends[][kSize] = {{9, 9, 9, 9}, {0, 1, 5, 9}, {4, 6, 8, 9}};
  crew_.Run(kSize, [&](EpochGroup& group) {
    Mlp model;
    const auto exchange = Opened(model, group, OptionsOf(kLanes));
    for (int step = 0; step < kSteps; ++step) {
      Placement placement;
      int begin = 0;
      for (const int end : ends[step]) {
        placement.push_back({begin, end});
        begin = end;
      }
      ASSERT_OK(exchange->Place(placement));
      ASSERT_OK(Step(*exchange, model, step));
      ExpectSameBits(model.parameters(), reference[static_cast<size_t>(step)],
                     "step " + std::to_string(step));
    }
    if (exchange->lanes().count() < 2) return;
    ASSERT_OK(exchange->Backward(model.Loss(0, 0)));
    EXPECT_FALSE(exchange->Place(EvenPlacement(4, 9)).ok()) << "in the middle of a step";
  });
}

// As over the epochs of a job: memory that is there is not asked for again, and fits each group.
TEST_F(ExchangeTest, BucketsServeGroupsOfAnySizeInTheSameMemory) {
  constexpr int kLanes = 8;
  Mlp models[4];
  std::map<const void*, int> places;
  for (const int size : {3, 2, 4, 1, 3}) {
    const Tensors reference = Reference(size, kLanes);
    crew_.Run(size, [&](EpochGroup& group) {
      Mlp& model = models[group.rank()];
      const auto exchange = Opened(model, group, OptionsOf(kLanes));
      ASSERT_OK(Step(*exchange, model, size));
      ExpectSameBits(model.parameters(), reference, Workers(size));
    });
    for (const at::Tensor& parameter : models[0].parameters()) {
      ++places[parameter.grad().const_data_ptr()];
    }
  }
  for (const auto& [place, times] : places) EXPECT_EQ(times, 5);
}

// The order of c10d's own plan for plain data-parallel training.
TEST(GradientBucketsTest, AreFilledFromTheFirstParameterOnAndEndWithIt) {
  Tensors parameters;
  for (const int64_t elements : {10, 700, 300, 5, 2000, 40, 900, 1}) {
    const bool is_half = elements == 5 || elements == 900;
    parameters.push_back(at::zeros({elements}, is_half ? at::kBFloat16 : at::kFloat));
  }
  const GradientBuckets made(parameters, {.most_bytes = 4000, .last_bytes = 1000});
  auto [expected, limits] = c10d::compute_bucket_assignment_by_size(parameters, {1000, 4000});
  std::reverse(expected.begin(), expected.end());
  ASSERT_EQ(made.buckets().size(), expected.size());
  for (size_t bucket = 0; bucket < expected.size(); ++bucket) {
    EXPECT_EQ(made.buckets()[bucket]->parameters(), expected[bucket].size());
    for (size_t i = 0; i < expected[bucket].size(); ++i) {
      EXPECT_EQ(made.SeatOf(expected[bucket][i]).bucket, bucket);
      EXPECT_EQ(made.SeatOf(expected[bucket][i]).index, i);
    }
  }
}

// The planted opposite: the comparison above would see an order that depends on the workers.
TEST_F(ExchangeTest, PlainAllReduceIsNearButHasOtherBits) {
  const Tensors reference = Reference(0, 12);
  std::atomic<int> differing{0};
  for (const int size : {1, 2, 3, 5}) {
    crew_.Run(size, [&](EpochGroup& group) {
      Mlp model;
      const auto exchange = Opened(model, group, OptionsOf(12, Reduce::kAllReduce));
      const Status done = Step(*exchange, model, 0);
      ASSERT_TRUE(done.ok()) << done.error().message;
      const Tensors parameters = model.parameters();
      for (size_t i = 0; i < parameters.size(); ++i) {
        EXPECT_TRUE(at::allclose(parameters[i].grad(), reference[i], 1e-4, 1e-7));
        differing += !SameBits(parameters[i].grad(), reference[i]);
      }
    });
  }
  EXPECT_GT(differing.load(), 0);
}

TEST_F(ExchangeTest, MeansOfOtherTensorsHaveTheBitsOfTheTree) {
  for (const int lanes : {3, 8}) {
    std::vector<at::Tensor> floats;
    std::vector<at::Tensor> doubles;
    for (int lane = 0; lane < lanes; ++lane) {
      floats.push_back(Wave({5, 3}, lane));
      doubles.push_back(Wave({200}, lane).to(at::kDouble) / 3);
    }
    for (int size = 1; size <= 5; ++size) {
      crew_.Run(size, [&](EpochGroup& group) {
        Mlp model;
        const auto exchange = Opened(model, group, OptionsOf(lanes));
        std::vector<Tensors> own;
        for (int lane = exchange->lanes().begin; lane < exchange->lanes().end; ++lane) {
          const auto index = static_cast<size_t>(lane);
          own.push_back({floats[index], doubles[index], floats[index] * 2});
        }
        const Tensors into{at::empty({5, 3}), at::empty({200}, at::kDouble), at::empty({5, 3})};
        const Status made = exchange->Mean(own, into);
        ASSERT_TRUE(made.ok()) << made.error().message;
        EXPECT_TRUE(SameBits(into[0], TreeMean(floats)));
        EXPECT_TRUE(SameBits(into[1], TreeMean(doubles)));
        EXPECT_TRUE(SameBits(into[2], TreeMean(floats) * 2));
      });
    }
  }
}

// More than a chunk for each owner, and slices of unequal length.
TEST_F(ExchangeTest, BigTensorsTravelInChunks) {
  constexpr int kLanes = 5;
  constexpr int64_t kBig = 1'200'011;
  std::vector<at::Tensor> lanes;
  for (int lane = 0; lane < kLanes; ++lane) lanes.push_back(Wave({kBig}, lane));
  const at::Tensor mean = TreeMean(lanes);
  for (const size_t read_bytes_min : {EpochGroup::kNeverRead, kReadBytesMin}) {
    crew_.read_bytes_min = [&](int) { return read_bytes_min; };
    for (int size = 1; size <= 3; ++size) {
      crew_.Run(size, [&](EpochGroup& group) {
        Mlp model;
        const auto exchange = Opened(model, group, OptionsOf(kLanes));
        std::vector<Tensors> own;
        for (int lane = exchange->lanes().begin; lane < exchange->lanes().end; ++lane) {
          own.push_back({lanes[static_cast<size_t>(lane)].clone()});
        }
        const at::Tensor into = at::empty({kBig});
        const Status made = exchange->Mean(own, {into});
        ASSERT_TRUE(made.ok()) << made.error().message;
        EXPECT_TRUE(SameBits(into, mean));
      });
    }
  }
}

// More buckets than are offered at a time: a worker without lanes, which starts them all at once,
// must not wait for itself, nor the others for those that it has not ended yet.
TEST_F(ExchangeTest, AnyNumberOfBucketsIsUnderWayAtATime) {
  constexpr int kLanes = 2;
  constexpr int kParameters = 5 * static_cast<int>(FlatReduction::kStartedMax) / 2;
  crew_.read_bytes_min = [](int) { return 1; };
  crew_.Run(3, [&](EpochGroup& group) {
    Tensors parameters;
    for (int i = 0; i < kParameters; ++i) parameters.push_back(at::zeros({200}).requires_grad_());
    auto exchange = Exchange::Open(BucketsOf(parameters, {.most_bytes = 1, .last_bytes = 1}),
                                   group, OptionsOf(kLanes));
    ASSERT_TRUE(exchange.ok()) << exchange.error().message;
    for (int step = 1; step <= 3; ++step) {
      for (int lane = (*exchange)->lanes().begin; lane < (*exchange)->lanes().end; ++lane) {
        at::Tensor loss = at::zeros({});
        for (int i = 0; i < kParameters; ++i) {
          loss = loss + (parameters[static_cast<size_t>(i)] * (step * i + lane)).sum();
        }
        const Status done = (*exchange)->Backward(loss);
        ASSERT_TRUE(done.ok()) << done.error().message;
      }
      const Status finished = (*exchange)->Finish();
      ASSERT_TRUE(finished.ok()) << finished.error().message;
      for (int i = 0; i < kParameters; ++i) {
        const at::Tensor& gradient = parameters[static_cast<size_t>(i)].grad();
        EXPECT_TRUE(at::equal(gradient, at::full({200}, step * i + 0.5f))) << i;
      }
    }
  });
}

// What autograd does for a layer that is computed anew in backward.
struct BackwardInBackward : torch::autograd::Function<BackwardInBackward> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    return x.sum();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& made) {
    const at::Tensor x = context->get_saved_variables()[0];
    const torch::AutoGradMode grad(true);
    x.sum().backward();
    return {made[0].expand_as(x)};
  }
};

// In whichever lane: its bits would depend on how many workers there are.
TEST_F(ExchangeTest, TwoGradientsOfOneParameterInOneBackwardAreRefused) {
  for (const int lanes : {1, 4}) {
    crew_.Run(1, [&](EpochGroup& group) {
      Mlp model;
      const auto exchange = Opened(model, group, OptionsOf(lanes));
      const at::Tensor twice = BackwardInBackward::apply(model.parameters()[0]);
      const Status refused = exchange->Backward(model.Loss(0, 0) + twice);
      EXPECT_THAT(refused.error().message,
                  testing::HasSubstr("a parameter got two gradients in one backward"));
    });
  }
}

// A hook that was there before ours puts another tensor in the place of the sum.
TEST_F(ExchangeTest, AGradientThatIsAnotherTensorIsNotLost) {
  constexpr int kLanes = 4;
  const Tensors reference = Reference(0, kLanes);
  for (const int size : {1, 2, 4}) {
    crew_.Run(size, [&](EpochGroup& group) {
      Mlp model;
      const Tensors parameters = model.parameters();
      const GradientWatch replacing(parameters, [&](size_t i, const at::Tensor&) {
        at::Tensor parameter = parameters[i];
        parameter.mutable_grad() = parameter.grad().clone();
      });
      const auto exchange = Opened(model, group, OptionsOf(kLanes));
      ASSERT_TRUE(Step(*exchange, model, 0).ok());
      ExpectSameBits(parameters, reference, Workers(size));
    });
  }
}

// And nothing is left behind it that the others' backward would call.
TEST_F(ExchangeTest, WhatIsNoParameterIsRefused) {
  crew_.Run(1, [](EpochGroup& group) {
    const at::Tensor leaf = at::ones({3}).requires_grad_();
    const at::Tensor loss = leaf.sum();   // what is hooked on lives as long
    EXPECT_FALSE(Exchange::Open(BucketsOf({leaf, leaf * 2}), group, {}).ok());
    EXPECT_FALSE(Exchange::Open(BucketsOf({leaf, at::ones({3})}), group, {}).ok());
    loss.backward();
    EXPECT_TRUE(at::equal(leaf.grad(), at::ones({3})));
  });
}

TEST_F(ExchangeTest, WarmingUpEndsWithIt) {
  crew_.Run(2, [&](EpochGroup& group) {
    const Tensors parameters{at::zeros({20 << 20}).requires_grad_()};
    const auto exchange = Exchange::Open(BucketsOf(parameters), group, {.lanes = 2});
    ASSERT_TRUE(exchange.ok());
    (*exchange)->WarmUp();
  });
}

// Whatever a worker's lanes are: the second of a pair is added to the first, the last one's
// gradients are in the bucket, and what is whole is what its owner can add on its own, in order.
TEST(LanePlaceTest, LanesGoWhereTheTreeAddsThem) {
  for (int end = 1; end <= 16; ++end) {
    for (int begin = 0; begin < end; ++begin) {
      SCOPED_TRACE(testing::Message() << "lanes " << begin << " to " << end);
      FoldStack<LaneNode> sums;
      for (int lane = begin; lane < end; ++lane) {
        const LanePlace place = PlaceOf(lane, {begin, end}, false);
        const bool is_pairs_second = lane % 2 == 1 && lane > begin;
        EXPECT_EQ(place.adds, is_pairs_second);
        EXPECT_EQ(place.in_bucket, lane + (is_pairs_second || lane % 2 == 1 ? 1 : 2) >= end);
        if (place.whole.size == 0) continue;
        sums.Push(place.whole, place.whole, [](LaneNode left, const LaneNode& right) {
          return LaneNode{left.begin, left.size + right.size};
        });
      }
      std::vector<LaneNode> nodes;
      for (const auto& entry : sums.entries()) nodes.push_back(entry.value);
      EXPECT_EQ(nodes, NodesOf({begin, end}));
      EXPECT_EQ(PlaceOf(end - 1, {begin, end}, true),
                (LanePlace{.adds = end - 1 > begin, .in_bucket = true}));
    }
  }
}

TEST(ExchangeBucketTest, GradientsAndSumsOfThemLieInLargePages) {
  if (!HasLargePages()) GTEST_SKIP() << "this Linux has no large pages";
  constexpr int64_t kCount = 3 * kLargePageBytes / sizeof(float);
  const torch::NoGradGuard no_grad;
  const at::Tensor parameter = at::zeros({kCount});
  ExchangeBucket bucket({parameter}, at::empty({kCount}));
  bucket.BeginStep();
  for (const LaneNode whole : {LaneNode{0, 1}, LaneNode{1, 1}}) {
    bucket.BeginLane({.whole = whole});
    parameter.mutable_grad() = at::ones({kCount});
    bucket.TakeGradient(0, parameter.grad());
    bucket.EndLane();
  }
  for (const at::Tensor& flat : {bucket.buffer(), bucket.sum().entries().front().value}) {
    const auto* middle = static_cast<const std::byte*>(flat.const_data_ptr()) + flat.nbytes() / 2;
    EXPECT_TRUE(WantsLargePagesAt(middle));
  }
}

// As many as a binary counter of the pairs before the last one has digits, and the bucket.
TEST(ExchangeBucketTest, ManyLanesNeedFewPlaces) {
  for (const auto& [lanes, places] : std::map<int, size_t>{{1, 1}, {2, 1}, {4, 2}, {64, 6}}) {
    const at::Tensor parameter = at::zeros({5}).requires_grad_();
    ExchangeBucket bucket({parameter}, at::empty({5}));
    for (int step = 0; step < 2; ++step) {
      bucket.BeginStep();
      for (int lane = 0; lane < lanes; ++lane) {
        bucket.BeginLane(PlaceOf(lane, {0, lanes}, false));
        const at::Tensor made = at::ones({5});
        at::Tensor of(parameter);
        of.mutable_grad() = of.grad().defined() ? of.grad().add_(made) : made;
        bucket.TakeGradient(0, made);
        if (lane + 1 < lanes) {
          bucket.EndLane();
          EXPECT_FALSE(parameter.grad().defined());
        }
      }
      bucket.EndLastLane();
      const auto sums = bucket.sum().Take();
      ASSERT_EQ(sums.size(), 1u);
      EXPECT_TRUE(at::equal(sums[0].value, at::full({5}, static_cast<float>(lanes))));
      EXPECT_EQ(bucket.places(), places) << lanes;
    }
  }
}

// A model that makes inputs of its own by a backward of its own, between two lanes of ours.
TEST_F(ExchangeTest, WhatIsDoneToGradientsBetweenLanesMakesNoDifference) {
  constexpr int kLanes = 4;
  const Tensors reference = Reference(0, kLanes);
  for (const int size : {1, 2, 4}) {
    crew_.Run(size, [&](EpochGroup& group) {
      Mlp model;
      const Tensors parameters = model.parameters();
      const auto exchange = Opened(model, group, OptionsOf(kLanes));
      const LaneRange lanes = exchange->lanes();
      for (int lane = lanes.begin; lane < lanes.end; ++lane) {
        for (const at::Tensor& parameter : parameters) {
          if (parameter.grad().defined()) parameter.grad().detach().zero_();
        }
        (parameters[0] * 3).sum().backward();
        ASSERT_TRUE(exchange->Backward(model.Loss(0, lane)).ok());
      }
      ASSERT_TRUE(exchange->Finish().ok());
      ExpectSameBits(parameters, reference, Workers(size));
    });
  }
}

TEST_F(ExchangeTest, MisuseIsAnErrorInWords) {
  crew_.Run(1, [](EpochGroup& group) {
    Mlp model;
    const auto exchange = Opened(model, group, OptionsOf(2));
    ASSERT_TRUE(exchange->Backward(model.Loss(0, 0)).ok());
    const Status early = exchange->Finish();
    EXPECT_EQ(early.error().code, Code::kInvalid);
    EXPECT_THAT(early.error().message, testing::HasSubstr("1 of 2 lanes"));
  });
  crew_.Run(1, [](EpochGroup& group) {
    EXPECT_EQ(Exchange::Open(BucketsOf({}), group, {}).error().code, Code::kInvalid);
  });
}

TEST_F(ExchangeTest, WhatBackwardThrowsEndsTheStepForAll) {
  crew_.Run(3, [](EpochGroup& group) {
    Mlp model;
    const auto exchange = Opened(model, group, OptionsOf(3));
    if (group.rank() != 1) {
      EXPECT_FALSE(Step(*exchange, model, 0).ok());
      return;
    }
    const Status thrown = exchange->Backward(at::ones({3}));  // needs no gradient
    ASSERT_FALSE(thrown.ok());
    EXPECT_EQ(thrown.error().code, Code::kForeign);
    EXPECT_THAT(thrown.error().message, testing::HasSubstr("lane 1"));
    EXPECT_FALSE(group.status().ok());
  });
}

// Whoever finished a step holds its true gradients, whenever the break fell.
TEST_F(ExchangeTest, BreaksAtRandomMomentsEndEveryCall) {
  constexpr int kLanes = 8;
  constexpr uint64_t kSeed = 61;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  std::map<int, Tensors> reference;
  for (int step = 0; step < 4; ++step) reference[step] = Reference(step, kLanes);
  int broken = 0;
  for (int round = 0; round < 60; ++round) {
    const int size = 2 + static_cast<int>(random.Uniform(3));
    const int victim = static_cast<int>(random.Uniform(static_cast<uint64_t>(size)));
    const auto delay = std::chrono::microseconds(random.Uniform(20000));
    const bool reads = round % 2 == 1;
    crew_.read_bytes_min = [&](int) { return reads ? 1 : EpochGroup::kNeverRead; };
    std::atomic<int> failed{0};
    crew_.Run(size, [&](EpochGroup& group) {
      const GroupCrew::Breaker breaker(group, delay, victim);
      Mlp model;
      const auto exchange = Opened(model, group, OptionsOf(kLanes));
      for (int step = 0; step < 4; ++step) {
        if (!Step(*exchange, model, step).ok()) {
          ++failed;
          break;
        }
        ExpectSameBits(model.parameters(), reference[step], "step " + std::to_string(step));
      }
    });
    broken += failed > 0;
  }
  EXPECT_GT(broken, 5) << "the breaks came too late to test anything";
  EXPECT_TRUE(EpochGroup::AwaitTeardown(std::chrono::seconds(30)));
}

}  // namespace
}  // namespace keel
