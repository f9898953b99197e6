// Flips the bit in the loss function, or in a hook on a parameter's gradient.
#include "tests/trainer/rigged_bits.h"

#include <unistd.h>

#include <cinttypes>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>

#include "base/print_out.h"
#include "tests/trainer/flip_bit.h"

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
  std::vector<at::Tensor> buffers;
  for (const NamedTensor& one : tensors.buffers) {
    if (one.tensor.is_floating_point()) buffers.push_back(one.tensor);
  }
  program.loss = [rigged, where, buffers, inner = program.loss](const Batch& batch) {
    const at::Tensor loss = inner(batch);
    if (!loss.requires_grad()) return loss;   // an evaluation's
    if (rigged->rule().what == "loss") return rigged->Strikes() ? loss + 1e-3 : loss;
    if (buffers.empty() || !rigged->Strikes()) return loss;
    const at::NoGradGuard no_grad;
    FlipBitOf(buffers[where % buffers.size()], where);
    return loss;
  };
}

}  // namespace keel
