// Share: one worker's part of a save, and its file, moved through trainer/save/share_state.h.
// Promises   does with the file what the table says.
// Does not   write the file (trainer/save/share_writer.h), or commit.
// Threads    one.
#pragma once

#include <cstdint>
#include <memory>

#include "ckpt/save.h"
#include "trainer/save/share_state.h"

namespace keel {

class Share {
 public:
  ShareState state() const { return state_; }
  bool under_way() const { return state_ != ShareState::kNone; }
  // Of the save under way, or of the last one.
  uint64_t step() const { return step_; }

  void Begin(uint64_t step);
  void Wrote(std::unique_ptr<Save> file);
  // The events that carry nothing.
  void On(ShareEvent event);
  // kCommit, for the worker that does it.
  std::unique_ptr<Save> TakeToCommit();

 private:
  void Move(ShareEvent event);

  ShareState state_ = ShareState::kNone;
  uint64_t step_ = 0;
  std::unique_ptr<Save> file_;   // null: nothing is durable
};

}  // namespace keel
