// GlooMesh: the inside of an EpochGroup: one lazily connected ProcessGroupGloo of which only tagged
// sends and receives are used, since those can be aborted.
// Promises   every posted operation is registered until it is forgotten, so that Abort() reaches
//            it; a holder of a shared_ptr may go on after the EpochGroup is gone, and gets errors.
// Threads    Abort(), status(), Post(), Wait() from any; Build() once.
// Errors     as EpochGroup.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "trainer/group/breakable_store.h"
#include "trainer/group/epoch_group.h"
#include "trainer/group/shared_notes.h"

namespace keel {

class AddressStore;
class ClosableGloo;
class NcclLink;
class NcclModule;
struct MemberCard;

class GlooMesh : public std::enable_shared_from_this<GlooMesh> {
 public:
  using Work = c10::intrusive_ptr<c10d::Work>;

  explicit GlooMesh(const EpochGroup::Spec& spec);
  ~GlooMesh();

  // Connects to all members in a helper thread. If a break does not get that thread out soon, it is
  // left behind and co-owns this object.
  Status Build(const CancelToken& broken);

  Result<Work> Post(const at::Tensor& tensor, int peer, Tag tag, bool send);
  // Waits, and then forgets the operation, whether it succeeded or not.
  Status Wait(const Work& work, int peer, bool send);
  // Forgets an operation that nobody will wait for.
  void GiveUp(const Work& work);

  // For NCCL: one call at a time. A failure of either breaks the group.
  Status OnGpu(const std::function<Status(NcclLink& nccl)>& enqueue);
  Status LookAtGpu();

  // A member on this host, as it was when the group was built.
  struct Neighbour {
    int64_t pid = 0;
    uint64_t read_bytes_min = 0;   // the same for both sides
    bool can_be_read = false;
    std::optional<PeerNotes> notes = {};   // of a neighbour that reads us, too
  };
  const Neighbour& NeighbourAt(int rank) const { return neighbours_.at(static_cast<size_t>(rank)); }
  Status Read(int peer, uint64_t address, const at::Tensor& into);
  // As in EpochGroup; only for neighbours with notes.
  Status Offer(uint32_t operation, const std::vector<uint64_t>& places);
  Status Tell(Note note, uint32_t operation);
  Status Await(int peer, Note note, uint32_t operation);
  Result<std::vector<uint64_t>> PlacesOf(int peer, uint32_t operation);

  void Abort(const Error& reason);
  // The owner's last call: no operation will be waited for after it.
  void End();
  // Waits until all links over NCCL that this process is ending are gone. False if `give_up` ended
  // the wait.
  static bool AwaitAborts(const std::function<bool()>& give_up);
  // Call it once every member has all that was sent to it and will send nothing more.
  void Parted() { cut_ = true; }
  void LimitTo(std::chrono::milliseconds limit) { limit_ = limit; }
  std::chrono::milliseconds limit() const { return limit_; }
  bool broken() const { return broken_.load(std::memory_order_acquire); }
  Status status() const;

  const EpochGroup::Spec& spec() const { return spec_; }
  Whereabouts& whereabouts() const { return *whereabouts_; }
  std::string NameOf(int rank) const;
  std::string MemberOf(int rank) const;
  std::string HostOf(int rank) const;
  Tag NextTag(TagKind kind);
  uint32_t NextReduction() { return reductions_.fetch_add(1); }
  // The number of reductions up to the last one that was offered, and up to the last one that
  // nobody reads any more.
  uint32_t offered() const { return offered_.load(); }
  uint32_t released() const { return released_.load(); }
  void NobodyReads(uint32_t reductions) { released_ = reductions; }
  c10d::Backend& gloo();
  bool has_nccl() const { return nccl_ != nullptr; }

 private:
  void Break(const Error& reason, bool in_order = false);
  void Forget(const Work& work);
  Status BeginOperation();
  Error LookFailed(int peer, const Error& why);
  void RunHelper();
  void ConnectGloo();
  std::vector<MemberCard> MeetOthers();
  void BeginConnections(const std::vector<MemberCard>& book);
  void ContactAll(const std::vector<MemberCard>& book);
  // By rank. An undefined tensor: nothing is sent to that rank or received from it.
  using ByRank = std::vector<at::Tensor>;
  Result<ByRank> Swap(const ByRank& out, uint64_t turn);
  void ProveMembers();
  void ConnectNccl();
  Status Judged(const Status& on_gpu);
  Result<std::string> NcclId(NcclModule& module);
  void AwaitHelper(const CancelToken& broken);
  bool CoaxHelperOut();
  void KnockAtOwnDoor();
  Error TooLate() const;
  std::string Doing() const;

  const EpochGroup::Spec spec_;
  const std::shared_ptr<Whereabouts> whereabouts_;
  std::optional<BreakableStore> store_;          // the helper's
  c10::intrusive_ptr<AddressStore> addresses_;   // the helper's until `connecting_`
  c10::intrusive_ptr<ClosableGloo> gloo_;
  std::shared_ptr<NcclLink> nccl_;               // guarded by mutex_ while Build() runs
  std::vector<std::string> host_names_;          // by rank; the helper's until `has_met_`
  std::atomic<bool> has_met_{false};
  std::vector<Neighbour> neighbours_;            // by rank; the helper's until Build() ends
  SharedNotes notes_;
  std::array<std::atomic<uint64_t>, 8> turns_{};  // by kind
  std::atomic<uint32_t> reductions_{0};
  std::atomic<uint32_t> offered_{0};
  std::atomic<uint32_t> released_{0};
  std::atomic<bool> broken_{false};
  std::atomic<int> waiting_for_{-1};  // the rank that Build() now waits for
  std::atomic<bool> waiting_for_book_{false};   // of that rank
  std::atomic<bool> connecting_{false};         // all have met, and connect
  std::atomic<std::chrono::milliseconds> limit_;
  std::atomic<bool> cut_{false};  // connections may be cut: messages on their way may be lost
  std::mutex posting_;  // ProcessGroupGloo counts its sends and receives without a lock

  mutable std::mutex mutex_;
  std::condition_variable helper_ended_;
  bool ended_ = false;                           // guarded by mutex_, as all below
  std::unordered_map<c10d::Work*, Work> in_flight_;
  Status status_;
};

}  // namespace keel
