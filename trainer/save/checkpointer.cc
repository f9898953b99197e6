// Epochs for both ways to save, and what is said of all checkpoints.
#include "trainer/save/checkpointer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/log.h"
#include "ckpt/catalog.h"
#include "trainer/save/mirror_plan.h"

namespace keel {
namespace {

constexpr Duration kMirrorLook = std::chrono::milliseconds(200);

}  // namespace

Result<std::unique_ptr<Checkpointer>> Checkpointer::Open(TrainState& state,
                                                         CheckpointConfig config, Files& files,
                                                         Clock& clock) {
  KEEL_TRY_ASSIGN(std::vector<TensorSpec> specs, SpecsOf(state.registry().tensors()));
  KEEL_TRY_ASSIGN(Layout layout, Layout::Make(std::move(specs)));
  return std::unique_ptr<Checkpointer>(
      new Checkpointer(state, std::move(config), files, clock, std::move(layout)));
}

Checkpointer::Checkpointer(TrainState& state, CheckpointConfig config, Files& files, Clock& clock,
                           Layout layout)
    : tools_(state, std::move(config), files, clock, std::move(layout)), beside_(tools_),
      at_once_(tools_) {}

Checkpointer::~Checkpointer() {
  tools_.writer.StopMakingRoom();
  EndEpoch();
  (void)tools_.committer.Await();
}

void Checkpointer::BeginEpoch(const SavePlace& place) {
  const SaveTerms before = terms(), ours = tools_.own_terms();
  tools_.place = place;
  tools_.fence.BeginEpoch(place.epoch);
  if (saves() && terms() != before && terms() != ours) {
    LogWarn("save-options-differ", {{"rank", place.rank},
                                    {"here", ours.Text()},
                                    {"of_rank_0", terms().Text()},
                                    {"note", "those of rank 0 count"}});
  }
  if (saves() && (terms().every_steps > 0 || config().every_time > Duration(0))) {
    tools_.writer.MakeRoom(tools_.layout, static_cast<uint32_t>(place.rank),
                           static_cast<uint32_t>(place.world));
  }
  if (place.rank == 0) return tools_.mirror.BeginEpoch(place.epoch);
  LetGo();
}

void Checkpointer::BeginMirroring() {
  if (mirrors() && tools_.place.rank == 0) {
    tools_.mirror.Begin(tools_.place.epoch, tools_.state.step());
  }
}

void Checkpointer::LetGo() {
  tools_.directory.LetGo();
  tools_.mirror.End();
}

void Checkpointer::EndEpoch() {
  beside_.EndEpoch();
  at_once_.EndEpoch();
}

Status Checkpointer::SaveAlone(const DiskWaiting& waiting, std::optional<TimePoint> deadline) {
  if (!saves()) return Error{Code::kNotFound, "no directory to save in"};
  if (deadline) Hurry();
  EndEpoch();
  (void)tools_.committer.Await();
  KEEL_TRY(at_once_.SaveAlone(waiting));
  if (!mirrors()) return Ok();
  tools_.mirror.Begin(tools_.place.epoch, tools_.state.step());
  MirrorWait wait = WaitForMirror(/*all=*/false);
  for (;;) {
    KEEL_TRY_ASSIGN(const bool is_there, wait.Await(kMirrorLook, deadline));
    if (is_there) return Ok();
    KEEL_TRY(waiting.look());
    waiting.tick();
  }
}

MirrorWait Checkpointer::WaitForMirror(bool all) {
  return {tools_.mirror, tools_.clock, config().root, tools_.state.step(), all};
}

std::optional<uint64_t> Checkpointer::NewestSaved() const {
  const std::optional<uint64_t> mirrored = tools_.mirror.newest();
  const auto steps = ListSteps(tools_.files, config().root);
  if (!steps.ok()) return mirrored;
  return std::max(mirrored, NewestStep(UpTo(*steps, tools_.state.step())));
}

void Checkpointer::TellUnsaved(const char* note) const {
  const std::optional<uint64_t> newest = NewestSaved();
  const uint64_t step = tools_.state.step(), kept = std::min(newest.value_or(0), step);
  LogWarn("steps-unsaved", {{"steps", step - kept},
                            {"checkpoint", newest ? std::to_string(*newest) : "none"},
                            {"note", note}});
}

}  // namespace keel
