// A lane around a backward that somebody else runs: the same bits as by ours, in whatever thread,
// and the exchange itself says that it broke, whatever the backward makes of that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn.h>

#include <exception>
#include <functional>
#include <thread>

#include "tests/harness/expect_ok.h"
#include "tests/trainer/crew.h"
#include "trainer/exchange/exchange.h"

namespace keel {
namespace {

using ::testing::HasSubstr;

constexpr int kLanes = 6;

// Made without any generator, which the workers' threads would share.
class Model {
 public:
  Model() {
    net_->push_back(torch::nn::Linear(20, 64));
    net_->push_back(torch::nn::Tanh());
    net_->push_back(torch::nn::Linear(64, 10));
    const torch::NoGradGuard no_grad;
    for (at::Tensor& parameter : net_->parameters()) {
      const at::Tensor wave = at::sin(at::arange(parameter.numel(), at::kFloat) * 0.7391);
      parameter.copy_(wave.view(parameter.sizes()) * 0.2);
    }
    unused_ = torch::ones({7}).requires_grad_();
  }
  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all = net_->parameters();
    all.push_back(unused_);
    return all;
  }
  at::Tensor Loss(int lane) {
    const at::Tensor x = at::sin(at::arange(60, at::kFloat) * 0.7 + lane).view({3, 20});
    return net_->forward(x).pow(2).mean();
  }

 private:
  torch::nn::Sequential net_;
  at::Tensor unused_;
};

std::unique_ptr<Exchange> Opened(const Model& model, EpochGroup& group) {
  const BucketLimits small{.most_bytes = 4 << 10, .last_bytes = 1 << 10};
  auto exchange = Exchange::Open(std::make_shared<GradientBuckets>(model.parameters(), small),
                                 group, {.lanes = kLanes});
  KEEL_CHECK(exchange.ok(), exchange.error().message);
  return std::move(*exchange);
}

// What it threw; empty: nothing.
std::string Thrown(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

// In a thread of its own, as an interpreter's.
std::string ThrownElsewhere(const std::function<void()>& body) {
  std::string thrown;
  std::thread([&] { thrown = Thrown(body); }).join();
  return thrown;
}

class ForeignBackward : public testing::Test {
 protected:
  static void SetUpTestSuite() { at::set_num_threads(1); }
  GroupCrew crew_;
};

TEST_F(ForeignBackward, LeavesTheBitsOfOurs) {
  std::vector<at::Tensor> reference;
  crew_.Run(1, [&](EpochGroup& group) {
    Model model;
    const auto exchange = Opened(model, group);
    for (int lane = 0; lane < kLanes; ++lane) ASSERT_OK(exchange->Backward(model.Loss(lane)));
    ASSERT_OK(exchange->Finish());
    for (const at::Tensor& one : model.parameters()) reference.push_back(one.grad().clone());
  });
  for (const int size : {1, 2, 3, 5, 7}) {
    crew_.Run(size, [&](EpochGroup& group) {
      Model model;
      const auto exchange = Opened(model, group);
      for (int step = 0; step < 3; ++step) {
        for (int lane = exchange->lanes().begin; lane < exchange->lanes().end; ++lane) {
          const at::Tensor loss = model.Loss(lane);
          ASSERT_OK(exchange->BeginLane());
          ASSERT_EQ(ThrownElsewhere([&] { loss.backward(); }), "");
          ASSERT_OK(exchange->EndLane(Ok()));
        }
        ASSERT_OK(exchange->Finish());
        for (size_t i = 0; i < reference.size(); ++i) {
          EXPECT_TRUE(at::equal(model.parameters()[i].grad(), reference[i])) << size << " " << i;
        }
      }
    });
  }
}

// A script may tell the exception in its own words, or swallow it.
TEST_F(ForeignBackward, ABreakIsToldByTheExchangeWhateverTheBackwardSays) {
  for (const bool swallows : {false, true}) {
    crew_.Run(2, [&](EpochGroup& group) {
      Model model;
      const auto exchange = Opened(model, group);
      if (group.rank() == 1) {
        group.Abort(Error{Code::kPeerLost, "the test's break"});
        return;
      }
      Status ended;
      for (int lane = exchange->lanes().begin; ended.ok() && lane < exchange->lanes().end; ++lane) {
        const at::Tensor loss = model.Loss(lane);
        ended = exchange->BeginLane();
        if (!ended.ok()) break;
        const std::string thrown = ThrownElsewhere([&] { loss.backward(); });
        const bool hides = swallows || thrown.empty();
        ended = exchange->EndLane(hides ? Ok() : Status(Error{Code::kForeign, "oh dear"}));
      }
      ASSERT_FALSE(ended.ok());
      EXPECT_EQ(ended.error().code, group.status().error().code);
      EXPECT_NE(ended.error().code, Code::kForeign) << ended.error().message;
      EXPECT_THAT(ended.error().message, testing::Not(HasSubstr("oh dear")));
    });
  }
}

TEST_F(ForeignBackward, WhatItThrowsEndsTheStepForAll) {
  crew_.Run(3, [](EpochGroup& group) {
    Model model;
    const auto exchange = Opened(model, group);
    ASSERT_OK(exchange->BeginLane());
    if (group.rank() == 1) {
      const Status ended = exchange->EndLane(Error{Code::kForeign, "oh dear"});
      EXPECT_EQ(ended.error().code, Code::kForeign);
      EXPECT_THAT(ended.error().message, HasSubstr("oh dear"));
      EXPECT_FALSE(group.status().ok());
      return;
    }
    const at::Tensor loss = model.Loss(exchange->lanes().begin);
    (void)ThrownElsewhere([&] { loss.backward(); });
    Status ended = exchange->EndLane(Ok());
    if (ended.ok()) ended = exchange->Backward(model.Loss(exchange->lanes().begin + 1));
    if (ended.ok()) ended = exchange->Finish();
    ASSERT_FALSE(ended.ok());
    EXPECT_NE(ended.error().code, Code::kForeign);
  });
}

TEST_F(ForeignBackward, MisuseIsAnErrorInWords) {
  crew_.Run(1, [](EpochGroup& group) {
    Model model;
    const auto exchange = Opened(model, group);
    EXPECT_THAT(exchange->EndLane(Ok()).error().message, HasSubstr("has not begun"));
  });
  crew_.Run(1, [](EpochGroup& group) {
    Model model;
    const auto exchange = Opened(model, group);
    ASSERT_OK(exchange->BeginLane());
    EXPECT_THAT(exchange->BeginLane().error().message, HasSubstr("begun already"));
  });
}

}  // namespace
}  // namespace keel
