// The public face of a GlooMesh, and the thread that ends groups.
#include "trainer/group/epoch_group.h"

#include <future>
#include <mutex>
#include <utility>

#include "base/process_setup.h"
#include "trainer/group/gloo_mesh.h"
#include "trainer/group/peer_memory.h"
#include "trainer/group/serial_queue.h"
#include "trainer/nccl_module.h"

namespace keel {
namespace {

// Destroying a ProcessGroupGloo waits for a tick of its I/O thread (10 ms), and must not happen on
// that thread: so all groups are destroyed on this one.
SerialQueue& Reaper() {
  static SerialQueue reaper;
  return reaper;
}

void GiveToReaper(std::shared_ptr<GlooMesh> mesh) {
  Reaper().Submit([mesh = std::move(mesh)]() mutable { mesh.reset(); });
}

std::optional<NcclType> TypeOf(at::ScalarType type) {
  switch (type) {
    case at::kFloat: return NcclType::kFloat32;
    case at::kDouble: return NcclType::kFloat64;
    case at::kHalf: return NcclType::kFloat16;
    case at::kBFloat16: return NcclType::kBfloat16;
    default: return {};
  }
}

}  // namespace

void PrepareForGroups() {
  static std::once_flag once;
  std::call_once(once, [] {
    IgnoreSigpipe();
    LetSiblingsRead();
    // A retry runs in Gloo's I/O thread, where a refused connect throws and ends the process.
    // Retries are of no use anyway: a member listens before it publishes its address.
    SetOwnVariableUnlessSet("GLOO_DISABLE_CONNECTION_RETRIES", "1");
  });
}

Result<std::unique_ptr<EpochGroup>> EpochGroup::Build(const Spec& spec,
                                                      const CancelToken& broken) {
  if (spec.size < 1 || spec.rank < 0 || spec.rank >= spec.size) {
    return Error{Code::kInvalid, "building the group '" + spec.prefix + "': no rank " +
                                     std::to_string(spec.rank) + " of " +
                                     std::to_string(spec.size)};
  }
  PrepareForGroups();
  auto mesh = std::make_shared<GlooMesh>(spec);
  const Status built = mesh->Build(broken);
  // Not make_unique: the constructor is private. From here on the destructor takes care of the
  // mesh.
  std::unique_ptr<EpochGroup> group(new EpochGroup(std::move(mesh)));
  if (!built.ok()) return built.error();
  return group;
}

EpochGroup::EpochGroup(std::shared_ptr<GlooMesh> mesh) : mesh_(std::move(mesh)) {}

EpochGroup::~EpochGroup() {
  mesh_->End();
  GiveToReaper(std::move(mesh_));  // this must not be the last reference
}

int EpochGroup::rank() const { return mesh_->spec().rank; }
int EpochGroup::size() const { return mesh_->spec().size; }
Whereabouts& EpochGroup::whereabouts() const { return mesh_->whereabouts(); }
std::string EpochGroup::NameOf(int rank) const { return mesh_->NameOf(rank); }

std::string EpochGroup::MemberOf(int rank) const { return mesh_->MemberOf(rank); }
std::string EpochGroup::HostOf(int rank) const { return mesh_->HostOf(rank); }
Tag EpochGroup::NextTag(TagKind kind) { return mesh_->NextTag(kind); }
void EpochGroup::Abort(const Error& reason) { mesh_->Abort(reason); }
Status EpochGroup::status() const { return mesh_->status(); }
void EpochGroup::LimitTo(std::chrono::milliseconds limit) { mesh_->LimitTo(limit); }
void EpochGroup::Parted() { mesh_->Parted(); }
c10d::Backend& EpochGroup::gloo() { return mesh_->gloo(); }
bool EpochGroup::has_nccl() const { return mesh_->has_nccl(); }
Status EpochGroup::LookAtGpu() { return mesh_->LookAtGpu(); }
std::chrono::milliseconds EpochGroup::limit() const { return mesh_->limit(); }

Status EpochGroup::ExchangeOnGpu(const std::vector<NcclPiece>& out,
                                 const std::vector<NcclPiece>& in, void* stream) {
  return mesh_->OnGpu([&](NcclLink& nccl) { return nccl.Exchange(out, in, stream); });
}

Status EpochGroup::SumOnGpu(const at::Tensor& values, void* stream) {
  KEEL_CHECK(values.is_contiguous(), "a tensor of " << values.sizes());
  const std::optional<NcclType> type = TypeOf(values.scalar_type());
  if (!type) {
    Abort(Error{Code::kInvalid, std::string("NCCL adds no tensors of ") +
                                    c10::toString(values.scalar_type())});
    return status();
  }
  return mesh_->OnGpu([&](NcclLink& nccl) {
    return nccl.Sum(values.mutable_data_ptr(), static_cast<size_t>(values.numel()), *type, stream);
  });
}

bool EpochGroup::CanRead(int rank, size_t bytes) const {
  const GlooMesh::Neighbour& neighbour = mesh_->NeighbourAt(rank);
  return neighbour.can_be_read && bytes >= neighbour.read_bytes_min;
}

Status EpochGroup::Read(int rank, uint64_t address, const at::Tensor& into) {
  return mesh_->Read(rank, address, into);
}

uint32_t EpochGroup::NextReduction() { return mesh_->NextReduction(); }

bool EpochGroup::ReadsMutually(int rank, size_t bytes) const {
  const GlooMesh::Neighbour& neighbour = mesh_->NeighbourAt(rank);
  return neighbour.notes && bytes >= neighbour.read_bytes_min;
}

Status EpochGroup::Offer(uint32_t reduction, const std::vector<uint64_t>& places) {
  if (reduction - mesh_->released() >= SharedNotes::kOffersMax) {
    KEEL_TRY(AwaitTaken(reduction - SharedNotes::kOffersMax));
  }
  return mesh_->Offer(reduction, places);
}

Status EpochGroup::Tell(Note note, uint32_t reduction) { return mesh_->Tell(note, reduction); }

Status EpochGroup::Await(int rank, Note note, uint32_t reduction) {
  return mesh_->Await(rank, note, reduction);
}

Result<std::vector<uint64_t>> EpochGroup::PlacesOf(int rank, uint32_t reduction) {
  return mesh_->PlacesOf(rank, reduction);
}

Status EpochGroup::AwaitReaders() {
  const uint32_t offered = mesh_->offered();
  if (IsRead()) KEEL_TRY(AwaitTaken(offered - 1));
  mesh_->NobodyReads(offered);
  return status();
}

bool EpochGroup::IsRead() const { return mesh_->released() != mesh_->offered(); }

Status EpochGroup::AwaitTaken(uint32_t reduction) {
  for (int rank = 0; rank < size(); ++rank) {
    if (mesh_->NeighbourAt(rank).notes) KEEL_TRY(Await(rank, Note::kTaken, reduction));
  }
  return Ok();
}

bool EpochGroup::AwaitTeardown(Duration limit) {
  auto reached = std::make_shared<std::promise<void>>();
  std::future<void> all_before = reached->get_future();
  Reaper().Submit([reached] { reached->set_value(); });
  const TimePoint deadline = RealClock().Monotonic() + limit;
  const bool torn_down = all_before.wait_for(limit) == std::future_status::ready;
  return torn_down &&
         GlooMesh::AwaitAborts([&] { return RealClock().Monotonic() >= deadline; });
}

struct EpochGroup::Batch::InFlight {
  GlooMesh::Work work;
  int peer = 0;
  bool send = false;
};

EpochGroup::Batch::Batch(EpochGroup& group) : mesh_(group.mesh_) {}
EpochGroup::Batch::Batch(Batch&&) noexcept = default;

EpochGroup::Batch::~Batch() {
  if (in_flight_.empty()) return;
  mesh_->Abort({Code::kCancelled, "an operation was given up"});
  for (const InFlight& one : in_flight_) mesh_->GiveUp(one.work);
}

Status EpochGroup::Batch::Send(const at::Tensor& tensor, int to, Tag tag) {
  return Post(tensor, to, tag, /*send=*/true);
}

Status EpochGroup::Batch::Receive(const at::Tensor& tensor, int from, Tag tag) {
  return Post(tensor, from, tag, /*send=*/false);
}

Status EpochGroup::Batch::Post(const at::Tensor& tensor, int peer, Tag tag, bool send) {
  KEEL_TRY_ASSIGN(GlooMesh::Work work, mesh_->Post(tensor, peer, tag, send));
  in_flight_.push_back({std::move(work), peer, send});
  return Ok();
}

Status EpochGroup::Batch::Wait() {
  Status first = mesh_->status();
  for (const InFlight& one : std::exchange(in_flight_, {})) {
    const Status waited = mesh_->Wait(one.work, one.peer, one.send);
    if (first.ok() && !waited.ok()) first = waited;
  }
  return first;
}

}  // namespace keel
