// MemoryStore: the board in memory, for tests and the simulator, with faults on request.
// Promises   every client made by Connect() sees one board; the contract of store/store.h; faults
//            strike exactly the client and the operation they were planned for.
// Does not   survive its process, or delay by itself: time passes only through the Clock it was
//            given.
// Threads    any.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "store/store.h"

namespace keel {

// The fault that strikes one operation of one client.
enum class StoreFault {
  kRequestLost,  // the board never sees the operation; the client gets kTimeout
  kReplyLost,    // the board applies it; the client gets kTimeout all the same
  kCut,          // the connection breaks before it; kPeerLost now and for ever
};

class MemoryBoard {
 public:
  explicit MemoryBoard(Clock& clock) : clock_(clock) {}

  // A client with a name, under which faults are planned. Names may repeat (a reconnect).
  std::unique_ptr<Store> Connect(const std::string& client);

  // The operation of `client` after the next `skip` ones meets `fault`.
  void PlanFault(const std::string& client, int skip, StoreFault fault);

  // Cuts off every client of that name, or all clients, as when the store's host is lost.
  void Cut(const std::string& client);
  void CutAll();

  // The store host comes back empty: keys are gone, connections are cut, new ones are allowed.
  void Restart();

  size_t KeyCount();
  int64_t OperationCount();

 private:
  friend class MemoryClient;
  struct Plan {
    int skip;
    StoreFault fault;
  };

  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> keys_;
  std::multimap<std::string, Plan> plans_;
  std::map<std::string, int64_t> cuts_;  // by client name: connections made before it are dead
  int64_t all_cut_ = 0;
  int64_t connections_ = 0;
  int64_t operations_ = 0;
};

}  // namespace keel
