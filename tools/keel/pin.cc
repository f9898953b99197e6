// `keel pin CKPT`, `keel unpin CKPT`: whether retention may ever delete a checkpoint.
#include "ckpt/catalog.h"
#include "tools/keel/commands.h"

namespace keel {
namespace {

Result<Outcome> SetPin(const World& world, const Options& options, bool is_pinned) {
  KEEL_TRY_ASSIGN(const std::string dir,
                  ResolveCheckpoint(world.files, options.positionals()[0]));
  // A pin in what is no checkpoint would be a stray file.
  KEEL_TRY_ASSIGN(const StepEntry entry, LookAtStep(world.files, dir));
  KEEL_TRY(is_pinned ? Pin(world.files, dir) : Unpin(world.files, dir));
  // Retention removes the manifest first, and then does not look for a pin any more.
  if (is_pinned && IsRemoved(world.files, dir)) {
    if (!entry.pinned) (void)Unpin(world.files, dir);
    if (entry.state == StepState::kComplete) {
      (void)world.files.RemoveDir(dir);   // if that is all that was left of it
    }
    const char* const left =
        entry.pinned ? ". The pin that it had stays: `keel repair` may save what is left" : "";
    return Error{Code::kNotFound, dir + " has no manifest: it was never complete, or is being "
                                        "removed as old; pin a newer one" + left};
  }
  return Outcome{{{"dir", dir}, {"step", entry.step}, {"pinned", is_pinned}},
                 (is_pinned ? "pinned " : "unpinned ") + dir + "\n"};
}

}  // namespace

OptionTable PinTable() {
  OptionTable table = CommandTable(
      "pin", "Keeps a checkpoint for ever: neither gc nor training deletes it.", "CKPT", "");
  table.AddExample("keel pin runs/bert@latest", "Keep what there is now");
  return table;
}

OptionTable UnpinTable() {
  OptionTable table =
      CommandTable("unpin", "Takes a pin away: retention may delete the checkpoint.", "CKPT", "");
  table.AddExample("keel unpin runs/bert@1200", "Step 1200 is not needed any more");
  return table;
}

Result<Outcome> RunPin(const World& world, const Options& options) {
  return SetPin(world, options, true);
}

Result<Outcome> RunUnpin(const World& world, const Options& options) {
  return SetPin(world, options, false);
}

}  // namespace keel
