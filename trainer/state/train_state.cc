// Lists what a step changes in one registry, and changes it.
#include "trainer/state/train_state.h"

#include <algorithm>
#include <span>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "store/catch_torch.h"
#include "trainer/exchange/gradient_buckets.h"
#include "trainer/numerics/fold.h"
#include "trainer/numerics/tensor_digest.h"
#include "trainer/state/device.h"
#include "trainer/state/image.h"
#include "trainer/state/state_pieces.h"

namespace keel {
namespace {

constexpr uint64_t kTurnBytes = uint64_t{256} << 20;   // some hundredths of a second

// What cannot be wrong with a module's.
Status CheckFace(const ModelTensors& tensors) {
  std::unordered_set<const void*> seen;
  const auto check = [&](const NamedTensors& list, const char* kind) -> Status {
    for (const auto& [name, tensor] : list) {
      const auto refuse = [&kind, &name = name](const std::string& why) {
        return Error{Code::kInvalid, std::string(kind) + " " + name + " of the model " + why};
      };
      if (!tensor.defined()) return refuse("is no tensor");
      if (!seen.insert(tensor.unsafeGetTensorImpl()).second) return refuse("is listed twice");
      const bool is_trained = &list == &tensors.parameters;
      if (is_trained && !(tensor.requires_grad() && tensor.is_leaf())) {
        return refuse("cannot be trained: it requires no gradient, or is computed from others");
      }
      if (!is_trained && tensor.requires_grad()) return refuse("requires a gradient");
    }
    return Ok();
  };
  KEEL_TRY(check(tensors.parameters, "parameter"));
  KEEL_TRY(check(tensors.buffers, "buffer"));
  return check(tensors.frozen, "frozen parameter");
}

}  // namespace

Result<std::unique_ptr<TrainState>> TrainState::Make(const TrainConfig& config,
                                                     TrainProgram program) {
  const bool has_model = program.model || program.face;
  if (!has_model || !program.loss || !program.dataset || !program.optimizer) {
    return Error{Code::kInvalid, "a training program needs a model, a loss, a dataset and an "
                                 "optimizer"};
  }
  if (program.model && program.face) {
    return Error{Code::kInvalid, "a training program has a module or a face, not both"};
  }
  if (program.face) KEEL_TRY(CheckFace(program.face->tensors));
  if (program.evaluation.dataset &&
      (!program.evaluation.metric || program.evaluation.every == 0 ||
       program.evaluation.dataset->size() == 0)) {
    return Error{Code::kInvalid, "an evaluation needs a metric, samples, and a number of steps "
                                 "between two evaluations"};
  }
  KEEL_TRY_ASSIGN(SampleOrder order, SampleOrder::Make({.seed = config.seed,
                                                        .dataset_size = program.dataset->size(),
                                                        .lanes = config.lanes,
                                                        .lane_batch = config.lane_batch}));
  std::unique_ptr<TrainState> state(
      new TrainState(config, std::move(program), std::move(order)));
  if (state->parameters_.empty()) {
    return Error{Code::kInvalid, "the model has no parameters that require a gradient"};
  }
  KEEL_TRY(state->CheckDevices());
  state->loader_ = std::make_unique<BatchLoader>(
      *state->program_.dataset, state->order_,
      BatchLoader::Spec{config.loader, config.steps, config.seed, config.device});
  KEEL_TRY_ASSIGN(state->updater_, Updater::Make(config.update, state->parameters_,
                                                 *state->program_.optimizer));
  KEEL_TRY(state->Register());
  KEEL_TRY(state->CheckApart());   // each is one dense piece of memory by now
  state->parts_ = PartsOf(state->model_.tensors, state->program_.optimizer->state(),
                          state->program_.kept);
  return state;
}

TrainState::TrainState(const TrainConfig& config, TrainProgram program, SampleOrder order)
    : config_(config),
      program_(std::move(program)),
      order_(std::move(order)),
      model_(program_.face ? *program_.face : FaceOf(program_.model)),
      parameters_(JustTensors(model_.tensors.parameters)),
      buffers_(std::make_unique<LaneBuffers>(JustTensors(model_.tensors.buffers))),
      seed_(config.seed) {}

// The optimizer's update of one would be taken back with the other, as a lane's trace.
Status TrainState::CheckApart() const {
  const auto begins = [](const NamedTensor& one) {
    return static_cast<const char*>(one.tensor.const_data_ptr());
  };
  for (const NamedTensor& buffer : model_.tensors.buffers) {
    for (const NamedTensor& parameter : model_.tensors.parameters) {
      const bool are_apart = begins(buffer) + buffer.tensor.nbytes() <= begins(parameter) ||
                             begins(parameter) + parameter.tensor.nbytes() <= begins(buffer);
      if (are_apart) continue;
      return Error{Code::kInvalid, "buffer " + buffer.name + " and parameter " + parameter.name +
                                       " share memory: give the buffer memory of its own, or make "
                                       "it no buffer"};
    }
  }
  return Ok();
}

Status TrainState::CheckDevices() const {
  const auto& [parameters, buffers, frozen, derived] = model_.tensors;
  NamedTensors all = parameters;
  all.insert(all.end(), buffers.begin(), buffers.end());
  all.insert(all.end(), frozen.begin(), frozen.end());
  return CheckDevice(all, config_.device);
}

Status TrainState::Register() {
  KEEL_TRY(registry_.AddTensors("", AsSaved(model_.tensors)));
  KEEL_TRY(registry_.AddTensors(std::string(kOptimizerPrefix), program_.optimizer->state()));
  KEEL_TRY(registry_.AddTensors(std::string(kKeptPrefix), program_.kept));
  KEEL_TRY(registry_.AddNumber("step", &step_));
  KEEL_TRY(registry_.AddNumber("cursor", &cursor_));
  KEEL_TRY(registry_.AddNumber("seed", &seed_));
  KEEL_TRY(updater_->Register(registry_));
  return registry_.AddNumber({"trail", [this] { return StateRegistry::Number(trail_.Hex()); },
                              [this](const StateRegistry::Number& number) -> Status {
                                const auto* const hex = std::get_if<std::string>(&number);
                                if (hex == nullptr) {
                                  return Error{Code::kInvalid, "trail: expected a digest in hex"};
                                }
                                KEEL_TRY_ASSIGN(const Digest digest, ParseDigest(*hex));
                                trail_ = Trail(digest);
                                return Ok();
                              }});
}

Status TrainState::MakeRoomForGradients() {
  if (gradients_) return Ok();
  BucketLimits limits{.most_bytes = config_.bucket_bytes};
  limits.last_bytes = std::min(limits.last_bytes, limits.most_bytes);
  KEEL_TRY_ASSIGN(gradients_, CatchTorch("making room for gradients", [&] {
    return std::make_shared<GradientBuckets>(parameters_, limits);
  }));
  return Ok();
}

void TrainState::Drop() {
  pending_.reset();
  // Until the state is whole no lane changes them, and a checkpoint may be on its way into them.
  if (whole()) buffers_->Restore();
}

Result<StepOutcome> TrainState::Apply(const std::vector<float>& lane_losses) {
  KEEL_CHECK(pending(), "step " << step_ << " has no gradients");
  const at::Tensor mean_buffers = *std::exchange(pending_, std::nullopt);
  const std::string doing = "applying step " + std::to_string(step_);
  KEEL_TRY(CatchTorch(doing, [&] {
    buffers_->Restore();
    if (!buffers_->empty()) buffers_->EndStep(mean_buffers);
  }));
  KEEL_TRY_ASSIGN(StepOutcome outcome, updater_->Apply(step_, lane_losses));
  KEEL_TRY(CatchTorch(doing, [&] {
    if (!outcome.applied) buffers_->Restore();
    buffers_->BeginStep();
  }));
  trail_.Add(step_, lane_losses);
  last_losses_ = lane_losses;
  ++step_;
  cursor_ = order_.After(cursor_);
  return outcome;
}

Status TrainState::KeepBuffers() {
  return CatchTorch("keeping buffers", [&] { buffers_->BeginStep(); });
}

float TrainState::MeanLoss(const std::vector<float>& lane_losses) {
  const auto add = [](float left, float right) { return left + right; };
  FoldStack<float> sum;
  for (size_t lane = 0; lane < lane_losses.size(); ++lane) {
    sum.Push({static_cast<int>(lane), 1}, lane_losses[lane], add);
  }
  return sum.Finish(add) * static_cast<float>(1.0 / static_cast<double>(lane_losses.size()));
}

Digest TrainState::ParametersDigest() const { return DigestOfTensors(parameters_); }

uint64_t TrainState::BytesWithoutBuffers() const {
  uint64_t bytes = registry_.bytes();
  for (const auto& [name, buffer] : model_.tensors.buffers) bytes -= buffer.nbytes();
  return bytes;
}

uint64_t TrainState::pieces() const {
  return PiecesFor(BytesWithoutBuffers(), config_.piece_bytes);
}

Digest TrainState::SmallDigest() const {
  Digester digester;
  digester.Update(registry_.LayoutDigest().bytes);
  const std::string numbers = registry_.NumbersText();
  digester.Update(std::as_bytes(std::span(numbers)));
  digester.Update(DigestOfTensors(JustTensors(model_.tensors.buffers)).bytes);
  return digester.Current();
}

Digest TrainState::PieceDigest(uint64_t piece) const {
  return DigestOfPiece(FlatWithoutBuffers(), piece, pieces());
}

Digest TrainState::DigestOfTurn(uint64_t turn) const {
  const uint64_t parts = PiecesFor(BytesWithoutBuffers(), kTurnBytes);
  return DigestOfPiece(FlatWithoutBuffers(), turn % parts, parts);
}

// Whatever runs beside the lanes may change buffers, which are put back before each of them.
std::vector<at::Tensor> TrainState::FlatWithoutBuffers() const {
  const std::vector<at::Tensor> buffers = JustTensors(model_.tensors.buffers);
  std::vector<at::Tensor> others;
  for (const NamedTensor& named : registry_.tensors()) {
    const auto is_it = [&](const at::Tensor& buffer) { return buffer.is_same(named.tensor); };
    if (std::any_of(buffers.begin(), buffers.end(), is_it)) continue;
    others.push_back(FlatAlias(named.tensor));
  }
  return others;
}

MemberReport TrainState::Report() const {
  MemberReport report;
  report.layout = registry_.LayoutDigest().Hex();
  report.doubts = doubts();
  report.unproven = unproven_;
  if (config_.recheck_every) report.recheck_every = static_cast<int64_t>(*config_.recheck_every);
  report.by_parts = config_.joins_beside && parts_.has_value() && pieces() > 1;
  report.lane_ns = speed_.lane_ns;
  report.link_ns = speed_.link_ns;
  if (held_ == Held::kSpoiled) {
    report.step = MemberReport::kSpoiled;
    return report;
  }
  if (held_ == Held::kWhole) report.step = static_cast<int64_t>(step_);
  report.pending = pending();
  report.trail = trail_.Hex();
  report.compared = compared_;
  report.numbers = registry_.NumbersText();
  report.inexact_since = inexact_since_;
  report.last_losses = last_losses_;
  return report;
}

Status TrainState::TakeNumbers(const MemberReport& source) {
  pending_.reset();
  KEEL_TRY(registry_.SetNumbersText(source.numbers));
  KEEL_TRY(CheckSeed("job"));
  last_losses_ = source.last_losses;
  inexact_since_ = source.inexact_since;
  return Ok();
}

Status TrainState::EndReceiving(const MemberReport& source) {
  KEEL_TRY(TakeNumbers(source));
  BeginReplaced();
  return Ok();
}

Status TrainState::BeginCatchingUp(const MemberReport& source) {
  KEEL_TRY(TakeNumbers(source));
  BeginReplaced();
  held_ = Held::kSpoiled;
  received_.assign(parameters_.size(), false);
  updater_->ApplyOnlyTo(received_);
  return Ok();
}

void TrainState::NoteReceived(size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    if (parts_->parts[i].parameter) received_[*parts_->parts[i].parameter] = true;
  }
  updater_->ApplyOnlyTo(received_);
  if (program_.on_replaced) program_.on_replaced(step_);
}

void TrainState::EndCatchingUp() {
  BeginReplaced();
  compared_ = true;
}

Status TrainState::EndRestoring(const Metadata& numbers, int64_t inexact_since) {
  pending_.reset();
  KEEL_TRY(registry_.SetNumbers(numbers));
  KEEL_TRY(CheckSeed("checkpoint"));
  last_losses_.clear();
  inexact_since_ = inexact_since;
  BeginReplaced();
  return Ok();
}

Status TrainState::CheckOwn() const {
  if (!filled_ahead()) return Ok();
  return Error{Code::kInvalid, "this worker has loaded a checkpoint that is not there any more, "
                               "and cannot begin with what its program built; was the checkpoint "
                               "removed while the job was starting? Start the job again"};
}

Status TrainState::TakeOwn() {
  KEEL_TRY(CheckOwn());
  KEEL_TRY(KeepBuffers());
  held_ = Held::kWhole;
  return Ok();
}

void TrainState::EndLoadingWeights() { BeginReplaced(); }

void TrainState::BeginReplaced() {
  compared_ = false;
  updater_->ApplyOnlyTo({});
  buffers_->BeginStep();
  held_ = Held::kWhole;
  if (program_.on_replaced) program_.on_replaced(step_);
}

void TrainState::NoteInexact() {
  if (inexact_since_ < 0) inexact_since_ = static_cast<int64_t>(step_);
}

Status TrainState::CheckSeed(const std::string& whose) const {
  if (seed_ == config_.seed) return Ok();
  return Error{Code::kInvalid, "the " + whose + "'s seed is " + std::to_string(seed_) +
                                   ", ours is " + std::to_string(config_.seed)};
}

}  // namespace keel
