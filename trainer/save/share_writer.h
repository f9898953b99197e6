// ShareWriter: writes one share at a time, in threads of its own.
// Promises   a writer that is given up ends in its own time, and what it wrote is removed then.
// Does not   vote, commit, or know what becomes of the share (trainer/save/share.h).
// Threads    one; copying and writing run in threads of this class.
// Errors     those of ckpt/background.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "ckpt/background.h"
#include "ckpt/snapshot.h"
#include "trainer/state/image.h"

namespace keel {

class ShareWriter {
 public:
  ShareWriter(Files& files, Clock& clock) : background_(files, clock) {}
  // The copy must have been awaited.
  ~ShareWriter();

  // Makes room for the copy, so that the first save costs a step no more than the others do. Where
  // memory is short, that save finds out.
  void MakeRoom(const Layout& layout, uint32_t part, uint32_t parts);
  // Nothing else will be copied, so room is not needed any more.
  void StopMakingRoom() { ending_ = true; }

  // Copies what `share` refers to, then writes the copy, spread over so much time. `layout` lives
  // until the copy is done.
  Status StartAside(const Layout& layout, SavePlan plan, CpuBytes share, Duration spread);
  // Ok where no copy is under way; else how it went.
  Status AwaitCopy();
  // Writes straight from what `share` refers to, which must not change meanwhile.
  Status StartNow(SavePlan plan, CpuBytes share);

  // The outcome can be taken without waiting.
  bool done() const { return background_.done(); }
  bool AwaitDone(Duration limit) { return background_.AwaitDone(limit); }
  Result<BackgroundSave::Outcome> Take() { return background_.Take(); }
  void Hurry() { background_.Hurry(); }
  const Progress& progress() const { return background_.progress(); }

  // Gives up what is being written, if anything is.
  void Leave();
  // False: what was left is still being written, and nothing else can be.
  bool TakeLeft();
  bool left() const { return left_; }

 private:
  Status CopyAndWrite(const Layout& layout, SavePlan plan, const CpuBytes& share,
                      Duration spread);

  std::shared_ptr<CopiedSnapshot> snapshot_ = std::make_shared<CopiedSnapshot>();
  std::atomic<bool> ending_{false};
  bool room_made_ = false;
  std::thread room_maker_;   // makes room in snapshot_; the copier joins it
  std::thread copier_;
  Status copied_;            // the copier's, until it is joined
  BackgroundSave background_;
  bool left_ = false;        // nobody wants the outcome of what is being written
};

}  // namespace keel
