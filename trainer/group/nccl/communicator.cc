// NCCL's own threads do what a call has begun; the owner asks until it is done, and looks meanwhile
// whether the link shall end. How NCCL behaves was read in its sources (2.28.9): ncclCommAbort()
// joins what is being initialised or enqueued, and then frees the communicator.
#include "trainer/group/nccl/communicator.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <utility>

#include "base/check.h"

namespace keel {
namespace {

// How long the owner asks without a rest: as long as it takes to enqueue. Then with rests.
constexpr Duration kAskWithoutRest = std::chrono::microseconds(200);
constexpr Duration kRest = std::chrono::microseconds(100);
// How often an idle owner looks for errors of what is in flight.
constexpr Duration kLookForErrors = std::chrono::milliseconds(5);
// How long the end in order, and the end of what was revoked, may take before the abort comes.
constexpr Duration kFinaliseLimit = std::chrono::seconds(2);
constexpr Duration kRevokeLimit = std::chrono::seconds(2);

constexpr size_t kLastWordsMax = 300;

constexpr std::array<ncclDataType_t, 4> kSummandTypes = {ncclFloat32, ncclFloat64, ncclFloat16,
                                                         ncclBfloat16};

// From 2.28.7 on; an older NCCL has no such symbol.
using RevokeCall = ncclResult_t (*)(ncclComm_t, int);
RevokeCall Revoker() {
  static const auto call = reinterpret_cast<RevokeCall>(dlsym(RTLD_DEFAULT, "ncclCommRevoke"));
  return call;
}

// With these CUDA serves no process any more that has once met them.
bool IsForEver(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorContextIsDestroyed:
    case cudaErrorDevicesUnavailable:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

// What will be so in the next epoch, too.
bool ComesAgain(const std::string& words) {
  for (const char* const cause : {"out of memory", "no kernel image", "driver version"}) {
    if (words.find(cause) != std::string::npos) return true;
  }
  return false;
}

// CUDA takes "not ready" for an error that somebody may find later.
cudaError_t Ask(cudaStream_t stream) {
  const cudaError_t found = cudaStreamQuery(stream);
  if (found == cudaErrorNotReady) (void)cudaGetLastError();
  return found;
}

// The calls between a group's beginning and end.
ncclResult_t SendAndReceive(const std::vector<NcclPiece>& out, const std::vector<NcclPiece>& in,
                            ncclComm_t comm, cudaStream_t stream) {
  for (const NcclPiece& piece : out) {
    const ncclResult_t sent =
        ncclSend(piece.bytes, piece.count, ncclUint8, piece.peer, comm, stream);
    if (sent != ncclSuccess) return sent;
  }
  for (const NcclPiece& piece : in) {
    const ncclResult_t got =
        ncclRecv(piece.bytes, piece.count, ncclUint8, piece.peer, comm, stream);
    if (got != ncclSuccess) return got;
  }
  return ncclSuccess;
}

Error BeingEnded() { return {Code::kCancelled, "NCCL's link is being ended"}; }

}  // namespace

std::string NcclVersionText() {
  int packed = 0;
  if (ncclGetVersion(&packed) != ncclSuccess) return "NCCL of unknown version";
  return "NCCL " + std::to_string(packed / 10000) + "." + std::to_string(packed % 10000 / 100) +
         "." + std::to_string(packed % 100);
}

Result<std::string> NewNcclId() {
  ncclUniqueId id;
  const ncclResult_t made = ncclGetUniqueId(&id);
  if (made == ncclSuccess) return std::string(id.internal, sizeof(id.internal));
  return Error{Code::kForeign, std::string("ncclGetUniqueId: ") + ncclGetErrorString(made)};
}

// -------------------------------------------------------------------------------------- by others

Status Communicator::AwaitReady(const std::function<bool()>& give_up) {
  std::unique_lock lock(mutex_);
  while (state_ == LinkState::kInitialising && !is_wished_) {
    if (give_up()) return Error{Code::kCancelled, "NCCL was not ready yet"};
    told_.wait_for(lock, std::chrono::milliseconds(1));
  }
  if (!status_.ok()) return status_;
  return is_wished_ ? BeingEnded() : Ok();
}

Status Communicator::Meet() {
  std::vector<NcclPiece> out, in;
  for (int peer = 0; peer < spec_.size; ++peer) {
    if (peer == spec_.rank) continue;
    out.push_back({meeting_ + peer, 1, peer});
    in.push_back({meeting_ + spec_.size + peer, 1, peer});
  }
  return Do([&](ncclComm_t comm) { return SendAndReceive(out, in, comm, probe_); },
            /*await_probe=*/true);
}

Status Communicator::Exchange(const std::vector<NcclPiece>& out, const std::vector<NcclPiece>& in,
                              void* stream) {
  return Do([&](ncclComm_t comm) {
    return SendAndReceive(out, in, comm, static_cast<cudaStream_t>(stream));
  });
}

Status Communicator::Sum(void* values, size_t count, NcclType type, void* stream) {
  return Do([&](ncclComm_t comm) {
    return ncclAllReduce(values, values, count, kSummandTypes.at(static_cast<size_t>(type)),
                         ncclSum, comm, static_cast<cudaStream_t>(stream));
  });
}

Status Communicator::Do(const Calls& calls, bool await_probe) {
  Job job{calls, await_probe, {}};
  std::unique_lock lock(mutex_);
  if (!status_.ok()) return status_;
  if (is_wished_) return BeingEnded();
  KEEL_CHECK(state_ == LinkState::kReady && job_ == nullptr, NameOf(state_));
  job_ = &job;
  told_.notify_all();
  told_.wait(lock, [&] { return job.done; });
  return job.status;
}

Status Communicator::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void Communicator::Wish(LinkEvent wish) {
  const std::lock_guard lock(mutex_);
  // Whoever has wished to leave may still abort, and the other way round nothing changes.
  may_finalise_ = wish == LinkEvent::kLeave && (may_finalise_ || !is_wished_);
  is_wished_ = true;
  told_.notify_all();
}

bool Communicator::AwaitGone(Duration limit) {
  std::unique_lock lock(mutex_);
  return told_.wait_for(lock, limit, [&] { return state_ == LinkState::kGone; });
}

std::string Communicator::StateText() const { return std::string(NameOf(state())); }

LinkState Communicator::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

bool Communicator::wished() const {
  const std::lock_guard lock(mutex_);
  return is_wished_;
}

// ----------------------------------------------------------------------------------- by the owner

void Communicator::Note(LinkEvent event) {
  const std::lock_guard lock(mutex_);
  state_ = After(state_, event);
  told_.notify_all();
}

void Communicator::Fail(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (status_.ok()) status_ = error;
  state_ = After(state_, LinkEvent::kFailed);
  told_.notify_all();
}

void Communicator::Own() {
  const Status ready = Initialise();
  if (ready.ok()) {
    Note(LinkEvent::kReady);
    Serve();
  } else {
    Fail(ready.error());
  }
  End();
}

Status Communicator::Initialise() {
  const cudaError_t there = cudaSetDevice(spec_.device);
  if (there != cudaSuccess) {
    return Error{Code::kNoDevice, "GPU " + std::to_string(spec_.device) + ": " +
                                      cudaGetErrorString(there)};
  }
  cudaError_t made = cudaStreamCreateWithFlags(&probe_, cudaStreamNonBlocking);
  if (made == cudaSuccess) {
    made = cudaMalloc(reinterpret_cast<void**>(&meeting_), static_cast<size_t>(2 * spec_.size));
  }
  if (made != cudaSuccess) {
    const Code code = IsForEver(made) ? Code::kNoDevice : Code::kForeign;
    return Error{code, "GPU " + std::to_string(spec_.device) + ": " + cudaGetErrorString(made)};
  }
  ncclUniqueId id;
  KEEL_CHECK(spec_.id.size() == sizeof(id.internal), spec_.id.size() << " bytes of an id of NCCL");
  std::memcpy(id.internal, spec_.id.data(), sizeof(id.internal));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return AwaitNccl(ncclCommInitRankConfig(&comm_, spec_.size, id, spec_.rank, &config),
                   [this] { return wished(); });
}

void Communicator::Serve() {
  std::unique_lock lock(mutex_);
  while (!is_wished_) {
    told_.wait_for(lock, kLookForErrors, [&] { return job_ != nullptr || is_wished_; });
    Job* const job = std::exchange(job_, nullptr);
    lock.unlock();
    Status status;
    if (job != nullptr) {
      status = Enqueue(job->calls);
      if (status.ok() && job->await_probe) status = AwaitProbe();
    } else if (!wished()) {
      LookForErrors();
    }
    lock.lock();
    if (job == nullptr) continue;
    job->status = status;
    job->done = true;
    told_.notify_all();
  }
  Job* const late = std::exchange(job_, nullptr);
  if (late == nullptr) return;
  late->status = BeingEnded();
  late->done = true;
  told_.notify_all();
}

Status Communicator::Enqueue(const Calls& calls) {
  {
    const std::lock_guard lock(mutex_);
    if (!status_.ok()) return status_;
  }
  Note(LinkEvent::kEnqueue);
  ncclResult_t result = ncclGroupStart();
  if (result == ncclSuccess) {
    const ncclResult_t called = calls(comm_);
    result = ncclGroupEnd();   // also after an error: it ends the group
    if (called != ncclSuccess && called != ncclInProgress) result = called;
  }
  const Status done = AwaitNccl(result, [this] { return wished(); });
  if (done.ok()) {
    Note(LinkEvent::kDone);
  } else if (done.error().code != Code::kCancelled) {
    Fail(done.error());
  }
  return done;
}

Status Communicator::AwaitProbe() {
  while (true) {
    const cudaError_t found = Ask(probe_);
    if (found == cudaSuccess) return Ok();
    if (found != cudaErrorNotReady) {
      Fail(ErrorOf(ncclUnhandledCudaError));
      return status();
    }
    if (wished()) return BeingEnded();
    LookForErrors();
    KEEL_TRY(status());
    RealClock().SleepFor(kRest);
  }
}

void Communicator::LookForErrors() {
  if (state() != LinkState::kReady) return;
  ncclResult_t found = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm_, &found);
  if (asked != ncclSuccess) found = asked;
  if (found != ncclSuccess && found != ncclInProgress) Fail(ErrorOf(found));
}

// Until NCCL has done what a call has begun.
Status Communicator::AwaitNccl(ncclResult_t result, const std::function<bool()>& give_up) {
  const TimePoint begun = RealClock().Monotonic();
  while (result == ncclInProgress) {
    if (give_up()) return Error{Code::kCancelled, "NCCL was not done yet"};
    if (RealClock().Monotonic() - begun < kAskWithoutRest) {
      std::this_thread::yield();
    } else {
      RealClock().SleepFor(kRest);
    }
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &result);
    if (asked != ncclSuccess) result = asked;
  }
  if (result == ncclSuccess) return Ok();
  return ErrorOf(result);
}

// What a peer's loss shows as differs with the way to it; over NVLink it is an error of CUDA's.
Error Communicator::ErrorOf(ncclResult_t result) {
  std::string words = std::string("NCCL: ") + ncclGetErrorString(result);
  // Of the whole process, and perhaps older.
  const std::string last = std::string(ncclGetLastError(comm_)).substr(0, kLastWordsMax);
  if (!last.empty()) words += "; its last words: " + last;
  std::string why;
  if (IsContextLost(&why)) return {Code::kNoDevice, why + "; " + words};
  const bool ours = result == ncclInvalidArgument || result == ncclInvalidUsage;
  return {ours || ComesAgain(last) ? Code::kForeign : Code::kPeerLost, words};
}

bool Communicator::IsContextLost(std::string* why) {
  const cudaError_t found = Ask(probe_);
  if (!IsForEver(found)) return false;
  *why = "CUDA is of no more use in this process: " + std::string(cudaGetErrorString(found));
  return true;
}

// ---------------------------------------------------------------------------------------- the end

void Communicator::End() {
  bool in_order = false;
  {
    const std::lock_guard lock(mutex_);
    in_order = may_finalise_;
  }
  Note(in_order ? LinkEvent::kLeave : LinkEvent::kAbort);
  if (state() == LinkState::kFinalising) Finalise();
  if (state() == LinkState::kRevoking) Revoke();
  if (state() == LinkState::kAborting) EndByAbort();
}

void Communicator::Finalise() {
  const TimePoint by = RealClock().Monotonic() + kFinaliseLimit;
  const Status flushed = AwaitNccl(ncclCommFinalize(comm_), [&] {
    const std::lock_guard lock(mutex_);
    return !may_finalise_ || RealClock().Monotonic() > by;
  });
  // Not ncclCommDestroy(), which waits without a limit until other members on this host do so, too;
  // the abort does not, where NCCL can help it.
  Note(flushed.ok() ? LinkEvent::kStopped : LinkEvent::kFailed);
}

void Communicator::Revoke() {
  const RevokeCall revoke = Revoker();
  if (revoke != nullptr) {
    const TimePoint by = RealClock().Monotonic() + kRevokeLimit;
    (void)AwaitNccl(revoke(comm_, 0), [&] { return RealClock().Monotonic() > by; });
  }
  Note(LinkEvent::kStopped);
}

void Communicator::EndByAbort() {
  if (comm_ != nullptr) (void)ncclCommAbort(comm_);
  Free();
  Note(LinkEvent::kDone);
}

// What is wrong with the GPU by now was told before, or will be by whoever uses it next.
void Communicator::Free() {
  if (meeting_ != nullptr) (void)cudaFree(meeting_);
  if (probe_ != nullptr) (void)cudaStreamDestroy(probe_);
}

}  // namespace keel
