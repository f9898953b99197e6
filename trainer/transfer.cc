// Moves pieces of the list's bytes along the routes of trainer/transfer_plan.h.
#include "trainer/transfer.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <utility>

#include "base/digest.h"
#include "store/torch_guard.h"
#include "trainer/epoch_group.h"
#include "trainer/gather.h"
#include "trainer/transfer_plan.h"

namespace keel {
namespace {

// Big enough for TCP to run at full speed, small enough to be passed on while others come in.
constexpr uint64_t kPieceBytesMax = 1 << 20;
// How many pieces are in flight at a time.
constexpr size_t kWindow = 8;

uint64_t BytesOf(const at::Tensor& tensor) {
  return static_cast<uint64_t>(tensor.numel()) * tensor.element_size();
}

// What two members must agree on before bytes flow: number, types and shapes.
Digest LayoutDigest(const std::vector<at::Tensor>& tensors) {
  Digester digester;
  for (const at::Tensor& tensor : tensors) {
    std::vector<int64_t> layout{static_cast<int64_t>(tensor.scalar_type()), tensor.dim()};
    layout.insert(layout.end(), tensor.sizes().begin(), tensor.sizes().end());
    digester.Update(std::as_bytes(std::span(layout)));
  }
  return digester.Current();
}

struct Roles {
  std::vector<int> sources;
  std::vector<int> needy;
};

Roles RolesOf(const std::vector<bool>& has_it) {
  Roles roles;
  for (size_t rank = 0; rank < has_it.size(); ++rank) {
    (has_it[rank] ? roles.sources : roles.needy).push_back(static_cast<int>(rank));
  }
  return roles;
}

// The tensors' bytes on the CPU: the tensors themselves where they lie there in order, else a copy.
class Bytes {
 public:
  explicit Bytes(const std::vector<at::Tensor>& tensors) : tensors_(tensors) {
    for (const at::Tensor& tensor : tensors) {
      plain_.push_back(tensor.detach().to(at::kCPU).contiguous());
    }
  }

  std::byte* At(const TransferSpan& span) const {
    return static_cast<std::byte*>(plain_[span.tensor].data_ptr()) + span.offset;
  }

  // What arrived, into the tensors of which we hold a copy.
  void Return() const {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (plain_[i].data_ptr() != tensors_[i].data_ptr()) tensors_[i].detach().copy_(plain_[i]);
    }
  }

 private:
  const std::vector<at::Tensor>& tensors_;
  std::vector<at::Tensor> plain_;
};

class Mover {
 public:
  Mover(EpochGroup& group, const std::vector<at::Tensor>& tensors, Roles roles,
        const TransferProgress& progress)
      : group_(group), bytes_(tensors), roles_(std::move(roles)), progress_(progress),
        tag_(group.NextTag(TagKind::kTransfer)) {
    std::vector<uint64_t> sizes;
    for (const at::Tensor& tensor : tensors) sizes.push_back(BytesOf(tensor));
    pieces_ = CutPieces(sizes, kPieceBytesMax);
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (!IsSource() || RouteAt(i).source == group_.rank()) bytes_all_ += pieces_[i].bytes;
    }
  }

  Status Run() {
    if (IsSource()) return SendAll();
    KEEL_TRY(ReceiveAll());
    bytes_.Return();
    return Ok();
  }

 private:
  struct Moving {
    size_t index = 0;
    at::Tensor staged;
    EpochGroup::Batch batch;
  };

  bool IsSource() const {
    return std::find(roles_.needy.begin(), roles_.needy.end(), group_.rank()) ==
           roles_.needy.end();
  }
  TransferRoute RouteAt(size_t index) const {
    return RouteOf(index, roles_.sources, roles_.needy);
  }

  // Every piece travels in a tensor of its own, so that what is in flight when the epoch breaks
  // neither reads nor writes memory that the next epoch uses. Those that have arrived serve again:
  // to touch new memory for each costs as much as to send it.
  at::Tensor RoomFor(const TransferPiece& piece) {
    at::Tensor room;
    if (rooms_.empty()) {
      room = at::empty({static_cast<int64_t>(kPieceBytesMax)}, at::kByte);
    } else {
      room = std::move(rooms_.back());
      rooms_.pop_back();
    }
    return room.narrow(0, 0, static_cast<int64_t>(piece.bytes));
  }
  // Only what is in flight no more.
  void GiveBack(const at::Tensor& staged) {
    rooms_.push_back(staged.as_strided({static_cast<int64_t>(kPieceBytesMax)}, {1}));
  }

  at::Tensor Packed(const TransferPiece& piece) {
    const at::Tensor staged = RoomFor(piece);
    auto* next = static_cast<std::byte*>(staged.data_ptr());
    for (const TransferSpan& span : piece.spans) {
      std::memcpy(next, bytes_.At(span), span.bytes);
      next += span.bytes;
    }
    return staged;
  }

  void Unpack(const TransferPiece& piece, const at::Tensor& staged) const {
    const auto* next = static_cast<const std::byte*>(staged.const_data_ptr());
    for (const TransferSpan& span : piece.spans) {
      std::memcpy(bytes_.At(span), next, span.bytes);
      next += span.bytes;
    }
  }

  Status SendAll() {
    std::deque<Moving> window;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const TransferRoute route = RouteAt(i);
      if (route.source != group_.rank()) continue;
      Moving moving{i, Packed(pieces_[i]), EpochGroup::Batch(group_)};
      KEEL_TRY(moving.batch.Send(moving.staged, route.first, tag_));
      window.push_back(std::move(moving));
      if (window.size() == kWindow) KEEL_TRY(FinishFirst(window));
    }
    while (!window.empty()) KEEL_TRY(FinishFirst(window));
    return Ok();
  }

  Status ReceiveAll() {
    std::deque<Moving> arriving;
    std::deque<Moving> passing;
    size_t posted = 0;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      for (; posted < pieces_.size() && posted < i + kWindow; ++posted) {
        const TransferRoute route = RouteAt(posted);
        const int from = route.first == group_.rank() ? route.source : route.first;
        Moving moving{posted, RoomFor(pieces_[posted]), EpochGroup::Batch(group_)};
        KEEL_TRY(moving.batch.Receive(moving.staged, from, tag_));
        arriving.push_back(std::move(moving));
      }
      KEEL_TRY(arriving.front().batch.Wait());
      const at::Tensor staged = arriving.front().staged;
      arriving.pop_front();
      Unpack(pieces_[i], staged);
      Progressed(pieces_[i].bytes);
      if (RouteAt(i).first == group_.rank()) {
        KEEL_TRY(PassOn(i, staged, passing));
      } else {
        GiveBack(staged);
      }
    }
    while (!passing.empty()) KEEL_TRY(AwaitFirst(passing));
    return Ok();
  }

  // A piece that came to us first, to the others in need.
  Status PassOn(size_t index, const at::Tensor& staged, std::deque<Moving>& passing) {
    Moving moving{index, staged, EpochGroup::Batch(group_)};
    for (const int to : roles_.needy) {
      if (to != group_.rank()) KEEL_TRY(moving.batch.Send(staged, to, tag_));
    }
    passing.push_back(std::move(moving));
    return passing.size() < kWindow ? Ok() : AwaitFirst(passing);
  }

  Status FinishFirst(std::deque<Moving>& window) {
    const uint64_t bytes = pieces_[window.front().index].bytes;
    KEEL_TRY(AwaitFirst(window));
    Progressed(bytes);
    return Ok();
  }

  Status AwaitFirst(std::deque<Moving>& window) {
    KEEL_TRY(window.front().batch.Wait());
    GiveBack(window.front().staged);
    window.pop_front();
    return Ok();
  }

  void Progressed(uint64_t bytes) {
    bytes_done_ += bytes;
    if (progress_) progress_(bytes_done_, bytes_all_);
  }

  EpochGroup& group_;
  const Bytes bytes_;
  const Roles roles_;
  const TransferProgress& progress_;
  const Tag tag_;
  std::vector<TransferPiece> pieces_;
  std::vector<at::Tensor> rooms_;   // for pieces, in use by nobody
  uint64_t bytes_all_ = 0;
  uint64_t bytes_done_ = 0;
};

Status CompareLayouts(EpochGroup& group, const std::vector<at::Tensor>& tensors) {
  const Digest own = LayoutDigest(tensors);
  const std::vector<size_t> sizes(static_cast<size_t>(group.size()), own.bytes.size());
  KEEL_TRY_ASSIGN(const std::vector<RecordBytes> all,
                  Gather(group, RecordBytes(own.bytes.begin(), own.bytes.end()), sizes));
  for (int rank = 0; rank < group.size(); ++rank) {
    const RecordBytes& theirs = all[static_cast<size_t>(rank)];
    if (std::equal(theirs.begin(), theirs.end(), own.bytes.begin())) continue;
    return Error{Code::kInvalid, "the state of " + group.NameOf(rank) +
                                     " has other tensors, shapes or types than ours (rank " +
                                     std::to_string(group.rank()) +
                                     "); do both run the same program?"};
  }
  return Ok();
}

}  // namespace

Status Transfer(EpochGroup& group, const std::vector<at::Tensor>& tensors,
                const std::vector<bool>& has_it, const TransferProgress& progress) {
  KEEL_CHECK(has_it.size() == static_cast<size_t>(group.size()),
             has_it.size() << " members, not " << group.size());
  KEEL_TRY(CompareLayouts(group, tensors));
  Roles roles = RolesOf(has_it);
  if (roles.needy.empty()) return Ok();
  if (roles.sources.empty()) return Error{Code::kInvalid, "no member has the state to transfer"};
  const Result<Status> moved = Guard("transferring the state", [&] {
    return Mover(group, tensors, std::move(roles), progress).Run();
  });
  if (moved.ok()) return *moved;
  group.Abort(moved.error());
  return moved.error();
}

}  // namespace keel
