// The copy, the write, the commit; and what becomes of them when the group breaks.
#include "trainer/save/checkpointer.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/file_helpers.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread_priority.h"
#include "ckpt/catalog.h"
#include "ckpt/names.h"
#include "elastic/process/quiet_thread.h"
#include "store/torch_guard.h"
#include "trainer/saved_config.h"

namespace keel {
namespace {

constexpr Duration kTickPeriod = std::chrono::seconds(1);
// How soon a break is heard while the disk is waited for; and how long a writer that was told to
// end is waited for.
constexpr Duration kLookPeriod = std::chrono::milliseconds(50);
constexpr Duration kLeaveLimit = std::chrono::seconds(1);
// A save beside training is spread over so much of the time that passed since the one before,
// within a limit: all at once it would cost one step what it can cost many a little of.
constexpr int kSpreadShare = 2;
constexpr Duration kSpreadMax = std::chrono::seconds(10);
// For another parked worker to save for all.
constexpr Duration kSingleSaveLimit = std::chrono::seconds(60);

// The same for all members of an epoch without their asking each other.
std::string AttemptOf(const std::string& prefix, uint64_t step, const char* purpose) {
  const std::string text = prefix + ' ' + std::to_string(step) + ' ' + purpose;
  return DigestOf(BytesOf(text)).Hex().substr(0, kAttemptBytes);
}

// Keeps what it reads.
class OwningSource : public MemorySource {
 public:
  explicit OwningSource(HostBytes bytes) : MemorySource(bytes.spans()), bytes_(std::move(bytes)) {}

 private:
  const HostBytes bytes_;
};

}  // namespace

std::string SaveTerms::Text() const {
  return "--save-every " + std::to_string(every_steps) + ", --codec " +
         std::string(CodecName(codec));
}

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
    : state_(state), config_(std::move(config)), files_(files), clock_(clock),
      layout_(std::move(layout)), last_begin_(clock.Monotonic()), background_(files, clock) {}

Checkpointer::~Checkpointer() {
  ending_ = true;
  EndEpoch();
  AwaitCommit();
  if (reserver_.joinable()) reserver_.join();
}

// --- What is said of it ---

Metadata Checkpointer::Describe() const {
  const SampleOrder& samples = state_.samples();
  Metadata metadata = state_.registry().Numbers();
  const auto whole = [&](const char* name, uint64_t value) {
    metadata[name] = static_cast<int64_t>(value);
  };
  whole("data_epoch", samples.DataEpoch(state_.cursor()));
  whole("samples", samples.plan().dataset_size);
  whole("lanes", state_.config().lanes);
  whole("lane_batch", state_.config().lane_batch);
  whole("lr_position", state_.step());
  if (state_.inexact_since() >= 0) metadata["inexact_since"] = state_.inexact_since();
  metadata["fingerprint"] =
      place_.fingerprint.empty() ? config_.fingerprint : place_.fingerprint;
  metadata["job"] = config_.job;
  PutConfig(place_.fingerprint.empty() ? config_.config : place_.config, &metadata);
  return metadata;
}

Result<SavePlan> Checkpointer::Plan(const std::string& attempt, uint32_t part,
                                    uint32_t parts) const {
  SavePlan plan{config_.root, attempt, part, parts, {}};
  plan.description.step = state_.step();
  plan.description.codec = terms().codec;
  plan.description.layout = layout_;
  plan.description.metadata = Describe();
  return plan;
}

// --- Epochs ---

void Checkpointer::BeginEpoch(const Place& place) {
  const SaveTerms before = terms();
  place_ = place;
  const SaveTerms ours{config_.every_steps, config_.codec};
  if (saves() && terms() != before && terms() != ours) {
    LogWarn("save-options-differ", {{"rank", place.rank},
                                    {"here", ours.Text()},
                                    {"of_rank_0", terms().Text()},
                                    {"note", "those of rank 0 count"}});
  }
  ReserveRoom();
  if (place.rank == 0) return;
  const std::lock_guard lock(directory_mutex_);
  directory_.reset();
}

// So that the first save costs a step no more than the others do. Where memory is short, that save
// finds out.
void Checkpointer::ReserveRoom() {
  const bool saves_aside = terms().every_steps > 0 || config_.every_time > Duration(0);
  if (!saves() || !saves_aside || std::exchange(reserved_, true)) return;
  const auto part = static_cast<uint32_t>(place_.rank), parts = static_cast<uint32_t>(place_.world);
  (void)Guard("making room for a save", [&] {
    reserver_ = StartQuietThread("keel-room", [this, part, parts] {
      LetOthersFirst();
      (void)Guard("making room for a save",
                  [&] { snapshot_->Reserve(layout_, part, parts, ending_); });
    });
  });
}

Status Checkpointer::HoldDirectory(Duration limit) {
  const std::lock_guard lock(directory_mutex_);
  if (!saves() || directory_ != nullptr) return Ok();
  KEEL_TRY(HoldLocked(limit));
  directory_seen_ = true;
  return Ok();
}

Status Checkpointer::HoldLocked(Duration limit) {
  KEEL_TRY_ASSIGN(directory_,
                  JobDirectory::Hold(files_, clock_, random_, config_.root, config_.job, limit));
  return Ok();
}

// Whoever moves the directory away, or removes it, takes our lock along; our saves have made it
// anew, and another job could hold it now. All under one lock: who is no rank 0 any more holds
// nothing, also when it finds out late.
Status Checkpointer::HoldAnewWhereLost() {
  const std::lock_guard lock(directory_mutex_);
  if (directory_ == nullptr || directory_->IsInPlace()) return Ok();
  directory_.reset();
  LogWarn("checkpoint-directory-replaced", {{"dir", config_.root}});
  return HoldLocked(Duration(0));
}

std::string Checkpointer::directory_id() const {
  const std::lock_guard lock(directory_mutex_);
  return directory_ == nullptr ? "" : directory_->id();
}

Status Checkpointer::CheckDirectory(const std::string& id) {
  if (!saves() || directory_seen_) return Ok();
  KEEL_TRY(JobDirectory::Look(files_, config_.root, id));
  directory_seen_ = true;
  return Ok();
}

void Checkpointer::EndEpoch() {
  AwaitCopy();
  if (saving_ == SaveState::kIdle) {
    share_.reset();   // of a save at once: the others may be committing it
    return;
  }
  GiveUp("the epoch ended");
  wanted_ = true;
}

// --- Beside training ---

void Checkpointer::AwaitCopy() {
  if (!copier_.joinable()) return;
  copier_.join();
  if (!copied_.ok()) Fail(copied_.error());
}

SaveVote Checkpointer::Vote() {
  CollectCommit();
  if (saving_ == SaveState::kWriting && background_.done()) TakeOutcome();
  if (commit_.valid() || saving_ == SaveState::kWriting || writer_left_) {
    TellIfLate("training goes on, but no other save begins before it ends; does the disk answer?");
  }
  said_durable_ = saving_ == SaveState::kDurable;
  const bool due = place_.rank == 0 && config_.every_time > Duration(0) &&
                   clock_.Monotonic() - last_begin_ >= config_.every_time;
  // Nobody begins another one as long as somebody is still at the one before.
  const bool busy = commit_.valid() || !TakeLeftWriter();
  return {busy ? SaveState::kCommitting : saving_, saves() && (wanted_ || due)};
}

void Checkpointer::Act(const SaveDecision& decision) {
  if (!saves()) return;
  if (decision.owed) wanted_ = true;
  switch (decision.action) {
    case SaveAction::kNothing: return;
    case SaveAction::kBegin: {
      if (place_.rank == 0) {
        LogInfo("save-begins", {{"step", state_.step()}, {"why", decision.reason}});
      }
      const Status begun = Begin();
      if (!begun.ok()) Fail(begun.error());
      return;
    }
    case SaveAction::kCommit:
      saving_ = SaveState::kIdle;
      said_durable_ = false;
      committing_step_ = saving_step_;
      if (place_.rank == 0) {
        commit_ = std::async(std::launch::async, [this, save = std::move(share_)]() mutable {
          LetOthersFirst();
          return Commit(std::move(save));
        });
      }
      share_.reset();
      return;
    case SaveAction::kGiveUp:
      said_durable_ = false;   // all know that nobody commits
      return GiveUp(decision.reason);
  }
}

bool Checkpointer::IsBuffer(size_t tensor) const {
  const at::Tensor& one = state_.registry().tensors()[tensor].tensor;
  const NamedTensors& buffers = state_.model_tensors().buffers;
  return std::any_of(buffers.begin(), buffers.end(),
                     [&](const NamedTensor& buffer) { return buffer.tensor.is_same(one); });
}

// Buffers change in the next forward, all else only when a step is applied.
Result<HostBytes> Checkpointer::ShareOf(const SavePlan& plan, bool alias_buffers) const {
  const FrameRange share = layout_.PartOf(plan.part, plan.parts);
  return HostBytes::Of(state_.registry().tensors(), [&](size_t i) {
    const FrameRange frames = layout_.FramesOf(i);
    if (frames.first >= share.end() || share.first >= frames.end()) {
      return HostBytes::Take::kNothing;
    }
    return !alias_buffers && IsBuffer(i) ? HostBytes::Take::kCopy : HostBytes::Take::kAlias;
  });
}

Status Checkpointer::Begin() {
  wanted_ = false;
  const TimePoint before = std::exchange(last_begin_, clock_.Monotonic());
  const Duration spread = std::min((last_begin_ - before) / kSpreadShare, kSpreadMax);
  watch_.OnBegin(last_begin_, spread, ExpectedSave(place_.world));
  saving_ = SaveState::kWriting;
  saving_step_ = state_.step();
  if (place_.rank == 0) KEEL_TRY(HoldDirectory(Duration(0)));   // training waits for nobody
  KEEL_TRY_ASSIGN(SavePlan plan, Plan(AttemptOf(place_.prefix, state_.step(), "aside"),
                                      static_cast<uint32_t>(place_.rank),
                                      static_cast<uint32_t>(place_.world)));
  KEEL_TRY_ASSIGN(HostBytes share, ShareOf(plan, /*alias_buffers=*/false));
  copied_ = Ok();
  const auto started = Guard("beginning a save", [&] {
    copier_ = StartQuietThread("keel-copy", [this, plan = std::move(plan),
                                             share = std::move(share), spread]() mutable {
      copied_ = CopyAndWrite(std::move(plan), share.spans(), spread);
    });
  });
  return started;
}

Status Checkpointer::CopyAndWrite(SavePlan plan,
                                  const std::vector<std::span<const std::byte>>& share,
                                  Duration spread) {
  if (reserver_.joinable()) reserver_.join();
  KEEL_TRY(Guard("copying the state aside",
                 [&] { snapshot_->Copy(layout_, plan.part, plan.parts, share); }));
  return background_.Start({std::move(plan), snapshot_, {.spread = spread}, false});
}

void Checkpointer::TakeOutcome() {
  auto outcome = background_.Take();
  const Status status = outcome.ok() ? std::move(outcome->status) : Status(outcome.error());
  if (!status.ok()) return Fail(status.error());
  const ShardSummary& shard = outcome->shard;
  speed_.OnWritten(shard.content_bytes, outcome->took - shard.rested, /*awaited=*/false);
  share_ = std::move(outcome->save);
  saving_ = SaveState::kDurable;
}

// Who is late himself says so.
void Checkpointer::TellIfLate(const char* note) {
  const auto late = watch_.Look(clock_.Monotonic());
  if (!late) return;
  const bool commits = commit_.valid();
  const Progress& progress = background_.progress();
  const std::string share = BytesText(progress.bytes_done) + " of " +
                            BytesText(progress.bytes_total) + " written";
  LogWarn("save-late", {{"step", commits ? committing_step_ : saving_step_},
                        {"rank", place_.rank},
                        {"after", DurationText(*late)},
                        {"at", commits ? "its manifest" : share},
                        {"dir", config_.root},
                        {"note", note}});
}

void Checkpointer::Fail(const Error& error) {
  saving_ = SaveState::kFailed;
  LogError("save-failed", {{"step", saving_step_}, {"rank", place_.rank},
                           {"reason", error.message}});
}

// What this worker wrote goes, unless somebody may be committing it: then retention finds it.
void Checkpointer::GiveUp(const std::string& why) {
  AwaitCopy();
  if (background_.in_flight() && !writer_left_) LeaveWriter();
  if (share_ != nullptr && !said_durable_) share_->Abandon();
  share_.reset();
  if (place_.rank == 0 || saving_ == SaveState::kFailed) {
    LogWarn("save-given-up", {{"step", saving_step_}, {"why", why}});
  }
  saving_ = SaveState::kIdle;
  said_durable_ = false;
}

Checkpointer::Committed Checkpointer::Commit(std::unique_ptr<Save> save) {
  const TimePoint begin = clock_.Monotonic();
  Committed committed;
  const Status held = HoldAnewWhereLost();
  auto report = held.ok() ? save->Commit(clock_.WallNanos()) : Result<CommitReport>(held.error());
  if (!report.ok()) {
    save->Abandon();
    committed.status = report.error();
    return committed;
  }
  committed.report = std::move(*report);
  save.reset();
  committed.took = clock_.Monotonic() - begin;
  const auto retained = ApplyRetention(files_, config_.root, config_.retention);
  if (!retained.ok()) committed.retention = retained.error().message;
  return committed;
}

void Checkpointer::CollectCommit() {
  if (!commit_.valid()) return;
  if (commit_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
  Report(committing_step_, commit_.get());
}

void Checkpointer::AwaitCommit() {
  if (commit_.valid()) Report(committing_step_, commit_.get());
}

void Checkpointer::Report(uint64_t step, const Committed& committed) {
  if (!committed.status.ok()) {
    return LogError("save-failed", {{"step", step}, {"reason", committed.status.error().message}});
  }
  speed_.OnCommitted(committed.took);
  committed_ = step;
  LogInfo("checkpoint", {{"step", step},
                         {"dir", committed.report.step_dir},
                         {"bytes", committed.report.stored_bytes},
                         {"commit_ms", committed.took / std::chrono::milliseconds(1)}});
  if (!committed.retention.empty()) {
    LogWarn("retention-failed", {{"dir", config_.root}, {"reason", committed.retention}});
  }
}

// --- With little time ---

std::optional<Duration> Checkpointer::ExpectedSave(int shares) const {
  return speed_.Expect(layout_.tensor_bytes() / static_cast<uint64_t>(shares));
}

std::optional<uint64_t> Checkpointer::NewestSaved() const {
  const auto newest = NewestComplete(files_, config_.root);
  return newest.ok() ? std::optional(newest->step) : std::nullopt;
}

void Checkpointer::TellUnsaved(const char* note) const {
  const std::optional<uint64_t> newest = NewestSaved();
  const uint64_t kept = std::min(newest.value_or(0), state_.step());
  LogWarn("steps-unsaved", {{"steps", state_.step() - kept},
                            {"checkpoint", newest ? std::to_string(*newest) : "none"},
                            {"note", note}});
}

Status Checkpointer::FinishShare(const Waiting& waiting) {
  AwaitCopy();
  if (saving_ == SaveState::kWriting) {
    background_.Hurry();
    KEEL_TRY(AwaitWriter(waiting));
    TakeOutcome();
  }
  if (saving_ != SaveState::kDurable) {
    return Error{Code::kIo, "the share of step " + std::to_string(saving_step_) +
                                " could not be written"};
  }
  said_durable_ = true;
  return Ok();
}

void Checkpointer::EndShare(const Status& committed) {
  said_durable_ = false;
  if (!committed.ok()) return GiveUp(committed.error().message);
  share_.reset();
  saving_ = SaveState::kIdle;
}

// --- At once ---

Status Checkpointer::EndUnderWay(const Waiting& waiting) {
  AwaitCopy();
  if (commit_.valid()) {
    KEEL_TRY(AwaitDisk(waiting, [&](Duration limit) {
      return commit_.wait_for(limit) == std::future_status::ready;
    }));
  }
  CollectCommit();
  if (saving_ == SaveState::kIdle) return Ok();
  said_durable_ = false;   // the vote that stops has shown to all that nobody commits
  GiveUp("a save of the last step takes its place");
  return Ok();
}

// It has been told to end. It may be in the middle of a sync, which can take a disk long and cannot
// be cut short, while others wait for us.
void Checkpointer::LeaveWriter() {
  background_.Cancel();
  writer_left_ = true;
  (void)background_.AwaitDone(kLeaveLimit);   // what it still compresses is done by then
  (void)TakeLeftWriter();
}

// False: it is not done yet.
bool Checkpointer::TakeLeftWriter() {
  if (!writer_left_) return true;
  if (!background_.done()) return false;
  auto outcome = background_.Take();
  if (outcome.ok() && outcome->save != nullptr) outcome->save->Abandon();
  writer_left_ = false;
  return true;
}

Status Checkpointer::AwaitWriter(const Waiting& waiting) {
  return AwaitDisk(waiting, [&](Duration limit) { return background_.AwaitDone(limit); });
}

Status Checkpointer::AwaitDisk(const Waiting& waiting,
                               const std::function<bool(Duration limit)>& is_done) {
  TimePoint told = clock_.Monotonic();
  DiskPatience patience(told);
  while (!is_done(kLookPeriod)) {
    KEEL_TRY(waiting.look());
    TellIfLate("the job waits for it; does the disk answer?");
    const TimePoint now = clock_.Monotonic();
    if (now - told < kTickPeriod || !patience.IsLeft(now, background_.progress().bytes_done)) {
      continue;
    }
    waiting.tick();
    told = now;
  }
  return Ok();
}

// By this very run: the trail tells. Whoever renamed the manifest may have died, or failed, before
// it was durable.
bool Checkpointer::IsCommitted() const {
  const std::string dir = JoinPath(config_.root, StepDirName(state_.step()));
  const auto manifest = ReadManifest(files_, dir);
  if (!manifest.ok()) return false;
  const Metadata& metadata = manifest->description.metadata;
  const auto trail = metadata.find("trail");
  const bool ours =
      trail != metadata.end() && trail->second == MetadataValue(state_.trail().Hex());
  return ours && files_.SyncDir(dir).ok();
}

// Of a worker that does nothing else meanwhile: straight from the state's own memory.
Status Checkpointer::WriteNow(SavePlan plan, const Waiting& waiting) {
  while (!TakeLeftWriter()) KEEL_TRY(AwaitWriter(waiting));
  saving_step_ = state_.step();
  watch_.OnBegin(clock_.Monotonic(), Duration(0), ExpectedSave(static_cast<int>(plan.parts)));
  KEEL_TRY_ASSIGN(HostBytes share, ShareOf(plan, /*alias_buffers=*/true));
  KEEL_TRY(background_.Start({.plan = std::move(plan),
                              .source = std::make_shared<OwningSource>(std::move(share)),
                              .options = {},
                              .awaited = true}));
  const Status awaited = AwaitWriter(waiting);
  if (!awaited.ok()) {
    LeaveWriter();
    return awaited;
  }
  KEEL_TRY_ASSIGN(BackgroundSave::Outcome outcome, background_.Take());
  KEEL_TRY(outcome.status);
  speed_.OnWritten(outcome.shard.content_bytes, outcome.took, /*awaited=*/true);
  share_ = std::move(outcome.save);
  return Ok();
}

Status Checkpointer::WriteShare(const Waiting& waiting) {
  if (place_.rank == 0) KEEL_TRY(HoldDirectory());
  KEEL_TRY_ASSIGN(SavePlan plan, Plan(AttemptOf(place_.prefix, state_.step(), "now"),
                                      static_cast<uint32_t>(place_.rank),
                                      static_cast<uint32_t>(place_.world)));
  const Status written = WriteNow(std::move(plan), waiting);
  // Once it is said, the share is not ours alone any more.
  said_durable_ = written.ok();
  return written;
}

Status Checkpointer::CommitShares() {
  const Committed committed = Commit(std::move(share_));
  Report(saving_step_, committed);
  return committed.status;
}

void Checkpointer::DropShare() {
  if (share_ != nullptr) share_->Abandon();
  share_.reset();
}

Status Checkpointer::SaveAlone(const Waiting& waiting) {
  if (!saves()) return Error{Code::kNotFound, "no directory to save in"};
  EndEpoch();
  AwaitCommit();
  KEEL_TRY(MakeDirs(files_, config_.root));
  // The others are parked at this very step, or one beside it: one of them has to write.
  const auto turn = TakeLock(files_, clock_, JoinPath(config_.root, kSingleSaveLockName),
                             "process " + std::to_string(getpid()), kSingleSaveLimit);
  if (!turn.ok() && turn.error().code != Code::kExists) return turn.error();
  if (IsCommitted()) return Ok();
  KEEL_TRY_ASSIGN(SavePlan plan, Plan(NewAttempt(random_), 0, 1));
  KEEL_TRY(WriteNow(std::move(plan), waiting));
  const Status committed = CommitShares();
  // A parked worker without a turn of its own may have been faster.
  return committed.ok() || !IsCommitted() ? committed : Ok();
}

}  // namespace keel
