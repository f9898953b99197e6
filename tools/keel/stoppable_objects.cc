// Each upload has somebody who waits for a signal, and cancels it.
#include "tools/keel/stoppable_objects.h"

#include <utility>

#include "tools/keel/stop_signals.h"

namespace keel {
namespace {

class StoppableUpload : public ObjectUpload {
 public:
  explicit StoppableUpload(std::unique_ptr<ObjectUpload> below)
      : below_(std::move(below)), watch_([this] { below_->Cancel(); }) {}

  Status Append(std::span<const std::byte> from) override {
    KEEL_TRY(CheckStop());
    return below_->Append(from);
  }
  Status Finish() override {
    KEEL_TRY(CheckStop());
    return below_->Finish();
  }
  void Cancel() override { below_->Cancel(); }

 private:
  const std::unique_ptr<ObjectUpload> below_;
  StopWatch watch_;   // ends first
};

}  // namespace

Result<std::unique_ptr<ObjectUpload>> StoppableObjects::Upload(const std::string& key,
                                                               uint64_t bytes_max) {
  NoteSignalsFromNowOn();
  KEEL_TRY(CheckStop());
  KEEL_TRY_ASSIGN(std::unique_ptr<ObjectUpload> upload, below_.Upload(key, bytes_max));
  return std::unique_ptr<ObjectUpload>(std::make_unique<StoppableUpload>(std::move(upload)));
}

Status StoppableObjects::PutIfAbsent(const std::string& key, std::string_view bytes) {
  KEEL_TRY(CheckStop());
  return below_.PutIfAbsent(key, bytes);
}

Status StoppableObjects::Replace(const std::string& key, std::string_view bytes) {
  KEEL_TRY(CheckStop());
  return below_.Replace(key, bytes);
}

}  // namespace keel
