// EpochGroup: the connections between the members of one epoch, over Gloo and, for tensors on a
// GPU, over NCCL as well.
// Promises   Build() ends soon after its token is raised, whatever the other members do. Abort()
//            ends everything in flight on this side, at once and from any thread; later operations
//            fail at once with the same reason. The first reason is kept. The destructor never
//            blocks: it aborts and leaves the teardown to another thread.
// Does not   tell the other members of an Abort(): they see our connections close once the group
//            is destroyed, or hear of it from their supervisors. Survive any error: after the
//            first one the group is of no more use, and the contents of what was in flight are
//            undefined.
// Threads    Abort() and status() from any. Batches from several threads, each batch from one at a
//            time.
// Errors     kCancelled (the token, or Abort()), kPeerLost, kTimeout, kNoDevice, kForeign.
// Lifetime   batches must be gone before their group.
// Cures      for the traps of c10d and Gloo are explained where they are applied, in
//            epoch_group.cc, gloo_mesh.cc, address_store.h and breakable_store.h.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/cancel.h"
#include "store/seal/seal.h"
#include "trainer/group/shared_notes.h"
#include "trainer/group/tags.h"
#include "trainer/nccl_module.h"
#include "trainer/train_config.h"

namespace keel {

class GlooMesh;
class Whereabouts;

// Ignores SIGPIPE, and sets environment variables that Gloo reads when a group is made. Build()
// does so, too, but then other threads may read the environment already:
// call it first in main().
void PrepareForGroups();

class EpochGroup {
 public:
  static constexpr size_t kNeverRead = std::numeric_limits<size_t>::max();

  struct Spec {
    c10::intrusive_ptr<c10d::Store> store;
    std::string prefix;                 // of this epoch's keys in the store; unique to it
    int rank = 0;
    int size = 1;
    std::string address = "127.0.0.1";  // numeric address of this host, which the others can reach
    std::vector<std::string> members;   // by rank: "host0/1", as hosts are told apart; may be empty
    std::string host = {};              // the name of this one, for messages; may be empty
    Duration build_limit = std::chrono::seconds(60);
    // How late another member may come: one may read terabytes of a checkpoint for all. Launchers
    // notice a member that hangs, and a connection that breaks is noticed at once.
    Duration operation_limit = std::chrono::hours(6);
    std::optional<int> gpu;             // tensors on this GPU are exchanged over NCCL
    // Members on one host read each other's memory instead of sending, from this many bytes on; of
    // two members the larger number counts. kNeverRead: never.
    size_t read_bytes_min = kReadBytesMin;
    // Of the secret of this epoch's workers: who lacks it is no member. Nothing: all are believed.
    std::optional<Seal> seal = {};
    // Called before each operation: tests break the group there.
    std::function<void()> before_each = {};
    // Is told which member this worker waits for; may be null.
    std::shared_ptr<Whereabouts> whereabouts = {};
  };
  // Returns once every pair of members is connected.
  static Result<std::unique_ptr<EpochGroup>> Build(const Spec& spec, const CancelToken& broken);
  ~EpochGroup();
  EpochGroup(const EpochGroup&) = delete;
  EpochGroup& operator=(const EpochGroup&) = delete;

  int rank() const;
  int size() const;
  Whereabouts& whereabouts() const;
  // "rank 2 (node7/0)", once it has met the others; before, as `members` has it.
  std::string NameOf(int rank) const;
  // "host0/1"; "rank 2" where members have no names. The same in every epoch, as the next one.
  std::string MemberOf(int rank) const;
  // "host0"; empty where members have no names.
  std::string HostOf(int rank) const;

  // The tag of the next operation of a kind. All members make the same number of such operations,
  // one at a time.
  Tag NextTag(TagKind kind);

  void Abort(const std::string& reason) { Abort(Error{Code::kCancelled, reason}); }
  void Abort(const Error& reason);
  // Fine until the first error; then that error.
  Status status() const;
  // From now on, an operation waits no longer than this for another member.
  void LimitTo(std::chrono::milliseconds limit);
  // Call it once no member needs anything of the others any more (trainer/exchange/gather.h tells).
  // Messages that are still on their way may then be lost when the group ends.
  void Parted();

  // Sends and receives that are in flight together. Tensors are contiguous and on the CPU; they are
  // kept alive, and must be left alone, until Wait() has returned or the batch is destroyed. What
  // is sent to a member under one tag arrives in the order of sending.
  class Batch {
   public:
    explicit Batch(EpochGroup& group);
    Batch(Batch&&) noexcept;
    Batch& operator=(Batch&&) = delete;
    // Aborts the group if something was not waited for.
    ~Batch();

    // Both post and return. An error aborts the group; Wait() gives it, too.
    Status Send(const at::Tensor& tensor, int to, Tag tag);
    Status Receive(const at::Tensor& tensor, int from, Tag tag);
    // Returns when all is done. After an error nothing of the batch is in flight any more.
    Status Wait();

   private:
    struct InFlight;
    Status Post(const at::Tensor& tensor, int peer, Tag tag, bool send);

    std::shared_ptr<GlooMesh> mesh_;
    std::vector<InFlight> in_flight_;
  };

  // Whether that member's memory is readable, and `bytes` are enough to read rather than receive
  // them.
  bool CanRead(int rank, size_t bytes) const;
  // Fills the tensor (contiguous, on the CPU) with what lies at `address` of a member that can be
  // read. An error aborts the group. Data read from a member that has aborted may be garbage: trust
  // them only once that member has gone through a later exchange with us.
  Status Read(int rank, uint64_t address, const at::Tensor& into);

  // --- Reductions among members that read each other's memory, with notes instead of messages ---

  // The number of the next reduction. All members make the same reductions.
  uint32_t NextReduction();
  // Whether we and that member read `bytes` of each other; then notes tell how far each one is
  // (trainer/group/shared_notes.h). Both get the same answer.
  bool ReadsMutually(int rank, size_t bytes) const;
  // Offers memory to the members that read it, all of which tell when they have taken it. Waits if
  // there is no room for another offer.
  Status Offer(uint32_t reduction, const std::vector<uint64_t>& places);
  Status Tell(Note note, uint32_t reduction);
  Status Await(int rank, Note note, uint32_t reduction);
  // The places of a reduction that the member has offered.
  Result<std::vector<uint64_t>> PlacesOf(int rank, uint32_t reduction);
  // Waits until nobody reads what was offered any more. All of these reductions have finished here.
  Status AwaitReaders();
  // Whether somebody may still read it. Abort the group before changing that memory all the same.
  bool IsRead() const;

  // Gloo's own collectives, for comparison (Reduce::kAllReduce). Abort() does not end them; the
  // loss of a peer or the limit does.
  c10d::Backend& gloo();

  // --- On a GPU, if the spec named one ---

  bool has_nccl() const;
  // Both enqueue on a CUDA stream; one thread at a time. An error aborts the group. Wait for the
  // stream, and call LookAtGpu() meanwhile: nothing else checks what is in flight.
  Status ExchangeOnGpu(const std::vector<NcclPiece>& out, const std::vector<NcclPiece>& in,
                       void* stream);
  // In place, in NCCL's order.
  Status SumOnGpu(const at::Tensor& values, void* stream);
  // Fine as long as no error of it is known; an error has aborted the group.
  Status LookAtGpu();
  // How long an operation may wait for another member.
  std::chrono::milliseconds limit() const;

  // Waits until the groups that were destroyed so far are torn down: for tests, and for a program
  // that wants to end in order. False if the limit passed first.
  static bool AwaitTeardown(Duration limit);

 private:
  Status AwaitTaken(uint32_t reduction);
  explicit EpochGroup(std::shared_ptr<GlooMesh> mesh);

  std::shared_ptr<GlooMesh> mesh_;
};

}  // namespace keel
