// The messages of a step are posted before its lanes, and waited for in another thread.
#include "trainer/loop/catch_up.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/text.h"
#include "store/catch_torch.h"
#include "trainer/exchange/gather.h"

namespace keel {
namespace {

// The first step sends the part of a piece (TrainConfig::piece_bytes) that any link takes soon.
constexpr uint64_t kFirstOfPiece = 4;
constexpr int64_t kMessageBytes = 4 << 20;
// Over so many steps the whole state is compared.
constexpr uint64_t kCompareSteps = 4;
// Without steps between, so much is sent before others hear that it goes on.
constexpr size_t kPartsAtOnce = 64;

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
}

CatchUp::~CatchUp() {
  if (batch_) group_.Abort("the epoch ended while a member was catching up");
  waiter_.Drain();
}

// --- A step ---

Status CatchUp::BeginStep() {
  sent_ns_ = 0;
  digest_.reset();
  if (state_ == State::kComparing) {
    KEEL_TRY_ASSIGN(digest_, NextDigest());
  }
  return state_ == State::kMoving ? Move(portions_.Next()) : Ok();
}

Status CatchUp::Move(const Portions::Range& range) {
  moving_ = range;
  messages_.clear();
  moved_ = Ok();
  batch_.emplace(group_);
  const Result<Status> posted = CatchTorch("sending the state to who catches up",
                                           [&]() -> Status {
    for (size_t i = range.begin; i < range.end; ++i) {
      for (const at::Tensor& flat : state_of_.parts()->parts[i].tensors) {
        KEEL_TRY(AddMessages(flat));
      }
    }
    return Ok();
  });
  KEEL_TRY(posted.ok() ? *posted : Status(posted.error()));
  const TimePoint begun = RealClock().Monotonic();
  waiter_.Submit([this, begun] {
    moved_ = batch_->Wait();
    if (!messages_.empty() && !own()) sent_ns_ = (RealClock().Monotonic() - begun).count();
  });
  return Ok();
}

// The holders take turns.
Status CatchUp::AddMessages(const at::Tensor& flat) {
  const at::Tensor all = flat.view(at::kByte);
  for (int64_t begin = 0; begin < all.numel(); begin += kMessageBytes) {
    const int from = holders_[messages_sent_++ % holders_.size()];
    if (!own() && from != group_.rank()) continue;
    Message message{all.narrow(0, begin, std::min(kMessageBytes, all.numel() - begin)), {}};
    if (own()) {
      // Never into the state itself: what is on its way when the group breaks may arrive later.
      message.staged = at::empty({message.bytes.numel()}, at::kByte);
      KEEL_TRY(batch_->Receive(message.staged, from, tag_));
    } else {
      message.staged = message.bytes.to(at::kCPU);
      for (const int to : RanksOf(who_, true)) KEEL_TRY(batch_->Send(message.staged, to, tag_));
    }
    messages_.push_back(std::move(message));
  }
  return Ok();
}

Status CatchUp::EndStep() {
  if (!batch_) return Ok();
  {
    const Whereabouts::HandedOver handed_over(group_.whereabouts());
    waiter_.Drain();
  }
  batch_.reset();
  KEEL_TRY(moved_);
  return own() ? Arrived() : Ok();
}

Status CatchUp::Arrived() {
  KEEL_TRY(CatchTorch("receiving the state", [&] {
    const at::NoGradGuard no_grad;
    for (const Message& message : messages_) at::Tensor(message.bytes).copy_(message.staged);
  }));
  state_of_.NoteReceived(moving_.begin, moving_.end);
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
    if (!portions_.done()) return;
    state_ = State::kComparing;
    pieces_left_ = state_of_.pieces();
  } else if (state_ == State::kComparing) {
    std::vector<std::optional<Digest>> digests;
    for (const VoteRecord& record : records) digests.push_back(record.piece);
    Judge(digests);
  }
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
void CatchUp::Judge(const std::vector<std::optional<Digest>>& digests) {
  const std::optional<Digest>& sound = digests[static_cast<size_t>(holders_.front())];
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
  if (own()) state_of_.EndCatchingUp();
  if (group_.rank() != holders_.front()) return;
  std::vector<std::string> names;
  for (const int rank : RanksOf(who_, true)) names.push_back(group_.NameOf(rank));
  LogInfo("caught-up", {{"step", state_of_.step()},
                        {"members", JoinList(names, ", ")},
                        {"bytes", portions_.bytes()},
                        {"steps", steps_},
                        {"took", DurationText(RealClock().Monotonic() - begun_)}});
}

Status CatchUp::Rest() {
  for (Portions::Range range = portions_.Next(); state_ == State::kMoving; range = {range.end, 0}) {
    range.end = std::min(range.begin + kPartsAtOnce, state_of_.parts()->parts.size());
    KEEL_TRY(Move(range));
    KEEL_TRY(EndStep());
    group_.whereabouts().Tick();
    if (range.end < state_of_.parts()->parts.size()) continue;
    portions_.TakeAll();
    state_ = State::kComparing;
    pieces_left_ = state_of_.pieces();
  }
  messages_.clear();
  while (state_ == State::kComparing) {
    KEEL_TRY_ASSIGN(const Digest own_digest, NextDigest());
    const RecordBytes mine(own_digest.bytes.begin(), own_digest.bytes.end());
    KEEL_TRY_ASSIGN(const std::vector<RecordBytes> all,
                    Gather(group_, mine, std::vector<size_t>(who_.size(), mine.size())));
    std::vector<std::optional<Digest>> digests(all.size());
    for (size_t rank = 0; rank < all.size(); ++rank) {
      std::copy(all[rank].begin(), all[rank].end(), digests[rank].emplace().bytes.begin());
      if (who_[rank] || all[rank] == all[static_cast<size_t>(holders_.front())]) continue;
      return Error{Code::kCorrupt, "before step " + std::to_string(state_of_.step()) +
                                       " the state of " + group_.NameOf(static_cast<int>(rank)) +
                                       " differs from that of " + group_.NameOf(holders_.front())};
    }
    Judge(digests);
  }
  return Ok();
}

}  // namespace keel
