// Members that can read the bytes do so (trainer/exchange/transfer_read.h); the others get them in
// pieces, along the routes of trainer/exchange/transfer_plan.h.
#include "trainer/exchange/transfer.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <utility>

#include "base/digest.h"
#include "store/catch_torch.h"
#include "trainer/exchange/gather.h"
#include "trainer/exchange/transfer_plan.h"
#include "trainer/exchange/transfer_read.h"
#include "trainer/group/epoch_group.h"
#include "trainer/group/peer_memory.h"

namespace keel {
namespace {

// Big enough for TCP to run at full speed, small enough to pass on pieces while others come in.
constexpr uint64_t kPieceBytesMax = 1 << 20;
// How many pieces are in flight at a time.
constexpr size_t kWindow = 8;

uint64_t BytesOf(const at::Tensor& tensor) {
  return static_cast<uint64_t>(tensor.numel()) * tensor.element_size();
}

uint64_t BytesOfAll(const std::vector<at::Tensor>& tensors) {
  uint64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += BytesOf(tensor);
  return bytes;
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

constexpr int kNobody = -1;

struct Roles {
  std::vector<int> sources;
  std::vector<int> needy;      // ranks to which it is sent
  std::vector<int> read_from;  // by rank: the member whose memory it reads, or kNobody
};

// What each member tells the others before bytes flow.
struct Opening {
  Digest layout;
  int32_t reads_from = kNobody;
  uint32_t can_be_read = 0;
};

// Picks one of the sources on this host; they share the readers among them.
int SourceToRead(EpochGroup& group, const std::vector<bool>& has_it, uint64_t bytes) {
  std::vector<int> readable;
  size_t needy_before = 0;
  for (int rank = 0; rank < group.size(); ++rank) {
    const bool has = has_it[static_cast<size_t>(rank)];
    if (has && group.CanRead(rank, bytes)) readable.push_back(rank);
    if (!has && rank < group.rank()) ++needy_before;
  }
  if (has_it[static_cast<size_t>(group.rank())] || readable.empty()) return kNobody;
  return readable[needy_before % readable.size()];
}

// Another process that may read us cannot always read everything: not, for example, the memory of a
// device in which a user's tensor lies.
bool CanBeRead(const std::vector<at::Tensor>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) {
    if (!tensor.is_cpu() || !tensor.is_contiguous() || tensor.nbytes() == 0) return true;  // copied
    const auto first = reinterpret_cast<uint64_t>(tensor.const_data_ptr());
    std::byte byte{};
    return ReadMemory(getpid(), first, {&byte, 1}).ok() &&
           ReadMemory(getpid(), first + tensor.nbytes() - 1, {&byte, 1}).ok();
  });
}

Roles RolesOf(const std::vector<bool>& has_it, const std::vector<Opening>& openings) {
  Roles roles;
  for (size_t rank = 0; rank < has_it.size(); ++rank) {
    int reads_from = openings[rank].reads_from;
    if (reads_from != kNobody && openings[static_cast<size_t>(reads_from)].can_be_read == 0) {
      reads_from = kNobody;
    }
    roles.read_from.push_back(reads_from);
    if (reads_from != kNobody) continue;
    (has_it[rank] ? roles.sources : roles.needy).push_back(static_cast<int>(rank));
  }
  return roles;
}

// The tensors' bytes on the CPU: the tensors themselves if they lie there in order, else a copy.
class Bytes {
 public:
  explicit Bytes(const std::vector<at::Tensor>& tensors) : tensors_(tensors) {
    for (const at::Tensor& tensor : tensors) {
      plain_.push_back(tensor.detach().to(at::kCPU).contiguous());
    }
  }

  const std::vector<at::Tensor>& plain() const { return plain_; }
  std::byte* At(const TransferSpan& span) const {
    return static_cast<std::byte*>(plain_[span.tensor].data_ptr()) + span.offset;
  }

  // Copies what arrived into those tensors of which we hold a copy.
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
    if (!roles_.needy.empty()) pieces_ = CutPieces(sizes, kPieceBytesMax);
    for (int rank = 0; rank < group.size(); ++rank) {
      if (SourceOf(rank) == group.rank()) readers_.push_back(rank);
    }
    bytes_all_ = BytesOfAll(tensors) * (IsReader() ? 1 : readers_.size());
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (IsNeedy() || RouteAt(i).source == group_.rank()) bytes_all_ += pieces_[i].bytes;
    }
  }

  Status Run() {
    const auto progressed = [this](uint64_t bytes) { Progressed(bytes); };
    if (IsReader()) {
      KEEL_TRY(ReadTensors(group_, SourceOf(group_.rank()), bytes_.plain(), tag_, progressed));
    } else if (IsNeedy()) {
      KEEL_TRY(ReceiveAll());
    } else {
      if (!readers_.empty()) {
        KEEL_TRY(LetRead(group_, readers_, bytes_.plain(), tag_, progressed));
      }
      return SendAll();
    }
    bytes_.Return();
    return Ok();
  }

 private:
  struct Moving {
    size_t index = 0;
    at::Tensor staged;
    EpochGroup::Batch batch;
  };

  int SourceOf(int reader) const { return roles_.read_from[static_cast<size_t>(reader)]; }
  bool IsReader() const { return SourceOf(group_.rank()) != kNobody; }
  bool IsNeedy() const {
    return std::find(roles_.needy.begin(), roles_.needy.end(), group_.rank()) !=
           roles_.needy.end();
  }
  TransferRoute RouteAt(size_t index) const {
    return RouteOf(index, roles_.sources, roles_.needy);
  }

  // Every piece travels in a tensor of its own, so that messages in flight when the epoch breaks
  // neither read nor write memory that the next epoch uses. Tensors that have arrived are reused:
  // touching new memory for each piece costs as much as sending it.
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
  // Only for a tensor that is no longer in flight.
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

  // Sends a piece that came to us first to the others in need.
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
  std::vector<int> readers_;   // ranks that read our memory
  std::vector<TransferPiece> pieces_;
  std::vector<at::Tensor> rooms_;   // room for pieces, not in use
  uint64_t bytes_all_ = 0;
  uint64_t bytes_done_ = 0;
};

// Returns the openings of all members, after checking that their layouts are the same.
Result<std::vector<Opening>> Open(EpochGroup& group, const Opening& own) {
  RecordBytes mine(sizeof(Opening));
  std::memcpy(mine.data(), &own, sizeof(Opening));
  const std::vector<size_t> sizes(static_cast<size_t>(group.size()), sizeof(Opening));
  KEEL_TRY_ASSIGN(const std::vector<RecordBytes> all, Gather(group, mine, sizes));
  std::vector<Opening> openings(all.size());
  for (int rank = 0; rank < group.size(); ++rank) {
    Opening& theirs = openings[static_cast<size_t>(rank)];
    std::memcpy(&theirs, all[static_cast<size_t>(rank)].data(), sizeof(Opening));
    if (theirs.reads_from < kNobody || theirs.reads_from >= group.size()) {
      return Error{Code::kCorrupt, group.NameOf(rank) + " would read the memory of rank " +
                                       std::to_string(theirs.reads_from) + ", which is not there"};
    }
    if (theirs.layout == own.layout) continue;
    return Error{Code::kInvalid, "the state of " + group.NameOf(rank) +
                                     " has other tensors, shapes or types than ours (rank " +
                                     std::to_string(group.rank()) +
                                     "); do both run the same program?"};
  }
  return openings;
}

}  // namespace

Status Transfer(EpochGroup& group, const std::vector<at::Tensor>& tensors,
                const std::vector<bool>& has_it, const TransferProgress& progress) {
  KEEL_CHECK(has_it.size() == static_cast<size_t>(group.size()),
             has_it.size() << " members, not " << group.size());
  const bool is_source = has_it[static_cast<size_t>(group.rank())];
  const Opening own{LayoutDigest(tensors), SourceToRead(group, has_it, BytesOfAll(tensors)),
                    is_source && CanBeRead(tensors)};
  KEEL_TRY_ASSIGN(const std::vector<Opening> openings, Open(group, own));
  const auto count = std::count(has_it.begin(), has_it.end(), true);
  if (count == group.size()) return Ok();
  if (count == 0) return Error{Code::kInvalid, "no member has the state to transfer"};
  const Result<Status> moved = CatchTorch("transferring the state", [&] {
    return Mover(group, tensors, RolesOf(has_it, openings), progress).Run();
  });
  if (moved.ok()) return *moved;
  group.Abort(moved.error());
  return moved.error();
}

}  // namespace keel
