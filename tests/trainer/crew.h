// GroupCrew: the members of one epoch as threads of a test, over a real TCPStore and real groups of
// Gloo.
// Promises   every member's thread is joined before Run() returns.
// Threads    one: the test's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "store/tcp_store.h"
#include "store/torch_store.h"
#include "tests/trainer/abort_trace.h"
#include "trainer/group/epoch_group.h"

namespace keel {

class GroupCrew {
 public:
  GroupCrew() {
    InstallAbortTrace();
    PrepareForGroups();
    Result<std::unique_ptr<TcpStoreHost>> host = TcpStoreHost::Open({.bind = "127.0.0.1"});
    KEEL_CHECK(host.ok(), host.error().message);
    host_ = std::move(*host);
  }

  // A spec with a connection of its own to the store.
  EpochGroup::Spec SpecOf(int rank, int size, const std::string& prefix) const {
    auto store = TcpStore::Connect({.host = "127.0.0.1", .port = host_->port()}, {});
    KEEL_CHECK(store.ok(), store.error().message);
    EpochGroup::Spec spec;
    spec.store = TorchStoreOf(**store);
    spec.prefix = prefix;
    spec.rank = rank;
    spec.size = size;
    spec.build_limit = std::chrono::seconds(40);
    spec.operation_limit = std::chrono::seconds(40);
    if (read_bytes_min) spec.read_bytes_min = read_bytes_min(rank);
    return spec;
  }

  uint16_t port() const { return host_->port(); }
  // Never given before.
  std::string NewPrefix() { return "epoch/" + std::to_string(++epochs_); }

  static void OnThreads(int size, const std::function<void(int rank)>& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) threads.emplace_back([&, rank] { body(rank); });
    for (std::thread& thread : threads) thread.join();
  }

  // Aborts `group` after a while, as a worker's link does when its epoch is broken; joined at the
  // end. The members' supervisors tell them one after the other.
  class Breaker {
   public:
    Breaker(EpochGroup& group, Duration delay, int victim)
        : thread_([&group, delay, victim] {
            const int turn = (group.rank() - victim + group.size()) % group.size();
            RealClock().SleepFor(delay + turn * std::chrono::milliseconds(1));
            group.Abort("broken on purpose");
          }) {}
    ~Breaker() { thread_.join(); }

   private:
    std::thread thread_;
  };

  // Builds a group of `size` members and runs `body` on each.
  void Run(int size, const std::function<void(EpochGroup& group)>& body) {
    const std::string prefix = NewPrefix();
    OnThreads(size, [&](int rank) {
      auto group = EpochGroup::Build(SpecOf(rank, size, prefix), CancelToken::Never());
      KEEL_CHECK(group.ok(), group.error().message);
      body(**group);
    });
  }

  // By rank; unset: as by default.
  std::function<size_t(int rank)> read_bytes_min;

 private:
  std::unique_ptr<TcpStoreHost> host_;
  int epochs_ = 0;
};

}  // namespace keel
