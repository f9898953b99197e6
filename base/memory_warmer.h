// MemoryWarmer: has the system hand out memory that will be written to soon, in the background, so
// that whoever writes does not wait for it page by page.
// Promises   changes no byte, so that the memory may be read and written meanwhile. Takes what
//            processors others leave. Where the system cannot do it (Linux before 5.14), it does
//            nothing.
// Does not   go on behind its destructor, which waits for one piece at most; the memory must last
//            until then.
// Threads    makes one of its own; Stop() from any.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <thread>
#include <vector>

namespace keel {

class MemoryWarmer {
 public:
  explicit MemoryWarmer(std::vector<std::span<std::byte>> places);
  ~MemoryWarmer();
  MemoryWarmer(const MemoryWarmer&) = delete;
  MemoryWarmer& operator=(const MemoryWarmer&) = delete;

  void Stop() { stop_ = true; }
  void Wait();   // until all is there, or it was stopped

 private:
  void Run(const std::vector<std::span<std::byte>>& places) const;

  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace keel
