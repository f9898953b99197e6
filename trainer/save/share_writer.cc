// A copy into memory that is kept from save to save, then ckpt/background.h.
#include "trainer/save/share_writer.h"

#include <utility>

#include "base/thread_priority.h"
#include "elastic/process/quiet_thread.h"
#include "store/catch_torch.h"

namespace keel {
namespace {

// How long a writer that was told to end is waited for.
constexpr Duration kLeaveLimit = std::chrono::seconds(1);

// Keeps what it reads.
class OwningSource : public MemorySource {
 public:
  explicit OwningSource(CpuBytes bytes) : MemorySource(bytes.spans()), bytes_(std::move(bytes)) {}

 private:
  const CpuBytes bytes_;
};

}  // namespace

ShareWriter::~ShareWriter() {
  StopMakingRoom();
  if (room_maker_.joinable()) room_maker_.join();
}

void ShareWriter::MakeRoom(const Layout& layout, uint32_t part, uint32_t parts) {
  if (std::exchange(room_made_, true)) return;
  (void)CatchTorch("making room for a save", [&] {
    room_maker_ = StartQuietThread("keel-room", [this, &layout, part, parts] {
      LetOthersFirst();
      (void)CatchTorch("making room for a save",
                  [&] { snapshot_->Reserve(layout, part, parts, ending_); });
    });
  });
}

Status ShareWriter::StartAside(const Layout& layout, SavePlan plan, CpuBytes share,
                               Duration spread) {
  copied_ = Ok();
  return CatchTorch("beginning a save", [&] {
    copier_ = StartQuietThread("keel-copy", [this, &layout, plan = std::move(plan),
                                             share = std::move(share), spread]() mutable {
      copied_ = CopyAndWrite(layout, std::move(plan), share, spread);
    });
  });
}

Status ShareWriter::CopyAndWrite(const Layout& layout, SavePlan plan, const CpuBytes& share,
                                 Duration spread) {
  if (room_maker_.joinable()) room_maker_.join();
  KEEL_TRY(CatchTorch("copying the state aside",
                 [&] { snapshot_->Copy(layout, plan.part, plan.parts, share.spans()); }));
  return background_.Start({std::move(plan), snapshot_, {.spread = spread}, false});
}

Status ShareWriter::AwaitCopy() {
  if (!copier_.joinable()) return Ok();
  copier_.join();
  return copied_;
}

Status ShareWriter::StartNow(SavePlan plan, CpuBytes share) {
  return background_.Start({.plan = std::move(plan),
                            .source = std::make_shared<OwningSource>(std::move(share)),
                            .options = {},
                            .awaited = true});
}

// It may be in the middle of a sync, which can take a disk long and cannot be cut short, while
// others wait for us.
void ShareWriter::Leave() {
  if (!background_.in_flight() || left_) return;
  background_.Cancel();
  left_ = true;
  (void)background_.AwaitDone(kLeaveLimit);   // what it still compresses is done by then
  (void)TakeLeft();
}

bool ShareWriter::TakeLeft() {
  if (!left_) return true;
  if (!background_.done()) return false;
  auto outcome = background_.Take();
  if (outcome.ok() && outcome->save != nullptr) outcome->save->Abandon();
  left_ = false;
  return true;
}

}  // namespace keel
