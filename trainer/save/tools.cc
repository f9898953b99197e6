// What a checkpoint says of itself, what a share holds, and waiting for a disk.
#include "trainer/save/tools.h"

#include <algorithm>
#include <utility>

#include "base/file_helpers.h"
#include "base/log.h"
#include "base/text.h"
#include "ckpt/names.h"
#include "trainer/saved_config.h"

namespace keel {
namespace {

constexpr Duration kTickPeriod = std::chrono::seconds(1);
// How soon a break is heard while the disk is waited for.
constexpr Duration kLookPeriod = std::chrono::milliseconds(50);

}  // namespace

SaveTools::SaveTools(TrainState& trained, CheckpointConfig how, Files& system, Clock& time,
                     Layout what)
    : state(trained), config(std::move(how)), files(system), clock(time), layout(std::move(what)),
      fence(config.lease, config.job), directory(system, time, config.root, config.job, fence),
      mirror(system, time, {config.root, config.mirror, config.retention}, config.job,
             config.lease),
      writer(system, time), committer(system, time, config, fence, directory, mirror, speed) {}

// --- What is said of it ---

Metadata SaveTools::Describe() const {
  const SampleOrder& samples = state.samples();
  Metadata metadata = state.registry().Numbers();
  const auto whole = [&](const char* name, uint64_t value) {
    metadata[name] = static_cast<int64_t>(value);
  };
  whole("data_epoch", samples.DataEpoch(state.cursor()));
  whole("samples", samples.plan().dataset_size);
  whole("lanes", state.config().lanes);
  whole("lane_batch", state.config().lane_batch);
  whole("lr_position", state.step());
  if (state.inexact_since() >= 0) metadata["inexact_since"] = state.inexact_since();
  metadata["fingerprint"] = place.fingerprint.empty() ? config.fingerprint : place.fingerprint;
  metadata["job"] = config.job;
  PutConfig(place.fingerprint.empty() ? config.config : place.config, &metadata);
  return metadata;
}

Result<SavePlan> SaveTools::PlanShare(const std::string& purpose) const {
  const std::string text = place.prefix + ' ' + std::to_string(state.step()) + ' ' + purpose;
  return Plan(DigestOf(BytesOf(text)).Hex().substr(0, kAttemptBytes),
              static_cast<uint32_t>(place.rank), static_cast<uint32_t>(place.world));
}

Result<SavePlan> SaveTools::Plan(const std::string& attempt, uint32_t part, uint32_t parts) const {
  SavePlan plan{config.root, attempt, part, parts, {}};
  plan.description.step = state.step();
  plan.description.codec = terms().codec;
  plan.description.layout = layout;
  plan.description.metadata = Describe();
  return plan;
}

bool SaveTools::IsBuffer(size_t tensor) const {
  const at::Tensor& one = state.registry().tensors()[tensor].tensor;
  const NamedTensors& buffers = state.model().tensors.buffers;
  return std::any_of(buffers.begin(), buffers.end(),
                     [&](const NamedTensor& buffer) { return buffer.tensor.is_same(one); });
}

Result<CpuBytes> SaveTools::ShareOf(const SavePlan& plan, bool alias_buffers) const {
  const FrameRange share = layout.PartOf(plan.part, plan.parts);
  return CpuBytes::Of(state.registry().tensors(), [&](size_t i) {
    const FrameRange frames = layout.FramesOf(i);
    if (frames.first >= share.end() || share.first >= frames.end()) {
      return CpuBytes::Take::kNothing;
    }
    return !alias_buffers && IsBuffer(i) ? CpuBytes::Take::kCopy : CpuBytes::Take::kAlias;
  });
}

// --- Waiting for a disk ---

std::optional<Duration> SaveTools::ExpectedSave(int shares) const {
  return speed.Expect(layout.tensor_bytes() / static_cast<uint64_t>(shares));
}

// The worker that is late says so; the others wait for it.
void SaveTools::TellIfLate(uint64_t step, const char* note) {
  const auto late = watch.Look(clock.Monotonic());
  if (!late) return;
  const bool commits = committer.under_way();
  const Progress& progress = writer.progress();
  const std::string share = BytesText(progress.bytes_done) + " of " +
                            BytesText(progress.bytes_total) + " written";
  LogWarn("save-late", {{"step", commits ? committer.step() : step},
                        {"rank", place.rank},
                        {"after", DurationText(*late)},
                        {"at", commits ? "its manifest" : share},
                        {"dir", config.root},
                        {"note", note}});
}

Status SaveTools::AwaitDisk(const DiskWaiting& waiting, uint64_t step,
                            const std::function<bool(Duration limit)>& is_done) {
  TimePoint told = clock.Monotonic();
  DiskPatience patience(told);
  while (!is_done(kLookPeriod)) {
    KEEL_TRY(waiting.look());
    TellIfLate(step, "the job waits for it; does the disk answer?");
    const TimePoint now = clock.Monotonic();
    if (now - told < kTickPeriod || !patience.IsLeft(now, writer.progress().bytes_done)) continue;
    waiting.tick();
    told = now;
  }
  return Ok();
}

Status SaveTools::AwaitWriter(const DiskWaiting& waiting, uint64_t step) {
  return AwaitDisk(waiting, step, [&](Duration limit) { return writer.AwaitDone(limit); });
}

Status SaveTools::CommitNow(const DiskWaiting& waiting, uint64_t step,
                            std::unique_ptr<Save> save) {
  committer.Begin(step, std::move(save), /*is_awaited=*/true);
  KEEL_TRY(AwaitDisk(waiting, step, [&](Duration limit) { return committer.AwaitDone(limit); }));
  return committer.Await();
}

}  // namespace keel
