// The part of resuming that can be undone by doing it again.
#include "trainer/save/resume_ahead.h"

#include <system_error>
#include <utility>

#include "ckpt/catalog.h"
#include "trainer/save/one_checkpoint.h"

namespace keel {

ResumeAhead::ResumeAhead(TrainState& state, Files& files, What what) : state_(state) {
  try {
    under_way_ = std::async(std::launch::async, [this, &files, moved = std::move(what)] {
      return Fill(files, moved);
    });
  } catch (const std::system_error&) {
    // There is no thread to be had: Resume() will do it when all have met.
  }
}

void ResumeAhead::Finish() {
  if (!under_way_.valid()) return;
  Done done = under_way_.get();
  if (done.touched) state_.NoteFilledAhead();
  filled_ = std::move(done.filled);
}

void ResumeAhead::Stop() {
  progress_.cancel = true;
  Finish();
}

bool ResumeAhead::Filled(const Checkpoint& checkpoint) const {
  return state_.filled_ahead() && filled_ == Name(checkpoint);
}

// Names one save: no two have the same name, wherever they lie.
std::string ResumeAhead::Name(const Checkpoint& checkpoint) {
  return checkpoint.manifest().attempt + " in " + checkpoint.dir();
}

ResumeAhead::Done ResumeAhead::Fill(Files& files, const What& what) {
  const auto newest = NewestComplete(files, what.root);
  if (!newest.ok()) return {};
  const auto checkpoint = Checkpoint::Open(files, newest->dir);
  if (!checkpoint.ok()) return {};
  if (!CheckSameJob(state_, **checkpoint, what.fingerprint, what.allow_inexact).ok()) return {};
  if (!IsReadOnce(files, **checkpoint) && !VerifyStored(**checkpoint, &progress_).ok()) return {};
  const bool filled = FillTensors(state_, **checkpoint, &progress_).ok();
  return {.touched = true, .filled = filled ? Name(**checkpoint) : ""};
}

}  // namespace keel
