// Turns requests into indices, indices into batches, and moves batches to the device.
#include "trainer/data/loader.h"

#include <c10/core/DeviceGuard.h>

#include <string>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "store/catch_torch.h"
#include "trainer/numerics/mix.h"

namespace keel {

Batch Changed(const Batch& batch, const std::function<at::Tensor(const at::Tensor&)>& change) {
  const auto changed = [&](const at::Tensor& one) { return one.defined() ? change(one) : one; };
  Batch made(changed(batch.data), changed(batch.target));
  for (const at::Tensor& one : batch.more) made.more.push_back(changed(one));
  made.tag = batch.tag;
  return made;
}

BatchLoader::BatchLoader(Dataset& dataset, const SampleOrder& order, const Spec& spec)
    : dataset_(dataset), order_(order), spec_(spec) {
  if (spec.config.threads < 1 || dataset.loading() == Loading::kInStep) return;
  const bool parallel = dataset.loading() == Loading::kAheadInParallel;
  const LoadAhead<Batch>::Spec ahead{
      .load = [this](const LoadRequest& request) { return Load(request); },
      .threads = parallel ? spec.config.threads : 1,
      .ahead = spec.config.ahead};
  try {
    ahead_ = std::make_unique<LoadAhead<Batch>>(ahead);
  } catch (const std::system_error& refused) {   // no bit depends on it
    LogWarn("loading-in-step", {{"reason", std::string("no thread is to be had: ") +
                                               refused.what()}});
  }
}

Result<Batch> BatchLoader::Load(const LoadRequest& request) {
  const std::vector<uint64_t> indices =
      order_.LaneSamples(request.cursor, static_cast<uint64_t>(request.lane));
  const uint64_t seed = DataSeed(spec_.seed, request.step, static_cast<uint64_t>(request.lane));
  KEEL_TRY_ASSIGN(Result<Batch> batch,
                  CatchTorch("loading " + map_style::IndicesText(indices),
                             [&] { return dataset_.LoadSeeded(indices, seed); }));
  if (!batch.ok() || !spec_.device.is_cuda()) return batch;
  return CatchTorch("pinning " + map_style::IndicesText(indices), [&] {
    const c10::DeviceGuard here(spec_.device);   // a new thread begins on the first GPU
    return Changed(*batch, [](const at::Tensor& one) { return one.pin_memory(); });
  });
}

Result<Batch> BatchLoader::Take(const LoadRequest& request, const LaneRange& lanes) {
  return OnDevice(ahead_ ? ahead_->Take(request, {.lanes = lanes,
                                                  .samples_per_step = order_.samples_per_step(),
                                                  .steps = spec_.steps})
                         : Load(request));
}

Result<Batch> BatchLoader::TakeAnother(const LoadRequest& request) {
  return OnDevice(ahead_ ? ahead_->TakeBeside(request) : Load(request));
}

Result<Batch> BatchLoader::OnDevice(const Result<Batch>& batch) const {
  if (!batch.ok() || !spec_.device.is_cuda()) return batch;
  // The allocator of pinned memory keeps the pinned tensors until the copy is done.
  return CatchTorch("copying samples to " + spec_.device.str(), [&] {
    constexpr bool kNonBlocking = true;
    return Changed(*batch, [&](const at::Tensor& one) {
      return one.to(spec_.device, kNonBlocking);
    });
  });
}

}  // namespace keel
