// Builds, uses, breaks and ends a group. Each cure says which trap of Gloo or c10d it is for.
// This file is longer than 500 lines because building, using and breaking a group handle the same
// objects of Gloo and NCCL on several threads: each part is right only beside the others.
#include "trainer/group/gloo_mesh.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <thread>

#include <gloo/context.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "base/fd.h"
#include "base/log.h"
#include "base/thread_priority.h"
#include "elastic/process/quiet_thread.h"
#include "store/catch_torch.h"
#include "store/socket_finder.h"
#include "store/torch_shim.h"
#include "trainer/group/address_book.h"
#include "trainer/group/address_store.h"
#include "trainer/group/nccl_links.h"
#include "trainer/group/peer_memory.h"
#include "trainer/group/whereabouts.h"
#include "trainer/nccl_module.h"

namespace keel {

class ClosableGloo final : public c10d::ProcessGroupGloo {
 public:
  using ProcessGroupGloo::ProcessGroupGloo;

  // Without waiting: connecting goes on in Gloo's thread. By itself, Gloo would begin with a pair
  // when it is first used. Throws if the address is none that can be reached from here.
  __attribute__((no_sanitize("vptr"))) void BeginConnection(int peer) {
    for (const auto& context : contexts_) (void)context->getPair(peer);
  }

  // Debian's header of Gloo declares a virtual destructor for a context; LibTorch's has none. That
  // does not matter to this call, but UBSan would look for a table of virtual functions.
  __attribute__((no_sanitize("vptr"))) void CloseConnections() {
    for (const auto& context : contexts_) context->closeConnections();
  }
};

namespace {

// How often a wait for the helper looks at the token, and for how long the helper is coaxed out.
constexpr Duration kLook = std::chrono::microseconds(300);
constexpr Duration kCoaxStep = std::chrono::milliseconds(10);
constexpr int kCoaxSteps = 5;
// How long another member's notes are polled without a rest. After that, each rest is a fixed part
// of the wait so far.
constexpr Duration kLookWithoutRest = std::chrono::microseconds(50);
constexpr int kRestPart = 4;
constexpr Duration kRestMin = std::chrono::microseconds(10);
constexpr Duration kRestMax = std::chrono::microseconds(500);
// Another process's memory is read in pieces of this size; a break is noticed between two pieces.
constexpr size_t kReadAtOnce = 8 << 20;
constexpr Duration kLookForAborts = std::chrono::milliseconds(1);

std::chrono::milliseconds Millis(Duration limit) {
  return std::chrono::ceil<std::chrono::milliseconds>(limit);
}

// A plain value as the bytes of a message.
template <class Value>
at::Tensor TensorOf(const Value& value) {
  at::Tensor bytes = at::empty({static_cast<int64_t>(sizeof(Value))}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), &value, sizeof(Value));
  return bytes;
}

template <class Value>
Value ValueOf(const at::Tensor& bytes) {
  Value value;
  std::memcpy(&value, bytes.const_data_ptr(), sizeof(Value));
  return value;
}

void Knock(const sockaddr_storage& address, int64_t as_rank) {
  const Fd socket(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return;
  // A listener with a full queue is left alone.
  const timeval limit{.tv_sec = 0, .tv_usec = 10'000};
  (void)::setsockopt(socket.number(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  const auto* where = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(socket.number(), where, sizeof(address)) != 0) return;
  // If it fails, the helper is left behind; there is nothing else to do here.
  (void)!::send(socket.number(), &as_rank, sizeof(as_rank), MSG_NOSIGNAL);
}

// Gloo's thread polls a connection's lock while another thread sends on it. If a message's arrival
// let it preempt that sender, it would keep the sender from releasing the lock for a whole time
// slice: milliseconds in which this worker does nothing.
std::shared_ptr<::gloo::transport::Device> DeviceOfPatientThread(const std::string& address) {
  const NotPreempting meanwhile;
  return MakeGlooDevice(address, /*lazy=*/true).device;
}

}  // namespace

GlooMesh::GlooMesh(const EpochGroup::Spec& spec)
    : spec_(spec),
      whereabouts_(spec.whereabouts ? spec.whereabouts : std::make_shared<Whereabouts>()),
      neighbours_(static_cast<size_t>(spec.size)),
      limit_(Millis(spec.operation_limit)) {}

// Cuts the connections before Gloo's I/O thread is told to stop, if nobody needs what they hold:
// - A message whose buffer is gone is never read to its end, so its descriptor stays ready. The
// thread stops only when nothing is ready for 10 ms, and would spin for ever.
// - A thread that was told to stop removes no descriptor from its epoll set any more. If a peer
// hangs up then, only close() removes it, but not while somebody else holds the socket: a forked
// child or, for a microsecond, a process that inspects our descriptors (ss, lsof). The thread then
// gets an event of a connection that is closed already, and throws where nobody catches. We
// ourselves do not look at descriptors meanwhile.
// A pair that was still connecting may be connected after it was cut, until the thread stops; then
// nothing was sent to it that somebody here has asked for, so it is read to its end.
GlooMesh::~GlooMesh() {
  // This throws at the first pair that was never begun with; none after it was either.
  if (cut_ && gloo_ != nullptr) {
    const Status closed = CatchTorch("closing", [&] { gloo_->CloseConnections(); });
    if (!closed.ok()) LogDebug("group-half-built", {{"group", spec_.prefix}});
  }
  const EndingSockets ending;
  const Status ended =
      CatchTorch("ending the group '" + spec_.prefix + "'", [&] { gloo_.reset(); });
  if (!ended.ok()) LogWarn("group-teardown", {{"error", ended.error().message}});
}

std::string GlooMesh::NameOf(int rank) const {
  const std::string name = "rank " + std::to_string(rank);
  const auto index = static_cast<size_t>(rank);
  if (index >= spec_.members.size()) return name;
  const std::string& member = spec_.members[index];
  const bool is_known = has_met_.load(std::memory_order_acquire) && !host_names_[index].empty();
  const std::string of_host = member.substr(std::min(member.rfind('/'), member.size()));
  return name + " (" + (is_known ? host_names_[index] + of_host : member) + ")";
}

std::string GlooMesh::MemberOf(int rank) const {
  const auto index = static_cast<size_t>(rank);
  return index < spec_.members.size() ? spec_.members[index] : NameOf(rank);
}

std::string GlooMesh::HostOf(int rank) const {
  const auto index = static_cast<size_t>(rank);
  if (index >= spec_.members.size()) return "";
  return spec_.members[index].substr(0, spec_.members[index].rfind('/'));
}

std::string GlooMesh::Doing() const {
  return "building the group '" + spec_.prefix + "' as rank " + std::to_string(spec_.rank) +
         " of " + std::to_string(spec_.size);
}

Tag GlooMesh::NextTag(TagKind kind) {
  return TagOf(kind, turns_.at(static_cast<size_t>(kind)).fetch_add(1));
}

Status GlooMesh::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

// The notes are closed so that a member that reads our memory does not trust what changes from now
// on.
void GlooMesh::Abort(const Error& reason) {
  cut_ = true;
  notes_.Close();
  Break(reason);
}

void GlooMesh::End() {
  if (broken()) return;
  Break({Code::kCancelled, "the group '" + spec_.prefix + "' is being ended"}, /*in_order=*/true);
}

void GlooMesh::Break(const Error& reason, bool in_order) {
  std::shared_ptr<NcclLink> nccl;
  {
    const std::lock_guard lock(mutex_);
    if (!status_.ok()) return;
    status_ = reason;
    broken_.store(true, std::memory_order_release);
    // Each operation is aborted by itself: ProcessGroupGloo's own abort() does nothing, and a
    // broken connection does not end an operation whose first bytes have moved already.
    for (const auto& [key, work] : in_flight_) work->abort();
    helper_ended_.notify_all();
    nccl = nccl_;
  }
  if (nccl != nullptr) EndNccl(nccl, in_order);
}

bool GlooMesh::AwaitAborts(const std::function<bool()>& give_up) {
  while (NcclLinksEnding() > 0) {
    if (give_up()) return false;
    RealClock().SleepFor(kLookForAborts);
  }
  return true;
}

c10d::Backend& GlooMesh::gloo() { return *gloo_; }

// ------------------------------------------------------------------------------------- operations

Status GlooMesh::BeginOperation() {
  if (!broken() && spec_.before_each) spec_.before_each();
  return broken() ? status() : Ok();
}

Result<GlooMesh::Work> GlooMesh::Post(const at::Tensor& tensor, int peer, Tag tag, bool send) {
  KEEL_CHECK(tensor.is_contiguous() && tensor.is_cpu() && peer != spec_.rank,
             "a tensor of " << tensor.sizes() << " for rank " << peer);
  KEEL_TRY(BeginOperation());
  Result<Work> posted = CatchTorch((send ? "sending to " : "receiving from ") + NameOf(peer), [&] {
    std::vector<at::Tensor> one{tensor};
    const std::lock_guard lock(posting_);
    return send ? gloo_->send(one, peer, tag.value) : gloo_->recv(one, peer, tag.value);
  });
  if (!posted.ok()) {
    Abort(posted.error());
    return status().error();
  }
  const std::lock_guard lock(mutex_);
  in_flight_.emplace(posted->get(), *posted);
  if (!status_.ok()) (*posted)->abort();  // Abort() came while the operation was being posted
  return posted;
}

Status GlooMesh::Wait(const Work& work, int peer, bool send) {
  const Whereabouts::Waiting waiting(*whereabouts_, peer);
  const Result<bool> done = CatchTorch((send ? "sending to " : "receiving from ") + NameOf(peer),
                                  [&] { return work->wait(limit_); });
  Forget(work);
  // An aborted operation's wait() returns false and does not throw.
  if (done.ok() && *done) return Ok();
  Abort(done.ok() ? Error{Code::kCancelled, "an operation was aborted"} : done.error());
  return status();
}

Status GlooMesh::OnGpu(const std::function<Status(NcclLink& nccl)>& enqueue) {
  KEEL_CHECK(has_nccl(), "an operation on a GPU in a group without NCCL");
  if (!broken() && spec_.before_each) spec_.before_each();
  return broken() ? status() : Judged(enqueue(*nccl_));
}

Status GlooMesh::LookAtGpu() { return broken() ? status() : Judged(nccl_->status()); }

Status GlooMesh::Judged(const Status& on_gpu) {
  if (on_gpu.ok()) return Ok();
  LeaveIfLost(on_gpu.error());
  Abort(on_gpu.error().Doing("exchanging on the GPU"));
  return status();
}

Status GlooMesh::Read(int peer, uint64_t address, const at::Tensor& into) {
  KEEL_CHECK(into.is_contiguous() && into.is_cpu() && NeighbourAt(peer).can_be_read,
             "a tensor of " << into.sizes() << " of rank " << peer);
  KEEL_TRY(BeginOperation());
  const std::span room(static_cast<std::byte*>(into.mutable_data_ptr()), into.nbytes());
  for (size_t done = 0; done < room.size(); done += kReadAtOnce) {
    if (broken()) return status().error();
    const auto piece = room.subspan(done, std::min(kReadAtOnce, room.size() - done));
    const Status read = ReadMemory(NeighbourAt(peer).pid, address + done, piece);
    if (read.ok()) continue;
    Abort(read.error().Doing("receiving from " + NameOf(peer)));
    return status();
  }
  return Ok();
}

Status GlooMesh::Offer(uint32_t operation, const std::vector<uint64_t>& places) {
  KEEL_TRY(BeginOperation());
  offered_ = operation + 1;
  notes_.Offer(operation, places);
  return Ok();
}

Status GlooMesh::Tell(Note note, uint32_t operation) {
  KEEL_TRY(BeginOperation());
  notes_.Tell(note, operation);
  return Ok();
}

Error GlooMesh::LookFailed(int peer, const Error& why) {
  Abort(why.Doing("looking at the notes of " + NameOf(peer)));
  return status().error();
}

// A look costs a microsecond. Rests let others use the processor; a wait that has taken long may
// take a little longer.
Status GlooMesh::Await(int peer, Note note, uint32_t operation) {
  const PeerNotes& notes = NeighbourAt(peer).notes.value();
  KEEL_TRY(BeginOperation());
  const TimePoint begun = RealClock().Monotonic();
  std::optional<Whereabouts::Waiting> waiting;
  while (true) {
    if (broken()) return status().error();
    const Result<bool> there = notes.Has(note, operation);
    if (!there.ok()) return LookFailed(peer, there.error());
    if (*there) return Ok();
    const Duration waited = RealClock().Monotonic() - begun;
    if (waited > limit_.load()) {
      return LookFailed(peer, {Code::kTimeout, "nothing new for " + DurationText(waited)});
    }
    if (waited > kLookWithoutRest) {
      if (!waiting) waiting.emplace(*whereabouts_, peer);
      RealClock().SleepFor(std::clamp<Duration>(waited / kRestPart, kRestMin, kRestMax));
    }
  }
}

Result<std::vector<uint64_t>> GlooMesh::PlacesOf(int peer, uint32_t operation) {
  Result<std::vector<uint64_t>> places = NeighbourAt(peer).notes.value().PlacesOf(operation);
  if (!places.ok()) return LookFailed(peer, places.error());
  return places;
}

void GlooMesh::GiveUp(const Work& work) {
  cut_ = true;
  Forget(work);
}

void GlooMesh::Forget(const Work& work) {
  const std::lock_guard lock(mutex_);
  in_flight_.erase(work.get());
}

// --------------------------------------------------------------------------------------- building

Status GlooMesh::Build(const CancelToken& broken) {
  if (broken.cancelled()) {
    Abort({Code::kCancelled, Doing() + ": broken before it began"});
    return status();
  }
  const Whereabouts::HandedOver handed_over(*whereabouts_);
  whereabouts_->SidePlace("building the group");
  std::thread helper([self = shared_from_this()] { self->RunHelper(); });
  AwaitHelper(broken);
  if (CoaxHelperOut()) {
    helper.join();
  } else {
    LogWarn("group-helper-left-behind", {{"group", spec_.prefix}});
    helper.detach();  // it co-owns this object, and ends when Gloo's own limit has passed
  }
  return status();
}

// Returns when the helper has ended, or the group is broken.
void GlooMesh::AwaitHelper(const CancelToken& broken) {
  const TimePoint deadline = RealClock().Monotonic() + spec_.build_limit;
  std::unique_lock lock(mutex_);
  while (!ended_ && status_.ok()) {
    helper_ended_.wait_for(lock, kLook);
    const bool cancelled = broken.cancelled();
    if (ended_ || !(cancelled || RealClock().Monotonic() >= deadline)) continue;
    lock.unlock();
    Abort(cancelled ? Error{Code::kCancelled, Doing() + ": the epoch was broken"} : TooLate());
    lock.lock();
  }
}

// Returns whether the helper has ended. It has if all went well; after a break it may wait for a
// peer that never comes, and nothing in Gloo's interface ends that wait.
bool GlooMesh::CoaxHelperOut() {
  std::unique_lock lock(mutex_);
  for (int i = 0; i < kCoaxSteps && !ended_; ++i) {
    lock.unlock();
    KnockAtOwnDoor();
    lock.lock();
    helper_ended_.wait_for(lock, kCoaxStep, [&] { return ended_; });
  }
  return ended_;
}

Error GlooMesh::TooLate() const {
  const int rank = waiting_for_.load();
  const std::string whom = rank < 0            ? "the store"
                           : waiting_for_book_ ? "the list of all members, which " + NameOf(rank) +
                                                     " makes once all have come"
                                               : NameOf(rank);
  return {Code::kTimeout, Doing() + ": waited " + DurationText(spec_.build_limit) + " for " + whom};
}

void GlooMesh::RunHelper() {
  const Status built = CatchTorch(Doing(), [&] {
    ConnectGloo();
    const std::vector<MemberCard> book = MeetOthers();
    BeginConnections(book);
    ProveMembers();
    ContactAll(book);
    if (spec_.gpu && !this->broken()) ConnectNccl();
  });
  if (!built.ok()) Abort(built.error());
  const std::lock_guard lock(mutex_);
  ended_ = true;
  helper_ended_.notify_all();
}

// The device is lazy, so that the constructor connects nothing: an eager one may block for five
// times the limit, and frees its pairs before it stops the thread that uses them. Each group has
// its own device, because lazy devices number their pairs from 0.
void GlooMesh::ConnectGloo() {
  addresses_ = c10::make_intrusive<AddressStore>([this] { return this->broken(); });
  auto options = c10d::ProcessGroupGloo::Options::create();
  options->threads = 1;
  options->timeout = Millis(spec_.build_limit);
  options->devices.push_back(DeviceOfPatientThread(spec_.address));
  gloo_ = c10::make_intrusive<ClosableGloo>(addresses_, spec_.rank, spec_.size, options);
}

// Late members are waited for here.
std::vector<MemberCard> GlooMesh::MeetOthers() {
  const bool reads = spec_.read_bytes_min != EpochGroup::kNeverRead;
  store_.emplace(c10::make_intrusive<c10d::PrefixStore>(spec_.prefix, spec_.store),
                 [this] { return this->broken(); }, spec_.rank == 0 ? 1 : spec_.size, spec_.seal);
  waiting_for_book_ = spec_.rank != 0;
  std::optional<Whereabouts::Waiting> waiting;
  std::vector<MemberCard> book = ExchangeCards(
      *store_, spec_.rank, spec_.size,
      {addresses_->Of(spec_.rank), reads ? OwnMemoryCard(spec_.read_bytes_min) : MemoryCard(),
       notes_.card(), spec_.host},
      [&](int rank) {
        if (waiting_for_.exchange(rank) != rank) waiting.emplace(*whereabouts_, rank);
      });
  waiting_for_book_ = false;
  for (const MemberCard& card : book) host_names_.push_back(card.host);
  has_met_.store(true, std::memory_order_release);
  return book;
}

void GlooMesh::BeginConnections(const std::vector<MemberCard>& book) {
  for (int rank = 0; rank < spec_.size; ++rank) {
    if (rank != spec_.rank) addresses_->Put(rank, book[static_cast<size_t>(rank)].address);
  }
  connecting_ = true;
  for (int rank = 0; rank < spec_.size && !this->broken(); ++rank) {
    if (rank == spec_.rank) continue;
    const Status begun = CatchTorch("connecting to " + NameOf(rank),
                                    [&] { gloo_->BeginConnection(rank); });
    // There is no way to that member, or none that this host knows of: ours is as sound as before.
    if (!begun.ok()) Abort(Error{Code::kPeerLost, begun.error().Doing(Doing()).message});
  }
}

// A connection says nothing of who has made it: each member shows each other one that it has the
// secret of this epoch.
void GlooMesh::ProveMembers() {
  if (!spec_.seal) return;
  using Nonce = std::array<char, 32>;
  using Proof = std::array<char, Seal::kBytes>;
  const auto words = [](auto& bytes) { return std::string_view(bytes.data(), bytes.size()); };
  Nonce own;
  std::ranges::copy(Seal::Nonce(), own.begin());
  const auto others = [&](auto value_for) {
    ByRank out(static_cast<size_t>(spec_.size));
    for (int rank = 0; rank < spec_.size; ++rank) {
      if (rank != spec_.rank) out[static_cast<size_t>(rank)] = TensorOf(value_for(rank));
    }
    return out;
  };
  const Result<ByRank> nonces = Swap(others([&](int) { return own; }), 1);
  if (!nonces.ok()) return;
  const Result<ByRank> proofs = Swap(others([&](int rank) {
    const auto theirs = ValueOf<Nonce>((*nonces)[static_cast<size_t>(rank)]);
    Proof proof;
    std::ranges::copy(spec_.seal->Of({"member", std::to_string(spec_.rank), std::to_string(rank),
                                      words(theirs)}),
                      proof.begin());
    return proof;
  }), 2);
  if (!proofs.ok()) return;
  for (int rank = 0; rank < spec_.size; ++rank) {
    if (rank == spec_.rank) continue;
    const Proof proof = ValueOf<Proof>((*proofs)[static_cast<size_t>(rank)]);
    const bool fits = spec_.seal->Fits(words(proof), {"member", std::to_string(rank),
                                                      std::to_string(spec_.rank), words(own)});
    if (fits) continue;
    return Abort({Code::kPeerLost, Doing() + ": whoever answers as " + NameOf(rank) +
                                       " has not the secret of this epoch's workers"});
  }
}

// Hears from every other member, so that connections are waited for here and not in the middle of
// a step. Members on one host tell each other whether they can read. Both must: a member that reads
// without being read could not tell that it has taken something.
void GlooMesh::ContactAll(const std::vector<MemberCard>& book) {
  const MemberCard& own = book[static_cast<size_t>(spec_.rank)];
  ByRank out(book.size());
  for (size_t rank = 0; rank < book.size(); ++rank) {
    if (rank == static_cast<size_t>(spec_.rank)) continue;
    const MemoryCard& memory = book[rank].memory;
    if (ShareHost(own.memory, memory)) {
      neighbours_[rank] = {memory.pid, std::max(own.memory.bytes_min, memory.bytes_min),
                           keel::CanRead(memory)};
    }
    out[rank] = TensorOf(neighbours_[rank].can_be_read);
  }
  const Result<ByRank> verdicts = Swap(out, 0);
  if (!verdicts.ok()) return;
  for (size_t rank = 0; rank < book.size(); ++rank) {
    if (!neighbours_[rank].can_be_read || !ValueOf<bool>((*verdicts)[rank])) continue;
    neighbours_[rank].notes.emplace(neighbours_[rank].pid, book[rank].notes);
  }
}

// All go in the order of ranks, so no two members wait for each other.
Result<GlooMesh::ByRank> GlooMesh::Swap(const ByRank& out, uint64_t turn) {
  struct Contact {
    Work work;
    int peer;
    bool send;
  };
  std::vector<Contact> contacts;
  ByRank in(out.size());
  Status status;
  for (int peer = 0; peer < spec_.size && status.ok(); ++peer) {
    const auto at = static_cast<size_t>(peer);
    if (peer == spec_.rank || !out[at].defined()) continue;
    waiting_for_.store(peer);
    const Whereabouts::Waiting waiting(*whereabouts_, peer);   // it may not be connected yet
    in[at] = at::empty_like(out[at]);
    for (const bool send : {false, true}) {
      Result<Work> posted =
          Post(send ? out[at] : in[at], peer, TagOf(TagKind::kContact, turn), send);
      if (!posted.ok()) {
        status = posted.error();
        break;
      }
      contacts.push_back({*posted, peer, send});
    }
  }
  for (const Contact& contact : contacts) {
    waiting_for_.store(contact.peer);
    const Status waited = Wait(contact.work, contact.peer, contact.send);
    if (status.ok() && !waited.ok()) status = waited;
  }
  if (!status.ok()) return status.error();
  return in;
}

// From the moment that there is a link, Break() ends it, whatever it is doing.
void GlooMesh::ConnectNccl() {
  const Result<NcclModule*> opened = OpenNcclModule();
  if (!opened.ok()) return Abort(opened.error().Doing(Doing()));
  NcclModule* const module = *opened;
  if (*spec_.gpu < 0 || *spec_.gpu >= module->DeviceCount()) {
    return Abort({Code::kNoDevice, Doing() + ": GPU " + std::to_string(*spec_.gpu) +
                                       " is not there: " + module->Description()});
  }
  const Result<std::string> id = NcclId(*module);
  if (!id.ok()) return Abort(id.error().Doing(Doing()));
  // The abort of the previous epoch frees GPU memory, and for that waits until the GPU is idle. If
  // kernels there already waited for other members, two members could wait for each other.
  if (!AwaitAborts([this] { return broken(); }) || broken()) return;
  const auto nccl = BeginNccl(*module, {*id, spec_.rank, spec_.size, *spec_.gpu});
  const bool late = [&] {
    const std::lock_guard lock(mutex_);
    nccl_ = nccl;
    return !status_.ok();
  }();
  if (late) return EndNccl(nccl, /*in_order=*/false);
  Status met = nccl->AwaitReady([this] { return broken(); });
  if (met.ok()) met = nccl->Meet();
  if (met.ok()) return;
  LeaveIfLost(met.error());
  Abort(met.error().Doing(Doing() + ", over NCCL"));
}

// The first member makes it.
Result<std::string> GlooMesh::NcclId(NcclModule& module) {
  constexpr const char* kKey = "nccl/id";
  if (spec_.rank != 0) {
    const std::vector<uint8_t> id = store_->Get(kKey);
    return std::string(id.begin(), id.end());
  }
  KEEL_TRY_ASSIGN(const std::string id, module.NewId());
  store_->Set(kKey, std::vector<uint8_t>(id.begin(), id.end()));
  return id;
}

// Connects to our own listener in the name of each peer (a lazy device numbers its pairs by rank):
// a helper that waits for a peer's connection then goes on, and finds the group broken.
void GlooMesh::KnockAtOwnDoor() {
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || status_.ok()) return;
  }
  if (!connecting_) return;   // it waits for the store, and finds the group broken by itself
  const auto address = SocketAddressOf(addresses_->Of(spec_.rank));
  if (!address) return;
  for (int64_t rank = 0; rank < spec_.size; ++rank) {
    if (rank != spec_.rank) Knock(*address, rank);
  }
}

}  // namespace keel
