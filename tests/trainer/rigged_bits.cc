// Flips the bit in the loss function, in a hook on a parameter's gradient, or as a mean was made.
#include "tests/trainer/rigged_bits.h"

#include <unistd.h>

#include <cinttypes>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>

#include "base/print_out.h"
#include "tests/trainer/flip_bit.h"
#include "tests/trainer/watched_means.h"

namespace keel {
namespace {

struct BitsRule {
  std::string rank, how, what;
  uint64_t step = 0;
  uint64_t where = 0;
};

bool ReadBitsRule(BitsRule& rule) {
  const char* const text = std::getenv("KEEL_RIGGED_BITS");
  const char* const rank = std::getenv("LOCAL_RANK");
  std::istringstream stream(text == nullptr ? "" : text);
  return (stream >> rule.rank >> rule.step >> rule.how >> rule.what >> rule.where) &&
         rule.rank == (rank == nullptr ? "0" : rank);
}

class Rigged {
 public:
  Rigged(BitsRule rule, std::function<uint64_t()> steps_made)
      : rule_(std::move(rule)), steps_made_(std::move(steps_made)) {}

  const BitsRule& rule() const { return rule_; }
  // Whether it strikes now.
  bool Strikes() {
    const uint64_t step = steps_made_();
    if (rule_.how == "once" ? (struck_ || step != rule_.step) : step < rule_.step) return false;
    if (!struck_) {
      PrintOut("rigged %s at %" PRIu64 " pid %d\n", rule_.what.c_str(), step,
               static_cast<int>(getpid()));
    }
    return struck_ = true;
  }

 private:
  const BitsRule rule_;
  const std::function<uint64_t()> steps_made_;
  bool struck_ = false;
};

void RigSum(const std::shared_ptr<Rigged>& rigged, const std::function<uint64_t()>& steps_made) {
  struct Made {
    uint64_t step = 0;
    uint64_t sums = 0;   // of that step
  };
  WatchMeans([rigged, steps_made, made = std::make_shared<Made>()](const at::Tensor& mean) {
    const uint64_t step = steps_made();
    if (step != made->step) *made = {step, 0};
    const uint64_t where = rigged->rule().where;
    if (made->sums++ == where % 2 && rigged->Strikes()) FlipBitOf(mean, where);
  });
}

}  // namespace

void RigBits(TrainProgram& program, const std::function<uint64_t()>& steps_made) {
  BitsRule rule;
  if (!ReadBitsRule(rule)) return;
  const auto rigged = std::make_shared<Rigged>(std::move(rule), steps_made);
  const ModelTensors tensors = TensorsOf(*program.model);
  const uint64_t where = rigged->rule().where;
  if (rigged->rule().what == "gradient") {
    const at::Tensor& parameter = tensors.parameters[where % tensors.parameters.size()].tensor;
    parameter.register_hook([rigged, where](const at::Tensor& made) {
      if (!rigged->Strikes()) return made;
      const at::Tensor wrong = made.clone();
      FlipBitOf(wrong, where);
      return wrong;
    });
    return;
  }
  if (rigged->rule().what == "sum") return RigSum(rigged, steps_made);
  std::vector<at::Tensor> struck;   // buffers, or the optimizer's state
  for (const NamedTensor& one : tensors.buffers) {
    if (one.tensor.is_floating_point()) struck.push_back(one.tensor);
  }
  if (rigged->rule().what == "state") {
    struck.clear();
    for (const NamedTensor& one : program.optimizer->state()) {
      if (one.tensor.is_floating_point()) struck.push_back(one.tensor);
    }
  }
  program.loss = [rigged, where, struck, inner = program.loss](const Batch& batch) {
    const at::Tensor loss = inner(batch);
    if (!loss.requires_grad()) return loss;   // an evaluation's
    if (rigged->rule().what == "loss") return rigged->Strikes() ? loss + 1e-3 : loss;
    if (struck.empty() || !rigged->Strikes()) return loss;
    const at::NoGradGuard no_grad;
    FlipBitOf(struck[where % struck.size()], where);
    return loss;
  };
}

}  // namespace keel
