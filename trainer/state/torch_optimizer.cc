// An optimizer of torch::optim behind our interface. Torch makes its state at the first step and
// counts steps in plain integers; here both exist as tensors from the start.
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <functional>
#include <unordered_map>
#include <utility>

#include "store/catch_torch.h"
#include "trainer/optimizer.h"

namespace keel {
namespace {

namespace optim = torch::optim;

// A step count that Torch keeps as an integer, and its live tensor.
struct Counter {
  at::Tensor tensor;
  std::function<int64_t()> get;
  std::function<void(int64_t)> set;
};

class TorchOptimizer : public Optimizer {
 public:
  explicit TorchOptimizer(std::unique_ptr<optim::Optimizer> optimizer)
      : optimizer_(std::move(optimizer)) {}

  // Makes all state and lists it. Exceptions of Torch pass through.
  Status Prepare(const NamedTensors& parameters) {
    std::unordered_map<const void*, const NamedTensor*> by_tensor;
    for (const NamedTensor& one : parameters) by_tensor[one.tensor.unsafeGetTensorImpl()] = &one;
    size_t covered = 0;
    for (auto& group : optimizer_->param_groups()) {
      rates_.push_back(group.options().get_lr());
      for (const at::Tensor& tensor : group.params()) {
        const auto found = by_tensor.find(tensor.unsafeGetTensorImpl());
        if (found == by_tensor.end() && !tensor.requires_grad()) {
          return Error{Code::kInvalid, "the optimizer has a parameter that is not trained; make it "
                                       "with those only that have requires_grad"};
        }
        if (found == by_tensor.end()) {
          return Error{Code::kInvalid, "the optimizer changes a tensor that is not a parameter of "
                                       "the model"};
        }
        KEEL_TRY(PrepareOne(*found->second, group.options()));
        ++covered;
      }
    }
    if (covered != parameters.size()) {
      return Error{Code::kInvalid, "the optimizer was made with " + std::to_string(covered) +
                                       " of the model's " + std::to_string(parameters.size()) +
                                       " parameters; freeze the others (requires_grad_(false))"};
    }
    if (!(rates_.front() > 0)) {
      return Error{Code::kInvalid, "the first parameter group's rate is not above 0"};
    }
    return Ok();
  }

  Status Step(double learning_rate) override {
    return CatchTorch("torch::optim", [&] {
      for (const Counter& counter : counters_) counter.set(counter.tensor.item<int64_t>());
      auto& groups = optimizer_->param_groups();
      for (size_t i = 0; i < groups.size(); ++i) {
        groups[i].options().set_lr(learning_rate * (rates_[i] / rates_.front()));
      }
      optimizer_->step();
      for (const Counter& counter : counters_) counter.tensor.fill_(counter.get());
    });
  }

  const NamedTensors& state() const override { return state_; }
  std::string Text() const override { return "torch::optim"; }

 private:
  Status PrepareOne(const NamedTensor& parameter, optim::OptimizerOptions& options) {
    if (auto* adam = dynamic_cast<optim::AdamOptions*>(&options)) {
      PrepareAdam<optim::AdamParamState>(parameter, adam->amsgrad());
    } else if (auto* adamw = dynamic_cast<optim::AdamWOptions*>(&options)) {
      PrepareAdam<optim::AdamWParamState>(parameter, adamw->amsgrad());
    } else if (auto* rmsprop = dynamic_cast<optim::RMSpropOptions*>(&options)) {
      PrepareRmsprop(parameter, *rmsprop);
    } else if (auto* sgd = dynamic_cast<optim::SGDOptions*>(&options)) {
      return PrepareSgd(parameter, *sgd);
    } else if (dynamic_cast<optim::AdagradOptions*>(&options) != nullptr) {
      // Adagrad is the only one whose constructor makes its state.
      auto& held = *optimizer_->state().at(parameter.tensor.unsafeGetTensorImpl());
      auto& state = static_cast<optim::AdagradParamState&>(held);
      Count(parameter, state);
      List(parameter, "sum", state.sum());
    } else {
      return Error{Code::kInvalid, "this optimizer cannot be used here: it is none of Adagrad, "
                                   "Adam, AdamW, RMSprop and SGD of torch::optim"};
    }
    return Ok();
  }

  template <class State>
  State& Make(const NamedTensor& parameter) {
    auto state = std::make_unique<State>();
    State& made = *state;
    optimizer_->state()[parameter.tensor.unsafeGetTensorImpl()] = std::move(state);
    return made;
  }

  static at::Tensor Zeros(const NamedTensor& parameter) {
    return at::zeros_like(parameter.tensor.detach());
  }

  void List(const NamedTensor& parameter, const char* what, const at::Tensor& tensor) {
    state_.push_back({parameter.name + "." + what, tensor});
  }

  template <class State>
  void Count(const NamedTensor& parameter, State& state) {
    counters_.push_back({at::full({}, state.step(), at::kLong),
                         [&state] { return state.step(); },
                         [&state](int64_t step) { state.step(step); }});
    List(parameter, "step", counters_.back().tensor);
  }

  template <class State>
  void PrepareAdam(const NamedTensor& parameter, bool amsgrad) {
    State& state = Make<State>(parameter);
    Count(parameter, state);
    state.exp_avg(Zeros(parameter));
    state.exp_avg_sq(Zeros(parameter));
    List(parameter, "exp_avg", state.exp_avg());
    List(parameter, "exp_avg_sq", state.exp_avg_sq());
    if (!amsgrad) return;
    state.max_exp_avg_sq(Zeros(parameter));
    List(parameter, "max_exp_avg_sq", state.max_exp_avg_sq());
  }

  void PrepareRmsprop(const NamedTensor& parameter, const optim::RMSpropOptions& options) {
    auto& state = Make<optim::RMSpropParamState>(parameter);
    Count(parameter, state);
    state.square_avg(Zeros(parameter));
    List(parameter, "square_avg", state.square_avg());
    if (options.momentum() > 0) {
      state.momentum_buffer(Zeros(parameter));
      List(parameter, "momentum_buffer", state.momentum_buffer());
    }
    if (options.centered()) {
      state.grad_avg(Zeros(parameter));
      List(parameter, "grad_avg", state.grad_avg());
    }
  }

  // Torch's first step sets the buffer to the gradient itself. Beginning with a buffer of zeros has
  // the same result, unless dampening holds the gradient back.
  Status PrepareSgd(const NamedTensor& parameter, const optim::SGDOptions& options) {
    if (options.momentum() == 0) return Ok();
    if (options.dampening() != 0) {
      return Error{Code::kInvalid, "SGD with dampening cannot be used here: its first step differs "
                                   "from all others; set dampening to 0"};
    }
    auto& state = Make<optim::SGDParamState>(parameter);
    state.momentum_buffer(Zeros(parameter));
    List(parameter, "momentum_buffer", state.momentum_buffer());
    return Ok();
  }

  const std::unique_ptr<optim::Optimizer> optimizer_;
  std::vector<double> rates_;  // the rate of each group, as given
  std::vector<Counter> counters_;
  NamedTensors state_;
};

}  // namespace

Result<std::unique_ptr<Optimizer>> AdaptTorchOptimizer(
    NamedTensors parameters, std::unique_ptr<optim::Optimizer> optimizer) {
  auto adapted = std::make_unique<TorchOptimizer>(std::move(optimizer));
  KEEL_TRY_ASSIGN(const Status prepared, CatchTorch("preparing the optimizer's state",
                                               [&] { return adapted->Prepare(parameters); }));
  KEEL_TRY(prepared);
  return std::unique_ptr<Optimizer>(std::move(adapted));
}

}  // namespace keel
