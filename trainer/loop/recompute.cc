// One worker alone, with a group of its own, and no step.
#include "trainer/loop/recompute.h"

#include <memory>
#include <utility>

#include "base/text.h"
#include "elastic/protocol/differing_words.h"
#include "store/catch_torch.h"
#include "trainer/exchange/exchange.h"
#include "trainer/group/epoch_group.h"
#include "trainer/loop/alone.h"
#include "trainer/loop/differing.h"
#include "trainer/loop/evidence.h"
#include "trainer/loop/lane_work.h"

namespace keel {
namespace {

struct Mine {
  LaneResult result;
  LaneTensors tensors;
};

Result<Mine> Compute(TrainState& state, const LaneEvidence& evidence) {
  KEEL_TRY_ASSIGN(const std::unique_ptr<EpochGroup> group,
                  EpochGroup::Build(SpecAlone(state.config()), CancelToken::Never()));
  KEEL_TRY(state.MakeRoomForGradients());
  const int lanes = static_cast<int>(state.config().lanes);
  KEEL_TRY_ASSIGN(const std::unique_ptr<Exchange> exchange,
                  Exchange::Open(state.gradients(), *group,
                                 {.lanes = lanes, .reduce = state.config().reduce}));
  KEEL_TRY(exchange->Place(EvenPlacement(1, lanes)));
  std::optional<Batch> batch;
  if (evidence.batch) {
    batch = Changed(*evidence.batch, [&](const at::Tensor& one) {
      return one.to(state.config().device);
    });
  }
  Mine mine;
  KEEL_TRY_ASSIGN(mine.result, ComputeAgain(state, *exchange,
                                            {evidence.lane, &mine.tensors, batch ? &*batch
                                                                                 : nullptr}));
  return mine;
}

// The tensor of that name, in which owner and checker differ.
at::Tensor TensorOf(const Mine& mine, const LaneEvidence& evidence, const DifferingTensor& like) {
  if (like.name == kDifferingBuffers) return mine.tensors.buffers;
  for (size_t i = 0; i < evidence.parameters.size(); ++i) {
    if (like.name != kDifferingGradient + evidence.parameters[i]) continue;
    const at::Tensor& made = mine.tensors.gradients[i];
    return made.defined() ? made : at::zeros_like(like.owner);
  }
  return {};
}

// In which elements, if that claim's tensors are in the file.
std::string ElementsOf(const LaneClaim& claim, const LaneEvidence& evidence, const Mine& mine) {
  if (claim.is_second || !mine.tensors.kept()) return "";
  const bool is_owner = claim.role == "owner";
  for (const DifferingTensor& one : evidence.differing) {
    const at::Tensor own = TensorOf(mine, evidence, one);
    const at::Tensor& claimed = is_owner ? one.owner : one.checker;
    const bool are_alike = own.defined() && own.sizes() == claimed.sizes() &&
                           own.scalar_type() == claimed.scalar_type();
    if (!are_alike) continue;
    const std::string text = ElementsText({{one.name, claimed, own}});
    if (!text.empty()) return text;
  }
  return "";
}

}  // namespace

Result<Recomputed> Recompute(TrainState& state, const std::string& fingerprint, Files& files,
                             const std::string& path) {
  KEEL_TRY_ASSIGN(const LaneEvidence evidence, ReadEvidence(files, path, state));
  if (evidence.fingerprint != fingerprint) {
    return Error{Code::kInvalid,
                 path + " is of another program, machine or options: " +
                     Shown(DifferingWords(evidence.fingerprint, fingerprint)) +
                     ", and here it is " +
                     Shown(DifferingWords(fingerprint, evidence.fingerprint))};
  }
  KEEL_TRY(state.registry().SetNumbersText(evidence.numbers));
  state.EndLoadingWeights();
  if (evidence.lane < 0 || static_cast<uint64_t>(evidence.lane) >= state.config().lanes) {
    return Error{Code::kInvalid, path + " is of lane " + std::to_string(evidence.lane) +
                                     ", and the program has " +
                                     std::to_string(state.config().lanes) + " lanes"};
  }
  KEEL_TRY_ASSIGN(const Mine mine, Compute(state, evidence));
  Recomputed recomputed{evidence.step, evidence.lane, evidence.verdict, {}};
  for (const LaneClaim& claim : evidence.claims) {
    std::string differs = DifferencesOf(claim.result, mine.result, evidence.parameters);
    if (!differs.empty()) {
      KEEL_TRY_ASSIGN(const std::string elements, CatchTorch("comparing results", [&] {
                        return ElementsOf(claim, evidence, mine);
                      }));
      differs += elements;
    }
    recomputed.claims.push_back({claim.member, claim.role, claim.is_second, std::move(differs)});
  }
  return recomputed;
}

}  // namespace keel
