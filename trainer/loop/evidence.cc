// Digests and losses are written as hex, so that no bit of them is lost.
#include "trainer/loop/evidence.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "store/catch_torch.h"
#include "trainer/save/tensor_file.h"
#include "trainer/state/image.h"

namespace keel {
namespace {

constexpr const char* kMetadata = "evenkeel.corruption";
constexpr const char* kOrders = "evenkeel.strides";   // of inputs that are not contiguous
constexpr int64_t kVersion = 1;
constexpr const char* kData = "input.data";
constexpr const char* kTarget = "input.target";
constexpr const char* kMore = "input.more.";
constexpr const char* kOfOwner = "of_owner.";
constexpr const char* kOfChecker = "of_checker.";

std::string BitsText(float loss) {
  char text[9];
  std::snprintf(text, sizeof(text), "%08x", std::bit_cast<uint32_t>(loss));
  return text;
}

Result<float> LossIn(const std::string& text) {
  char* end = nullptr;
  const uint64_t bits = std::strtoull(text.c_str(), &end, 16);
  if (text.size() == 8 && *end == '\0') return std::bit_cast<float>(static_cast<uint32_t>(bits));
  return Error{Code::kInvalid, Shown(text) + " are not the bits of a loss"};
}

Json ClaimJson(const LaneClaim& claim) {
  Json gradients = Json::array();
  for (const Digest& digest : claim.result.gradients) gradients.push_back(digest.Hex());
  return {{"member", claim.member},
          {"role", claim.role},
          {"second", claim.is_second},
          {"loss", BitsText(claim.result.loss)},
          {"buffers", claim.result.buffers.Hex()},
          {"gradients", std::move(gradients)}};
}

Result<LaneClaim> ClaimIn(const Json& json) {
  LaneClaim claim;
  KEEL_TRY_ASSIGN(claim.member, Field<std::string>(json, "member"));
  KEEL_TRY_ASSIGN(claim.role, Field<std::string>(json, "role"));
  KEEL_TRY_ASSIGN(claim.is_second, Field<bool>(json, "second"));
  KEEL_TRY_ASSIGN(const std::string loss, Field<std::string>(json, "loss"));
  KEEL_TRY_ASSIGN(claim.result.loss, LossIn(loss));
  KEEL_TRY_ASSIGN(const std::string buffers, Field<std::string>(json, "buffers"));
  KEEL_TRY_ASSIGN(claim.result.buffers, ParseDigest(buffers));
  KEEL_TRY_ASSIGN(const auto gradients, Field<std::vector<std::string>>(json, "gradients"));
  for (const std::string& hex : gradients) {
    KEEL_TRY_ASSIGN(const Digest digest, ParseDigest(hex));
    claim.result.gradients.push_back(digest);
  }
  return claim;
}

std::string MetadataOf(const LaneEvidence& evidence) {
  Json claims = Json::array();
  for (const LaneClaim& claim : evidence.claims) claims.push_back(ClaimJson(claim));
  return DumpJson(Json{{"version", kVersion},
                       {"step", evidence.step},
                       {"lane", evidence.lane},
                       {"verdict", evidence.verdict},
                       {"fingerprint", evidence.fingerprint},
                       {"numbers", evidence.numbers},
                       {"parameters", evidence.parameters},
                       {"claims", std::move(claims)}});
}

Result<LaneEvidence> EvidenceIn(const std::string& text) {
  KEEL_TRY_ASSIGN(const Json json, ParseJson(text));
  KEEL_TRY_ASSIGN(const int64_t version, Field<int64_t>(json, "version"));
  if (version != kVersion) {
    return Error{Code::kInvalid, "it has version " + std::to_string(version) +
                                     " of its form, and this program knows " +
                                     std::to_string(kVersion)};
  }
  LaneEvidence evidence;
  KEEL_TRY_ASSIGN(evidence.step, Field<uint64_t>(json, "step"));
  KEEL_TRY_ASSIGN(evidence.lane, Field<int>(json, "lane"));
  KEEL_TRY_ASSIGN(evidence.verdict, Field<std::string>(json, "verdict"));
  KEEL_TRY_ASSIGN(evidence.fingerprint, Field<std::string>(json, "fingerprint"));
  KEEL_TRY_ASSIGN(evidence.numbers, Field<std::string>(json, "numbers"));
  KEEL_TRY_ASSIGN(evidence.parameters, Field<std::vector<std::string>>(json, "parameters"));
  KEEL_TRY_ASSIGN(const Json* const claims, ArrayField(json, "claims"));
  for (const Json& one : *claims) {
    KEEL_TRY_ASSIGN(LaneClaim claim, ClaimIn(one));
    if (claim.result.gradients.size() != evidence.parameters.size()) {
      return Error{Code::kInvalid, "the result of " + claim.member + " is not complete"};
    }
    evidence.claims.push_back(std::move(claim));
  }
  return evidence;
}

using ByName = std::map<std::string, at::Tensor>;

Status FillModel(const ByName& found, const std::string& path, TrainState& state) {
  for (const NamedTensor& one : EvidenceTensors(state)) {
    const auto there = found.find(one.name);
    if (there == found.end() && one.name.starts_with(kKeptPrefix)) continue;
    const bool fits = there != found.end() && there->second.sizes() == one.tensor.sizes() &&
                      there->second.scalar_type() == one.tensor.scalar_type();
    if (!fits) {
      return Error{Code::kInvalid, path + " is of another model: " + one.name +
                                       (there == found.end() ? " is not there"
                                                             : " is of another shape or type")};
    }
    KEEL_TRY(CatchTorch("filling the model", [&] {
      const at::NoGradGuard no_grad;
      at::Tensor(one.tensor).copy_(there->second);
    }));
  }
  return Ok();
}

// Kernels go by how a tensor lies in memory, and come to other bits where it lies otherwise.
Status Reorder(const std::string& text, const std::string& path, ByName* found) {
  KEEL_TRY_ASSIGN(const Json orders, ParseJson(text));
  for (auto& [name, tensor] : *found) {
    if (!orders.is_object() || !orders.contains(name)) continue;
    KEEL_TRY_ASSIGN(const auto strides, Field<std::vector<int64_t>>(orders, name.c_str()));
    const Result<at::Tensor> lies = CatchTorch(path + ", " + name, [&, &tensor = tensor] {
      at::Tensor like = at::empty_strided(tensor.sizes(), strides, tensor.options());
      return like.is_non_overlapping_and_dense() ? like.copy_(tensor) : tensor;
    });
    KEEL_TRY_ASSIGN(tensor, lies);
  }
  return Ok();
}

std::optional<Batch> BatchIn(const ByName& found) {
  const auto data = found.find(kData);
  const auto target = found.find(kTarget);
  if (data == found.end() || target == found.end()) return std::nullopt;
  Batch batch;
  batch.data = data->second;
  batch.target = target->second;
  for (size_t i = 0;; ++i) {
    const auto more = found.find(kMore + std::to_string(i));
    if (more == found.end()) return batch;
    batch.more.push_back(more->second);
  }
}

}  // namespace

std::string EvidenceName(uint64_t step, int lane) {
  return "corruption-step-" + std::to_string(step) + "-lane-" + std::to_string(lane) +
         ".safetensors";
}

NamedTensors EvidenceTensors(TrainState& state) {
  NamedTensors all = AsSaved(state.model().tensors);
  for (const NamedTensor& one : state.program().kept) {
    all.push_back({std::string(kKeptPrefix) + one.name, one.tensor});
  }
  return all;
}

Status WriteEvidence(Files& files, const std::string& path, const LaneEvidence& evidence,
                     const NamedTensors& model) {
  TensorFile file{model, {{kMetadata, MetadataOf(evidence)}}};
  Json orders = Json::object();
  NamedTensors& tensors = file.tensors;
  // A batch that is not of tensors alone has none of these.
  if (evidence.batch && evidence.batch->data.defined() && evidence.batch->target.defined()) {
    const auto add = [&](const std::string& name, const at::Tensor& tensor) {
      tensors.push_back({name, tensor});
      if (!tensor.is_contiguous()) orders[name] = tensor.strides().vec();
    };
    add(kData, evidence.batch->data);
    add(kTarget, evidence.batch->target);
    for (size_t i = 0; i < evidence.batch->more.size(); ++i) {
      add(kMore + std::to_string(i), evidence.batch->more[i]);
    }
  }
  if (!orders.empty()) file.metadata[kOrders] = DumpJson(orders);
  for (const DifferingTensor& one : evidence.differing) {
    tensors.push_back({kOfOwner + one.name, one.owner});
    tensors.push_back({kOfChecker + one.name, one.checker});
  }
  return WriteTensorFile(files, file, path, /*replace=*/true);
}

Result<LaneEvidence> ReadEvidence(Files& files, const std::string& path, TrainState& state) {
  KEEL_TRY_ASSIGN(const TensorFile file, ReadTensorFile(files, path));
  const auto metadata = file.metadata.find(kMetadata);
  if (metadata == file.metadata.end()) {
    return Error{Code::kInvalid, path + " is no evidence of a lane that was computed wrongly"};
  }
  Result<LaneEvidence> evidence = EvidenceIn(metadata->second);
  if (!evidence.ok()) return evidence.error().Doing(path);
  const NamedTensors& parameters = state.model().tensors.parameters;
  const bool are_same =
      std::equal(parameters.begin(), parameters.end(), evidence->parameters.begin(),
                 evidence->parameters.end(),
                 [](const NamedTensor& one, const std::string& name) { return one.name == name; });
  if (!are_same) return Error{Code::kInvalid, path + " is of a model with other parameters"};
  ByName found;
  for (const NamedTensor& one : file.tensors) found[one.name] = one.tensor;
  const auto orders = file.metadata.find(kOrders);
  if (orders != file.metadata.end()) KEEL_TRY(Reorder(orders->second, path, &found));
  KEEL_TRY(FillModel(found, path, state));
  evidence->batch = BatchIn(found);
  for (const auto& [name, tensor] : found) {
    if (name.rfind(kOfOwner, 0) != 0) continue;
    const std::string of = name.substr(std::string(kOfOwner).size());
    const auto checker = found.find(kOfChecker + of);
    if (checker != found.end()) evidence->differing.push_back({of, tensor, checker->second});
  }
  return evidence;
}

}  // namespace keel
