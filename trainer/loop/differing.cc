// Owner and checker send the bytes of the same tensors, one after the other.
#include "trainer/loop/differing.h"

#include <cstring>
#include <utility>

#include "store/catch_torch.h"
#include "trainer/exchange/gather.h"
#include "trainer/numerics/tensor_difference.h"

namespace keel {
namespace {

constexpr size_t kSentBytesMax = size_t{32} << 20;   // by each of the two

struct SentTensor {
  std::string name;
  size_t gradient = 0;        // its number; of no use for the buffers
  at::IntArrayRef shape;
  at::ScalarType type = at::kFloat;
  size_t bytes = 0;
};

// All members come to the same list, since they have the same results and the same model.
std::vector<SentTensor> TensorsToSend(TrainState& state, const LaneResult& a, const LaneResult& b,
                              const std::vector<int64_t>& buffers) {
  std::vector<SentTensor> all;
  if (a.buffers != b.buffers) {
    const at::ScalarType type = state.buffers().type();
    all.push_back({kDifferingBuffers, 0, buffers, type,
                   static_cast<size_t>(buffers.front()) * c10::elementSize(type)});
  }
  const NamedTensors& parameters = state.model().tensors.parameters;
  for (size_t i = 0; i < a.gradients.size(); ++i) {
    if (a.gradients[i] == b.gradients[i]) continue;
    const at::Tensor& parameter = state.parameters()[i];
    all.push_back({kDifferingGradient + parameters[i].name, i, parameter.sizes(),
                   parameter.scalar_type(), parameter.nbytes()});
  }
  size_t sum = 0;
  std::vector<SentTensor> chosen;
  for (SentTensor& sent : all) {
    if (sum + sent.bytes > kSentBytesMax) continue;
    sum += sent.bytes;
    chosen.push_back(std::move(sent));
  }
  return chosen;
}

void Append(const LaneTensors& from, const std::vector<SentTensor>& parts, RecordBytes& to) {
  if (!from.kept()) return;
  for (const SentTensor& sent : parts) {
    const bool is_gradient = sent.name != kDifferingBuffers;
    at::Tensor tensor = is_gradient ? from.gradients[sent.gradient] : from.buffers;
    if (!tensor.defined()) tensor = at::zeros(sent.shape, sent.type);
    tensor = tensor.contiguous();
    const auto* const bytes = static_cast<const std::byte*>(tensor.data_ptr());
    to.insert(to.end(), bytes, bytes + tensor.nbytes());
  }
}

// `bytes`: of all parts.
std::vector<at::Tensor> TensorsIn(const std::vector<SentTensor>& parts,
                                  std::span<const std::byte> bytes) {
  std::vector<at::Tensor> tensors;
  for (const SentTensor& sent : parts) {
    tensors.push_back(at::empty(sent.shape, sent.type));
    std::memcpy(tensors.back().data_ptr(), bytes.data(), sent.bytes);
    bytes = bytes.subspan(sent.bytes);
  }
  return tensors;
}

}  // namespace

Result<std::vector<DifferingTensor>> GatherDiffering(TrainState& state, EpochGroup& group,
                                                     const Dispute& dispute,
                                                     const Testimony& testimony,
                                                     const LaneWork& work) {
  const std::vector<int64_t> buffers = {state.buffers().elements()};
  const std::vector<SentTensor> parts =
      TensorsToSend(state, testimony.owner, testimony.checker, buffers);
  RecordBytes mine;
  KEEL_TRY(CatchTorch("telling in what results differ", [&] {
    if (group.rank() == dispute.owner) Append(work.own_tensors, parts, mine);
    if (group.rank() == dispute.checker) Append(work.other_tensors, parts, mine);
  }));
  KEEL_TRY_ASSIGN(const std::vector<RecordBytes> all, GatherRecords(group, mine));
  size_t sum = 0;
  for (const SentTensor& sent : parts) sum += sent.bytes;
  std::span<const std::byte> owner(all[static_cast<size_t>(dispute.owner)]);
  std::span<const std::byte> checker(all[static_cast<size_t>(dispute.checker)]);
  if (dispute.owner == dispute.checker && checker.size() == 2 * sum) {
    owner = owner.first(sum);
    checker = checker.last(sum);
  }
  std::vector<DifferingTensor> differing;
  if (owner.size() != sum || checker.size() != sum) return differing;   // they were not kept
  KEEL_TRY(CatchTorch("comparing results", [&] {
    const std::vector<at::Tensor> ours = TensorsIn(parts, owner);
    const std::vector<at::Tensor> theirs = TensorsIn(parts, checker);
    for (size_t i = 0; i < parts.size(); ++i) {
      differing.push_back({parts[i].name, ours[i], theirs[i]});
    }
  }));
  return differing;
}

std::string ElementsText(const std::vector<DifferingTensor>& differing) {
  if (differing.empty()) return "";
  const DifferingTensor& first = differing.front();
  const TensorDifference difference = DifferenceOf(first.owner, first.checker);
  if (difference.differ == 0) return "";
  if (differing.size() == 1) return ", in " + DifferenceText(difference);
  std::string name = "the buffers";
  if (first.name != kDifferingBuffers) {
    name = "the gradient of " + first.name.substr(std::strlen(kDifferingGradient));
  }
  return "; in " + name + " " + DifferenceText(difference);
}

}  // namespace keel
