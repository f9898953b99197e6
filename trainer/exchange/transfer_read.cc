// Addresses go first; then rounds of reading, each confirmed by both ends.
#include "trainer/exchange/transfer_read.h"

#include "trainer/exchange/transfer_plan.h"
#include "trainer/group/epoch_group.h"

namespace keel {
namespace {

// A round takes tens of milliseconds, so that a member that waits for one is not thought to hang.
constexpr uint64_t kRoundBytes = 64 << 20;

std::vector<TransferPiece> RoundsOf(const std::vector<at::Tensor>& tensors) {
  std::vector<uint64_t> sizes;
  for (const at::Tensor& tensor : tensors) sizes.push_back(tensor.nbytes());
  return CutPieces(sizes, kRoundBytes);
}

at::Tensor Word() { return at::zeros({1}, at::kByte); }

Status SendTo(EpochGroup& group, const std::vector<int>& ranks, const at::Tensor& message,
              Tag tag) {
  EpochGroup::Batch batch(group);
  for (const int rank : ranks) KEEL_TRY(batch.Send(message, rank, tag));
  return batch.Wait();
}

Status ReceiveFrom(EpochGroup& group, int rank, const at::Tensor& message, Tag tag) {
  EpochGroup::Batch batch(group);
  KEEL_TRY(batch.Receive(message, rank, tag));
  return batch.Wait();
}

Status ReadRound(EpochGroup& group, int source, const TransferPiece& round,
                 const at::Tensor& addresses, const std::vector<at::Tensor>& into) {
  for (const TransferSpan& span : round.spans) {
    const auto address =
        static_cast<uint64_t>(addresses.const_data_ptr<int64_t>()[span.tensor]);
    auto* const place = static_cast<std::byte*>(into[span.tensor].mutable_data_ptr());
    const at::Tensor room =
        at::from_blob(place + span.offset, {static_cast<int64_t>(span.bytes)}, at::kByte);
    KEEL_TRY(group.Read(source, address + span.offset, room));
  }
  return Ok();
}

}  // namespace

Status ReadTensors(EpochGroup& group, int source, const std::vector<at::Tensor>& into, Tag tag,
                   const RoundDone& progressed) {
  const at::Tensor addresses = at::empty({static_cast<int64_t>(into.size())}, at::kLong);
  KEEL_TRY(ReceiveFrom(group, source, addresses, tag));
  for (const TransferPiece& round : RoundsOf(into)) {
    KEEL_TRY(ReadRound(group, source, round, addresses, into));
    KEEL_TRY(SendTo(group, {source}, Word(), tag));
    KEEL_TRY(ReceiveFrom(group, source, Word(), tag));
    progressed(round.bytes);
  }
  return Ok();
}

Status LetRead(EpochGroup& group, const std::vector<int>& readers,
               const std::vector<at::Tensor>& from, Tag tag, const RoundDone& progressed) {
  const at::Tensor addresses = at::empty({static_cast<int64_t>(from.size())}, at::kLong);
  for (size_t i = 0; i < from.size(); ++i) {
    addresses.mutable_data_ptr<int64_t>()[i] =
        static_cast<int64_t>(reinterpret_cast<uintptr_t>(from[i].const_data_ptr()));
  }
  KEEL_TRY(SendTo(group, readers, addresses, tag));
  for (const TransferPiece& round : RoundsOf(from)) {
    for (const int reader : readers) KEEL_TRY(ReceiveFrom(group, reader, Word(), tag));
    KEEL_TRY(SendTo(group, readers, Word(), tag));
    progressed(round.bytes * readers.size());
  }
  return Ok();
}

}  // namespace keel
