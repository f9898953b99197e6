// Threads that share one loop.
#include "ckpt/worker_threads.h"

#include <system_error>
#include <thread>
#include <vector>

namespace keel {

void RunOnThreads(int threads, const std::function<void()>& work) {
  std::vector<std::thread> others;
  try {
    while (static_cast<int>(others.size()) + 1 < threads) others.emplace_back(work);
  } catch (const std::system_error&) {
    // There are no more threads to be had: those that exist do it all.
  }
  work();
  for (std::thread& thread : others) thread.join();
}

}  // namespace keel
