// Another thread moves a step's messages while the training thread computes lanes, a few at a time.
#include "trainer/loop/catch_up.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/text.h"
#include "store/catch_torch.h"
#include "trainer/exchange/gather.h"
#include "trainer/loop/held_bits.h"

namespace keel {
namespace {

// The first step sends the part of a piece (TrainConfig::piece_bytes) that any link takes soon.
constexpr uint64_t kFirstOfPiece = 4;
constexpr int64_t kMessageBytes = 4 << 20;
// Over so many steps the whole state is compared.
constexpr uint64_t kCompareSteps = 4;
// So many messages are on their way at a time.
constexpr size_t kWindow = 16;
// How often the supervisor is told that what is waited for goes on.
constexpr Duration kTickPause = std::chrono::seconds(1);

std::vector<uint64_t> SizesOf(const StateParts& parts) {
  std::vector<uint64_t> sizes;
  for (const StatePart& part : parts.parts) sizes.push_back(part.bytes());
  return sizes;
}

std::vector<int> RanksOf(const std::vector<bool>& who, bool those) {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < who.size(); ++rank) {
    if (who[rank] == those) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

}  // namespace

CatchUp::CatchUp(const EpochParts& parts, std::vector<bool> who, Placement lanes)
    : state_of_(parts.state), group_(parts.group), who_(std::move(who)), lanes_(std::move(lanes)),
      holders_(RanksOf(who_, false)), tag_(group_.NextTag(TagKind::kTransfer)),
      portions_(SizesOf(*state_of_.parts()), state_of_.config().piece_bytes / kFirstOfPiece),
      begun_(RealClock().Monotonic()) {
  KEEL_CHECK(!holders_.empty(), "all " << who_.size() << " members catch up with nobody");
  if (own()) LogInfo("catching-up", {{"step", state_of_.step()}, {"bytes", portions_.bytes()}});
}

CatchUp::~CatchUp() {
  if (is_moving_) group_.Abort("the epoch ended while a member was catching up");
  waiter_.Drain();
}

// --- A step ---

Status CatchUp::BeginStep() {
  sent_ns_ = 0;
  digest_.reset();
  if (state_ == State::kComparing) {
    KEEL_TRY_ASSIGN(digest_, NextDigest());
  }
  if (state_ == State::kMoving) Move(portions_.Next());
  return Ok();
}

void CatchUp::Move(const Portions::Range& range) {
  moving_ = range;
  messages_.clear();
  for (size_t i = range.begin; i < range.end; ++i) {
    for (const at::Tensor& flat : state_of_.parts()->parts[i].tensors) AddMessages(flat);
  }
  is_moving_ = true;
  waiter_.Submit([this] {
    const TimePoint begun = RealClock().Monotonic();
    const Result<Status> moved = CatchTorch("catching up", [&] { return MoveAll(); });
    moved_ = moved.ok() ? *moved : Status(moved.error());
    if (!moved_.ok()) group_.Abort(moved_.error());
    if (!messages_.empty() && !own()) sent_ns_ = (RealClock().Monotonic() - begun).count();
  });
}

// The holders take turns.
void CatchUp::AddMessages(const at::Tensor& flat) {
  const at::Tensor all = flat.view(at::kByte);
  for (int64_t begin = 0; begin < all.numel(); begin += kMessageBytes) {
    const int from = holders_[messages_sent_++ % holders_.size()];
    if (!own() && from != group_.rank()) continue;
    messages_.push_back({all.narrow(0, begin, std::min(kMessageBytes, all.numel() - begin)), from});
  }
}

Status CatchUp::MoveAll() {
  const at::NoGradGuard no_grad;
  std::deque<Moving> window;
  size_t next = 0;
  while (next < messages_.size() || !window.empty()) {
    if (next < messages_.size() && window.size() < kWindow) {
      window.push_back({nullptr, {}, EpochGroup::Batch(group_)});
      KEEL_TRY(Post(messages_[next++], window.back()));
      continue;
    }
    Moving& first = window.front();
    KEEL_TRY(first.batch.Wait());
    if (own()) at::Tensor(first.message->bytes).copy_(first.staged);
    bytes_moved_ += static_cast<uint64_t>(first.staged.numel());
    window.pop_front();
  }
  return Ok();
}

// What travels is never the state itself: after a break it may travel on for a while.
Status CatchUp::Post(const Message& message, Moving& moving) {
  moving.message = &message;
  moving.staged = at::empty({message.bytes.numel()}, at::kByte);
  if (own()) return moving.batch.Receive(moving.staged, message.from, tag_);
  moving.staged.copy_(message.bytes);
  for (const int to : RanksOf(who_, true)) KEEL_TRY(moving.batch.Send(moving.staged, to, tag_));
  return Ok();
}

Status CatchUp::EndStep() {
  if (!is_moving_) return Ok();
  {
    const Whereabouts::HandedOver handed_over(group_.whereabouts());
    for (uint64_t before = bytes_moved_; !waiter_.DrainFor(kTickPause);) {
      if (std::exchange(before, bytes_moved_.load()) != before) group_.whereabouts().Tick();
    }
  }
  is_moving_ = false;
  KEEL_TRY(moved_);
  if (own()) state_of_.NoteReceived(moving_.begin, moving_.end);
  return Ok();
}

void CatchUp::FillIn(VoteRecord& record) const {
  if (!under_way()) return;
  record.sent_ns = sent_ns_;
  if (digest_) record.piece = digest_;
}

void CatchUp::Note(const std::vector<VoteRecord>& records) {
  ++steps_;
  messages_.clear();
  if (state_ == State::kMoving) {
    int64_t sent_ns = 0, computed_ns = 0;
    for (const VoteRecord& record : records) {
      sent_ns = std::max(sent_ns, record.sent_ns);
      computed_ns = std::max(computed_ns, record.compute_ns);
    }
    portions_.Note(sent_ns, computed_ns);
    if (!portions_.done()) return TellIfSlow();
    state_ = State::kComparing;
    pieces_left_ = state_of_.pieces();
  } else if (state_ == State::kComparing) {
    std::vector<Digest> digests;
    for (const VoteRecord& record : records) digests.push_back(record.piece.value_or(Digest()));
    Judge(digests);
  }
}

void CatchUp::TellIfSlow() {
  if (told_slow_ || !portions_.is_slow()) return;
  told_slow_ = true;
  if (group_.rank() != holders_.front()) return;
  LogInfo("catching-up-slowly",
          {{"step", state_of_.step()},
           {"members", Names()},
           {"bytes", portions_.bytes()},
           {"steps", steps_ + portions_.steps_left() + kCompareSteps},
           {"reason", "more in a step would take longer than its lanes, and all would wait for "
                      "that"}});
}

std::string CatchUp::Names() const {
  std::vector<std::string> names;
  for (const int rank : RanksOf(who_, true)) names.push_back(group_.NameOf(rank));
  return JoinList(names, ", ");
}

// --- Comparing ---

// Numbers and buffers are compared with each of them.
Result<Digest> CatchUp::NextDigest() {
  const uint64_t pieces = state_of_.pieces();
  const uint64_t at_once = (pieces + kCompareSteps - 1) / kCompareSteps;
  return CatchTorch("comparing states", [&] {
    Digester all;
    all.Update(state_of_.SmallDigest().bytes);
    for (uint64_t i = 0; i < at_once && pieces_left_ > 0; ++i) {
      all.Update(state_of_.PieceDigest(--pieces_left_).bytes);
    }
    return all.Current();
  });
}

// That holders agree is their own affair.
void CatchUp::Judge(const std::vector<Digest>& digests) {
  const Digest& sound = digests[static_cast<size_t>(holders_.front())];
  for (size_t rank = 0; rank < digests.size(); ++rank) {
    if (!who_[rank] || digests[rank] == sound) continue;
    state_ = State::kFailed;
    if (group_.rank() != holders_.front()) continue;
    LogWarn("not-caught-up",
            {{"step", state_of_.step()},
             {"member", group_.NameOf(static_cast<int>(rank))},
             {"reason", "it has come to another state: does the optimizer change a parameter by "
                        "more than its own gradient?"},
             {"note", "it receives the state once more, and the others wait for that"}});
  }
  EndIfCompared();
}

void CatchUp::EndIfCompared() {
  if (state_ == State::kFailed) {
    if (own()) state_of_.NoteNotByParts();
    return;
  }
  if (pieces_left_ > 0) return;
  state_ = State::kDone;
  if (own()) {
    state_of_.EndCatchingUp();
    LogInfo("state-complete", {{"step", state_of_.step()}, {"steps", steps_}});
  }
  if (group_.rank() != holders_.front()) return;
  LogInfo("caught-up", {{"step", state_of_.step()},
                        {"members", Names()},
                        {"bytes", portions_.bytes()},
                        {"steps", steps_},
                        {"took", DurationText(RealClock().Monotonic() - begun_)}});
}

Status CatchUp::Rest() {
  if (state_ == State::kMoving) {
    Move({portions_.Next().begin, state_of_.parts()->parts.size()});
    KEEL_TRY(EndStep());
    portions_.TakeAll();
    state_ = State::kComparing;
    pieces_left_ = state_of_.pieces();
  }
  messages_.clear();
  while (state_ == State::kComparing) {
    group_.whereabouts().Tick();
    KEEL_TRY_ASSIGN(const Digest own_digest, NextDigest());
    KEEL_TRY_ASSIGN(const std::vector<Digest> digests, GatherDigests(group_, own_digest));
    HeldBits held;
    for (const int rank : holders_) held.Add(rank, digests[static_cast<size_t>(rank)]);
    KEEL_TRY(held.JudgeAndPart(group_, state_of_.step()));
    Judge(digests);
  }
  return Ok();
}

}  // namespace keel
