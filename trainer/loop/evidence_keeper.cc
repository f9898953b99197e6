// One thread for each file, of which the next one begins only when it has ended.
#include "trainer/loop/evidence_keeper.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/file_helpers.h"
#include "base/log.h"
#include "elastic/process/quiet_thread.h"
#include "store/bucket_files.h"
#include "store/catch_torch.h"

namespace keel {
namespace {

constexpr int kFilesMost = 8;
// A worker that has said goodbye is soon ended by its launcher.
constexpr Duration kEndLimit = std::chrono::seconds(5);

Status Write(const std::string& folder, const std::string& path, const LaneEvidence& evidence,
             const NamedTensors& model) {
  BucketFiles& files = OwnBuckets();
  KEEL_TRY(MakeDirs(files, folder));
  KEEL_TRY_ASSIGN(const Status written, CatchTorch("saving evidence", [&] {
                    return WriteEvidence(files, path, evidence, model);
                  }));
  return written;
}

void NotSaved(const std::string& reason) {
  LogWarn("evidence-not-saved", {{"reason", reason}});
}

}  // namespace

// Of a write, which may outlive the keeper.
struct EvidenceKeeper::Writing {
  std::mutex mutex;
  std::condition_variable changed;
  bool has_ended = false;   // guarded by mutex
};

EvidenceKeeper::~EvidenceKeeper() {
  if (!writing_) return;
  std::unique_lock lock(writing_->mutex);
  const bool in_time =
      writing_->changed.wait_for(lock, kEndLimit, [this] { return writing_->has_ended; });
  if (!in_time) NotSaved("this worker ends, and its place does not take it in time");
}

bool EvidenceKeeper::Wants(uint64_t step) const {
  if (step_ == step || files_ >= kFilesMost) return false;
  if (!writing_) return true;
  const std::lock_guard lock(writing_->mutex);
  return writing_->has_ended;
}

void EvidenceKeeper::Save(const std::string& folder, LaneEvidence evidence, NamedTensors model) {
  step_ = evidence.step;
  ++files_;
  writing_ = std::make_shared<Writing>();
  const std::string path = folder + "/" + EvidenceName(evidence.step, evidence.lane);
  StartQuietThread("keel-evidence", [folder, path, writing = writing_,
                                     evidence = std::move(evidence), model = std::move(model)] {
    const Status saved = Write(folder, path, evidence, model);
    if (!saved.ok()) NotSaved(saved.error().message);
    if (saved.ok()) LogInfo("evidence-saved", {{"file", path}, {"next", "keel recompute"}});
    const std::lock_guard lock(writing->mutex);
    writing->has_ended = true;
    writing->changed.notify_all();
  }).detach();
}

}  // namespace keel
