// Reference: training as it is meant to come out: one process, no group, one lane after the
// other, all lanes' gradients kept and added by a plain recursion. What the distributed trainer
// computes is compared with it, bit for bit.
// Promises   shares the parts that decide (samples, seeds, optimizer, updater) with the trainer,
//            but none of those that add, fold, exchange or average.
// Does not   care for memory or speed.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <vector>

#include "trainer/data/samples.h"
#include "trainer/dataset.h"
#include "trainer/numerics/autocast.h"
#include "trainer/numerics/numerics.h"
#include "trainer/numerics/tensor_digest.h"
#include "trainer/state/trail.h"
#include "trainer/state/update.h"
#include "trainer/tensors.h"

namespace keel {

// The loss of one lane's batch, a scalar.
using LossFunction = std::function<at::Tensor(const Batch&)>;

struct ReferenceJob {
  std::shared_ptr<torch::nn::Module> model;
  LossFunction loss;
  Dataset& dataset;
  Optimizer& optimizer;
  Updater& updater;
  Precision precision = Precision::kFp32;
  uint64_t seed = 0;
  uint64_t lanes = 1;
  uint64_t lane_batch = 4;
};

struct ReferenceRecord {
  std::vector<std::vector<float>> lane_losses;  // of each step
  std::vector<float> losses;                    // their tree means
  std::vector<Digest> parameters;               // after each step
  std::vector<bool> applied;
  Trail trail;
  Digest digest;                                // of parameters, buffers and optimizer at the end
};

// The sum over values[begin, begin+size), size being a power of two: left half + right half.
inline at::Tensor NodeSum(const std::vector<at::Tensor>& values, size_t begin, size_t size) {
  if (size == 1) return values[begin].clone();
  return NodeSum(values, begin, size / 2) + NodeSum(values, begin + size / 2, size / 2);
}

// Over all lanes: the largest aligned nodes, from left to right, then times 1/V.
inline at::Tensor TreeMean(const std::vector<at::Tensor>& lanes) {
  at::Tensor sum;
  for (size_t begin = 0; begin < lanes.size();) {
    size_t size = 1;
    while (begin % (2 * size) == 0 && begin + 2 * size <= lanes.size()) size *= 2;
    const at::Tensor node = NodeSum(lanes, begin, size);
    sum = sum.defined() ? sum + node : node;
    begin += size;
  }
  return sum.mul_(1.0 / static_cast<double>(lanes.size()));
}

inline std::vector<at::Tensor> ClonesOf(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> clones;
  for (const at::Tensor& tensor : tensors) clones.push_back(tensor.detach().clone());
  return clones;
}

inline void CopyAll(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& into) {
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < from.size(); ++i) into[i].copy_(from[i]);
}

class Reference {
 public:
  explicit Reference(const ReferenceJob& job)
      : job_(job), tensors_(TensorsOf(*job.model)), parameters_(JustTensors(tensors_.parameters)),
        buffers_(JustTensors(tensors_.buffers)) {}

  Result<ReferenceRecord> Run(uint64_t steps) {
    KEEL_TRY_ASSIGN(const SampleOrder order,
                    SampleOrder::Make({.seed = job_.seed, .dataset_size = job_.dataset.size(),
                                       .lanes = job_.lanes, .lane_batch = job_.lane_batch}));
    for (uint64_t i = 0; i < steps; ++i) {
      KEEL_TRY(Step(order));
      ++step_;
      cursor_ = order.After(cursor_);
    }
    record_.digest = DigestOfEverything();
    return record_;
  }

 private:
  struct Lane {
    std::vector<at::Tensor> gradients = {}, buffers = {};
    float loss = 0;
  };

  Status Step(const SampleOrder& order) {
    const std::vector<at::Tensor> before = ClonesOf(buffers_);
    std::vector<Lane> lanes;
    std::vector<float> losses;
    for (uint64_t lane = 0; lane < job_.lanes; ++lane) {
      CopyAll(before, buffers_);
      KEEL_TRY_ASSIGN(Lane computed, Compute(lane, order.LaneSamples(cursor_, lane)));
      losses.push_back(computed.loss);
      lanes.push_back(std::move(computed));
    }
    for (size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].mutable_grad() = MeanOver(lanes, &Lane::gradients, i);
    }
    CopyAll(before, buffers_);
    KEEL_TRY_ASSIGN(const StepOutcome outcome, job_.updater.Apply(step_, losses));
    if (outcome.applied) EndBuffers(lanes, before);
    record_.applied.push_back(outcome.applied);
    record_.losses.push_back(MeanLoss(losses));
    record_.trail.Add(step_, losses);
    record_.lane_losses.push_back(std::move(losses));
    record_.parameters.push_back(DigestOfTensors(parameters_));
    return Ok();
  }

  Result<Lane> Compute(uint64_t lane, const std::vector<uint64_t>& samples) {
    SeedData(job_.seed, step_, lane);
    KEEL_TRY_ASSIGN(const Batch batch, job_.dataset.Load(samples));
    SeedLane(job_.seed, step_, lane);
    for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
    at::Tensor loss;
    {
      const AutocastScope autocast(at::kCPU, job_.precision);
      loss = job_.loss(batch).to(at::kFloat);
    }
    (loss * job_.updater.loss_scale()).backward();
    Lane computed{.loss = loss.item<float>()};
    for (const at::Tensor& parameter : parameters_) {
      const at::Tensor& gradient = parameter.grad();
      computed.gradients.push_back(gradient.defined() ? gradient.clone()
                                                      : torch::zeros_like(parameter));
    }
    computed.buffers = ClonesOf(buffers_);
    return computed;
  }

  static at::Tensor MeanOver(const std::vector<Lane>& lanes, std::vector<at::Tensor> Lane::*what,
                             size_t index) {
    std::vector<at::Tensor> values;
    for (const Lane& lane : lanes) values.push_back((lane.*what)[index]);
    return TreeMean(values);
  }

  // Counters advance once a step; all else is averaged.
  void EndBuffers(const std::vector<Lane>& lanes, const std::vector<at::Tensor>& before) {
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i].is_floating_point()) {
        buffers_[i].copy_(MeanOver(lanes, &Lane::buffers, i));
      } else {
        buffers_[i].copy_(before[i] + (lanes.front().buffers[i] - before[i]));
      }
    }
  }

  static float MeanLoss(const std::vector<float>& losses) {
    std::vector<at::Tensor> values;
    for (const float loss : losses) values.push_back(torch::full({1}, loss));
    return TreeMean(values).item<float>();
  }

  Digest DigestOfEverything() const {
    std::vector<at::Tensor> all = parameters_;
    all.insert(all.end(), buffers_.begin(), buffers_.end());
    for (const NamedTensor& state : job_.optimizer.state()) all.push_back(state.tensor);
    return DigestOfTensors(all);
  }

  const ReferenceJob job_;
  const ModelTensors tensors_;
  std::vector<at::Tensor> parameters_, buffers_;
  uint64_t step_ = 0;
  uint64_t cursor_ = 0;
  ReferenceRecord record_;
};

}  // namespace keel
