// One thread for each file, one after the other.
#include "trainer/loop/evidence_keeper.h"

#include <utility>

#include "base/file_helpers.h"
#include "base/log.h"
#include "elastic/process/quiet_thread.h"
#include "store/bucket_files.h"
#include "store/catch_torch.h"

namespace keel {
namespace {

constexpr int kFilesMost = 8;

Status Write(const std::string& folder, const std::string& path, const LaneEvidence& evidence,
             const NamedTensors& model) {
  BucketFiles& files = OwnBuckets();
  KEEL_TRY(MakeDirs(files, folder));
  KEEL_TRY_ASSIGN(const Status written, CatchTorch("saving evidence", [&] {
                    return WriteEvidence(files, path, evidence, model);
                  }));
  return written;
}

}  // namespace

EvidenceKeeper::~EvidenceKeeper() {
  if (writer_.joinable()) writer_.join();
}

bool EvidenceKeeper::Wants(uint64_t step) const { return step_ != step && files_ < kFilesMost; }

void EvidenceKeeper::Save(const std::string& folder, LaneEvidence evidence, NamedTensors model) {
  if (writer_.joinable()) writer_.join();
  step_ = evidence.step;
  ++files_;
  const std::string path = folder + "/" + EvidenceName(evidence.step, evidence.lane);
  writer_ = StartQuietThread("keel-evidence", [=, evidence = std::move(evidence),
                                               model = std::move(model)] {
    const Status saved = Write(folder, path, evidence, model);
    if (saved.ok()) return LogInfo("evidence-saved", {{"file", path}, {"next", "keel recompute"}});
    LogWarn("evidence-not-saved", {{"reason", saved.error().message}});
  });
}

}  // namespace keel
