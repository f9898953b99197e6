// NCCL as far as our code calls it.
#include <nccl.h>

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "tests/standin/standin.h"
#include "tests/standin/stream.h"
#include "tests/standin/wire.h"

using keel::standin::WirePiece;
using keel::standin::Wire;

struct ncclComm {
  int rank = 0, size = 0;
  std::vector<int> sockets;               // by rank
  std::thread job;                        // NCCL's own, which does what a call has begun
  std::atomic<bool> stop{false};          // revoked, or aborted
  std::atomic<ncclResult_t> state{ncclInProgress};
  std::atomic<ncclResult_t> error{ncclSuccess};
  std::atomic<bool> is_ready{false};
  bool is_revoked = false, is_finalised = false;
  std::atomic<bool> is_inside{false};     // a call of it is being made
  std::mutex mutex;
  std::condition_variable told;
  int in_flight = 0;                      // in streams

  ncclResult_t result() const { return error != ncclSuccess ? error.load() : state.load(); }
  void AwaitNothingInFlight() {
    std::unique_lock lock(mutex);
    told.wait(lock, [this] { return in_flight == 0; });
  }
  void JoinJob() {
    if (job.joinable()) job.join();
  }
};

namespace keel::standin {
namespace {

constexpr Duration kRootLimit = std::chrono::seconds(60);
constexpr Duration kLook = std::chrono::microseconds(200);

struct Knobs {
  std::mutex mutex;
  std::function<void(const std::string&)> hook;
  std::set<ncclComm*> alive;
  keel::Random random{EntropySeed()};
  std::atomic<bool> aborts_hang{false};
};
Knobs& All() {
  static Knobs* const knobs = new Knobs;   // detached threads may outlive static objects
  return *knobs;
}

uint64_t Environment(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

uint64_t Below(uint64_t end) {
  const std::lock_guard lock(All().mutex);
  return All().random.Uniform(end);
}
bool OneOf(uint64_t count) { return count != 0 && Below(count) == 0; }

void TakeTime() {
  static const uint64_t limit = Environment("KEEL_STANDIN_SLOW_US");
  if (limit != 0) RealClock().SleepFor(std::chrono::microseconds(Below(limit)));
}

void Misuse(const std::string& what) {
  KEEL_CHECK(false, "the stand-in for NCCL was misused: " << what);
}

// One call of NCCL's.
class Call {
 public:
  explicit Call(const char* name, ncclComm* comm = nullptr) : comm_(comm) {
    std::function<void(const std::string&)> hook;
    {
      const std::lock_guard lock(All().mutex);
      hook = All().hook;
      if (comm != nullptr && !All().alive.contains(comm)) {
        Misuse(std::string(name) + " of a communicator that is gone");
      }
    }
    if (comm != nullptr && comm->is_inside.exchange(true)) {
      Misuse(std::string(name) + " beside another call of the same communicator");
    }
    if (hook) hook(name);
    static const uint64_t kill_at = Environment("KEEL_STANDIN_KILL");
    if (OneOf(kill_at)) kill(getpid(), SIGKILL);
  }
  ~Call() {
    if (comm_ != nullptr) comm_->is_inside = false;
  }
  Call(const Call&) = delete;
  void IsGone() { comm_ = nullptr; }

 private:
  ncclComm* comm_;
};

struct Id {
  char magic[8];
  uint16_t port;
};

struct Hello {
  int32_t rank, size;
  uint16_t port;
};

// Brings the members of one communicator together, each of which tells where it listens.
void ServeAsRoot(int listener) {
  const TimePoint by = RealClock().Monotonic() + kRootLimit;
  const Stop stop = [by] { return RealClock().Monotonic() > by; };
  std::vector<int> sockets;
  std::vector<uint16_t> ports;
  size_t size = 1, there = 0;
  while (there < size) {
    int socket = -1;
    Hello hello{};
    if (Accept(listener, &socket, stop) != Wire::kDone) break;
    if (Receive(socket, &hello, sizeof(hello), stop) != Wire::kDone) {
      close(socket);
      continue;
    }
    size = static_cast<size_t>(hello.size);
    sockets.resize(size, -1);
    ports.resize(size);
    sockets[static_cast<size_t>(hello.rank)] = socket;
    ports[static_cast<size_t>(hello.rank)] = hello.port;
    ++there;
  }
  for (const int socket : sockets) {
    if (socket < 0) continue;
    if (there == size) (void)Send(socket, ports.data(), ports.size() * sizeof(uint16_t), stop);
    close(socket);
  }
  close(listener);
}

Wire AskRoot(ncclComm& comm, uint16_t root, uint16_t own, std::vector<uint16_t>* ports) {
  const Stop stop = [&comm] { return comm.stop.load(); };
  const Hello hello{comm.rank, comm.size, own};
  int socket = -1;
  Wire met = Connect(root, &socket, stop);
  if (met != Wire::kDone) return met;
  met = Send(socket, &hello, sizeof(hello), stop);
  ports->resize(static_cast<size_t>(comm.size));
  if (met == Wire::kDone) {
    met = Receive(socket, ports->data(), ports->size() * sizeof(uint16_t), stop);
  }
  close(socket);
  return met;
}

// Connects to those before, and is connected to by those after.
Wire MeetOthers(ncclComm& comm, int listener, const std::vector<uint16_t>& ports) {
  const Stop stop = [&comm] { return comm.stop.load(); };
  for (int32_t peer = 0; peer < comm.rank; ++peer) {
    const auto at = static_cast<size_t>(peer);
    Wire met = Connect(ports[at], &comm.sockets[at], stop);
    const int32_t rank = comm.rank;
    if (met == Wire::kDone) met = Send(comm.sockets[at], &rank, sizeof(rank), stop);
    if (met != Wire::kDone) return met;
  }
  for (int peer = comm.rank + 1; peer < comm.size; ++peer) {
    int socket = -1;
    int32_t rank = 0;
    Wire met = Accept(listener, &socket, stop);
    if (met == Wire::kDone) met = Receive(socket, &rank, sizeof(rank), stop);
    if (met != Wire::kDone) {
      if (socket >= 0) close(socket);
      return met;
    }
    comm.sockets[static_cast<size_t>(rank)] = socket;
  }
  return Wire::kDone;
}

void Bootstrap(ncclComm& comm, uint16_t root) {
  TakeTime();
  uint16_t own = 0;
  const int listener = Listen(&own);
  std::vector<uint16_t> ports;
  Wire met = AskRoot(comm, root, own, &ports);
  if (met == Wire::kDone) met = MeetOthers(comm, listener, ports);
  close(listener);
  if (met == Wire::kLost) comm.error = ncclRemoteError;
  if (met == Wire::kDone) comm.is_ready = true;
  comm.state = ncclSuccess;
}

void Free(ncclComm* comm) {
  for (const int socket : comm->sockets) {
    if (socket >= 0) close(socket);
  }
  {
    const std::lock_guard lock(All().mutex);
    All().alive.erase(comm);
  }
  delete comm;
}

// --- Operations ---

struct Operation {
  ncclComm* comm;
  cudaStream_t stream;
  void* bytes;
  size_t count;
  int peer;
  bool send;
  std::function<void()> then;   // of the whole group
};

thread_local int group_depth = 0;
thread_local std::vector<Operation> group;

// On the stream's thread. As a kernel does, it waits for a member that is gone until it is told.
void Run(ncclComm& comm, const std::vector<Operation>& operations) {
  const Stop stop = [&comm] { return comm.stop.load(); };
  std::vector<uint64_t> lengths;
  std::vector<WirePiece> pieces;
  lengths.reserve(operations.size());
  for (const Operation& one : operations) {
    lengths.push_back(one.send ? one.count : 0);
    const int socket = comm.sockets[static_cast<size_t>(one.peer)];
    pieces.push_back({socket, reinterpret_cast<std::byte*>(&lengths.back()), sizeof(uint64_t),
                      one.send, 0});
    pieces.push_back({socket, static_cast<std::byte*>(one.bytes), one.count, one.send, 0});
  }
  const Wire moved = Move(std::move(pieces), stop);
  if (moved == Wire::kDone) {
    for (size_t i = 0; i < operations.size(); ++i) {
      if (lengths[i] == operations[i].count) continue;
      Misuse("a member sends " + std::to_string(lengths[i]) + " bytes where " +
             std::to_string(operations[i].count) + " are expected");
    }
    for (const Operation& one : operations) {
      if (one.then) one.then();
    }
  } else if (moved == Wire::kLost) {
    comm.error = ncclRemoteError;
    while (!stop()) RealClock().SleepFor(kLook);
  }
  const std::lock_guard lock(comm.mutex);
  --comm.in_flight;
  comm.told.notify_all();
}

ncclResult_t Launch(ncclComm* comm, std::vector<Operation> operations) {
  const Call call("launch", comm);
  comm->JoinJob();
  comm->state = ncclInProgress;
  comm->job = std::thread([comm, operations = std::move(operations)]() mutable {
    TakeTime();
    if (!comm->stop) {
      {
        const std::lock_guard lock(comm->mutex);
        ++comm->in_flight;
      }
      const cudaStream_t stream = operations.front().stream;
      Enqueue(stream, [comm, operations = std::move(operations)] { Run(*comm, operations); });
    }
    comm->state = ncclSuccess;
  });
  return ncclInProgress;
}

ncclResult_t Add(const char* name, const Operation& operation) {
  const Call call(name, operation.comm);
  if (operation.comm->result() == ncclInProgress) {
    Misuse(std::string(name) + " before the call before it was done");
  }
  if (group_depth == 0) Misuse(std::string(name) + " outside of a group");
  if (operation.comm->error != ncclSuccess) return operation.comm->error;
  group.push_back(operation);
  return ncclSuccess;
}

// A call that is done once nothing of the communicator is in flight any more.
void BeginToEnd(ncclComm* comm) {
  comm->JoinJob();
  comm->state = ncclInProgress;
  comm->job = std::thread([comm] {
    TakeTime();
    comm->AwaitNothingInFlight();
    comm->state = ncclSuccess;
  });
}

// Whether it may be revoked or finalised, of which either comes once.
bool MayBeginToEnd(const ncclComm& comm) {
  return comm.is_ready && !comm.is_revoked && !comm.is_finalised &&
         comm.result() != ncclInProgress;
}

template <class Value>
void AddUp(ncclComm& comm, void* values, size_t count,
           const std::vector<std::vector<std::byte>>& theirs) {
  auto* const sum = static_cast<Value*>(values);
  const std::vector<Value> own(sum, sum + count);
  for (size_t i = 0; i < count; ++i) {
    Value total = 0;
    for (int rank = 0; rank < comm.size; ++rank) {
      const auto* const of = rank == comm.rank
                                 ? own.data()
                                 : reinterpret_cast<const Value*>(
                                       theirs[static_cast<size_t>(rank)].data());
      total += of[i];
    }
    sum[i] = total;
  }
}

}  // namespace

void OnEachCall(std::function<void(const std::string& call)> hook) {
  const std::lock_guard lock(All().mutex);
  All().hook = std::move(hook);
}
void LetAbortsHang(bool hang) { All().aborts_hang = hang; }
int Communicators() {
  const std::lock_guard lock(All().mutex);
  return static_cast<int>(All().alive.size());
}

}  // namespace keel::standin

using namespace keel::standin;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error"
                                   : "an error of the stand-in's";
}

const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const Call call("ncclGetUniqueId");
  Id made{"standin", 0};
  const int listener = Listen(&made.port);
  if (listener < 0) return ncclSystemError;
  std::memset(id->internal, 0, sizeof(id->internal));
  std::memcpy(id->internal, &made, sizeof(made));
  std::thread(ServeAsRoot, listener).detach();
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  const Call call("ncclCommInitRankConfig");
  if (config == nullptr || config->blocking != 0) Misuse("a blocking communicator");
  Id made{};
  std::memcpy(&made, id.internal, sizeof(made));
  if (std::strcmp(made.magic, "standin") != 0) Misuse("an id of somebody else's");
  auto* const one = new ncclComm;
  one->rank = rank;
  one->size = size;
  one->sockets.assign(static_cast<size_t>(size), -1);
  {
    const std::lock_guard lock(All().mutex);
    All().alive.insert(one);
  }
  one->job = std::thread([one, port = made.port] { Bootstrap(*one, port); });
  *comm = one;
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* result) {
  const Call call("ncclCommGetAsyncError", comm);
  *result = comm->result();
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  const Call call("ncclGroupStart");
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* bytes, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  if (type != ncclUint8) Misuse("only bytes are sent");
  return Add("ncclSend", {comm, stream, const_cast<void*>(bytes), count, peer, true, {}});
}

ncclResult_t ncclRecv(void* bytes, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (type != ncclUint8) Misuse("only bytes are received");
  return Add("ncclRecv", {comm, stream, bytes, count, peer, false, {}});
}

ncclResult_t ncclAllReduce(const void* from, void* into, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  if (op != ncclSum || from != into) Misuse("only sums, in place");
  if (type != ncclFloat32 && type != ncclFloat64) Misuse("only floats and doubles are added");
  const size_t bytes = count * (type == ncclFloat32 ? sizeof(float) : sizeof(double));
  auto theirs = std::make_shared<std::vector<std::vector<std::byte>>>();
  theirs->assign(static_cast<size_t>(comm->size), std::vector<std::byte>(bytes));
  for (int peer = 0; peer < comm->size; ++peer) {
    if (peer == comm->rank) continue;
    std::byte* const room = (*theirs)[static_cast<size_t>(peer)].data();
    const ncclResult_t sent = Add("ncclAllReduce", {comm, stream, into, bytes, peer, true, {}});
    if (sent != ncclSuccess) return sent;
    Operation got{comm, stream, room, bytes, peer, false, {}};
    if (peer == (comm->rank + 1 == comm->size ? comm->size - 2 : comm->size - 1)) {
      got.then = [=] {
        if (type == ncclFloat32) {
          AddUp<float>(*comm, into, count, *theirs);
        } else {
          AddUp<double>(*comm, into, count, *theirs);
        }
      };
    }
    (void)Add("ncclAllReduce", got);
  }
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  const Call call("ncclGroupEnd");
  if (group_depth == 0) Misuse("the end of a group that has not begun");
  if (--group_depth > 0) return ncclSuccess;
  std::vector<Operation> operations = std::exchange(group, {});
  if (operations.empty()) return ncclSuccess;
  ncclComm* const comm = operations.front().comm;
  return Launch(comm, std::move(operations));
}

ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags) {
  const Call call("ncclCommRevoke", comm);
  if (flags != 0 || !MayBeginToEnd(*comm)) {
    Misuse("a communicator is revoked that is not ready or done with a call, or twice");
  }
  comm->is_revoked = true;
  comm->stop = true;
  BeginToEnd(comm);
  return comm->result();
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const Call call("ncclCommFinalize", comm);
  if (!MayBeginToEnd(*comm)) Misuse("a communicator is finalised that is not ready, or twice");
  comm->is_finalised = true;
  BeginToEnd(comm);
  return ncclInProgress;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  Call call("ncclCommAbort", comm);
  static const uint64_t hang_at = Environment("KEEL_STANDIN_HANG");
  const bool hangs = OneOf(hang_at);
  while (hangs || All().aborts_hang) keel::RealClock().SleepFor(kLook);
  comm->stop = true;
  comm->JoinJob();
  comm->AwaitNothingInFlight();
  call.IsGone();
  Free(comm);
  return ncclSuccess;
}

}  // extern "C"
