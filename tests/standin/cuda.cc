// CUDA's runtime as far as our code and tests call it. A stream is a thread that runs what it is
// given, one after the other.
#include <cuda_runtime_api.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "tests/standin/standin.h"
#include "tests/standin/stream.h"

struct CUstream_st {
  std::mutex mutex;
  std::condition_variable told;
  std::deque<std::function<void()>> work;
  bool busy = false, ends = false;
  std::thread thread;

  CUstream_st() : thread([this] { Run(); }) {}
  void Run() {
    std::unique_lock lock(mutex);
    while (true) {
      told.wait(lock, [this] { return ends || !work.empty(); });
      if (work.empty()) return;
      const std::function<void()> next = std::move(work.front());
      work.pop_front();
      busy = true;
      lock.unlock();
      next();
      lock.lock();
      busy = false;
      told.notify_all();
    }
  }
};

namespace keel::standin {

namespace {

std::atomic<int> lost{0};

}  // namespace

void Enqueue(cudaStream_t stream, std::function<void()> work) {
  const std::lock_guard lock(stream->mutex);
  stream->work.push_back(std::move(work));
  stream->told.notify_all();
}

void LoseTheGpu(int cuda_error) { lost = cuda_error; }

}  // namespace keel::standin

using keel::standin::lost;

extern "C" {

cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

// The header gives cudaGetDeviceProperties this name in some versions.
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  return cudaSuccess;
}

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorIllegalAddress ? "an illegal memory access was encountered"
                                          : "an error of the stand-in's";
}

cudaError_t cudaGetLastError() { return cudaSuccess; }

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  *memory = std::calloc(1, bytes);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st;
  return cudaSuccess;
}

// As the real one, it returns at once; here only what is idle is destroyed.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  {
    const std::lock_guard lock(stream->mutex);
    stream->ends = true;
    stream->told.notify_all();
  }
  stream->thread.join();
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (const int error = lost.load(); error != 0) return static_cast<cudaError_t>(error);
  const std::lock_guard lock(stream->mutex);
  return stream->busy || !stream->work.empty() ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  std::unique_lock lock(stream->mutex);
  stream->told.wait(lock, [&] { return !stream->busy && stream->work.empty(); });
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  keel::standin::Enqueue(stream, [=] { function(argument); });
  return cudaSuccess;
}

}  // extern "C"
