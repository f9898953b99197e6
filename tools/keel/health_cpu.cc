// A thread for each processor, pinned to it before it computes.
#include "tools/keel/health_cpu.h"

#include <pthread.h>
#include <sched.h>

#include <cstring>
#include <memory>
#include <system_error>
#include <thread>

namespace keel {
namespace {

// The kernel refuses a set that is smaller than its own.
constexpr int kMostProcessors = 1 << 16;
const size_t kSetBytes = CPU_ALLOC_SIZE(kMostProcessors);

struct FreeProcessorSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};
using ProcessorSet = std::unique_ptr<cpu_set_t, FreeProcessorSet>;

ProcessorSet NoProcessors() {
  ProcessorSet set(CPU_ALLOC(kMostProcessors));
  KEEL_CHECK(set != nullptr, "no memory for a set of processors");
  CPU_ZERO_S(kSetBytes, set.get());
  return set;
}

// Why this thread cannot run there; empty: it does.
std::string PinTo(int processor) {
  const ProcessorSet set = NoProcessors();
  CPU_SET_S(static_cast<size_t>(processor), kSetBytes, set.get());
  const int error = ::pthread_setaffinity_np(::pthread_self(), kSetBytes, set.get());
  return error == 0 ? "" : std::strerror(error);
}

void ComputeHere(const std::vector<ProductKernel>& kernels, const ProductFactors& factors,
                 TimePoint end, Clock& clock, ProcessorWork* work) {
  work->trouble = PinTo(work->processor);
  if (!work->trouble.empty()) return;
  const auto product = std::make_unique<SquareMatrix>();
  do {
    for (const ProductKernel& kernel : kernels) {
      kernel.multiply(factors, product.get());
      ++work->products;
      if (ProductDigest(*product).Hex() == kKnownProductDigest) continue;
      if (work->wrong++ > 0) continue;
      work->kernel = kernel.name;
      work->product = *product;
    }
  } while (clock.Monotonic() < end);
}

}  // namespace

std::vector<int> OwnProcessors() {
  const ProcessorSet set = NoProcessors();
  std::vector<int> processors;
  if (::sched_getaffinity(0, kSetBytes, set.get()) != 0) return processors;
  for (int i = 0; i < kMostProcessors; ++i) {
    if (CPU_ISSET_S(static_cast<size_t>(i), kSetBytes, set.get())) processors.push_back(i);
  }
  return processors;
}

std::vector<ProcessorWork> ComputeOnEach(const std::vector<int>& processors,
                                         const std::vector<ProductKernel>& kernels,
                                         Duration duration, Clock& clock) {
  const auto factors = std::make_unique<ProductFactors>(KnownFactors());
  const TimePoint end = clock.Monotonic() + duration;
  std::vector<ProcessorWork> works(processors.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < processors.size(); ++i) {
    works[i].processor = processors[i];
    try {
      threads.emplace_back([&, i] { ComputeHere(kernels, *factors, end, clock, &works[i]); });
    } catch (const std::system_error& error) {
      works[i].trouble = std::string("starting a thread: ") + error.what();
    }
  }
  for (std::thread& thread : threads) thread.join();
  return works;
}

}  // namespace keel
