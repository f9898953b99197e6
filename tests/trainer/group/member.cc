// A process that belongs to a group until it ends: votes, or sends big messages around, over and
// over. SIGUSR1 is its break. Arguments: port, prefix, rank, size, "votes" or "messages".
// group_kill_test.cc runs it.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "store/tcp_store.h"
#include "store/torch_store.h"
#include "trainer/group/epoch_group.h"
#include "trainer/loop/vote.h"

namespace keel {
namespace {

constexpr int64_t kBigBytes = 64 << 20;

Status SendAround(EpochGroup& group, const at::Tensor& in, const at::Tensor& out) {
  EpochGroup::Batch batch(group);
  const Tag tag = group.NextTag(TagKind::kTransfer);
  KEEL_TRY(batch.Receive(in, (group.rank() + group.size() - 1) % group.size(), tag));
  KEEL_TRY(batch.Send(out, (group.rank() + 1) % group.size(), tag));
  return batch.Wait();
}

Status WorkUntilItEnds(EpochGroup& group, bool votes) {
  const at::Tensor in = at::zeros({kBigBytes}, at::kByte);
  const at::Tensor out = at::zeros({kBigBytes}, at::kByte);
  for (int64_t step = 0;; ++step) {
    if (votes) {
      KEEL_TRY(Vote(group, {.step = step}, EvenPlacement(group.size(), 0)));
    } else {
      KEEL_TRY(SendAround(group, in, out));
    }
    if (step == 1) {
      std::printf("working\n");
      std::fflush(stdout);
    }
  }
}

int Main(char** arguments) {
  // Blocked before any thread starts, so that only the thread below takes it.
  sigset_t breaks;
  sigemptyset(&breaks);
  sigaddset(&breaks, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &breaks, nullptr);
  PrepareForGroups();
  const auto port = static_cast<uint16_t>(std::stoi(arguments[1]));
  const auto store = TcpStore::Connect({.host = "127.0.0.1", .port = port}, {});
  KEEL_CHECK(store.ok(), store.error().message);
  EpochGroup::Spec spec;
  spec.store = TorchStoreOf(**store);
  spec.prefix = arguments[2];
  spec.rank = std::stoi(arguments[3]);
  spec.size = std::stoi(arguments[4]);
  const auto group = EpochGroup::Build(spec, CancelToken::Never());
  KEEL_CHECK(group.ok(), group.error().message);
  std::thread breaker([&] {
    int signal = 0;
    sigwait(&breaks, &signal);
    (*group)->Abort("told to break");
  });
  const Status ended = WorkUntilItEnds(**group, std::string(arguments[5]) == "votes");
  std::printf("ended %s\n", std::string(CodeName(ended.error().code)).c_str());
  std::fflush(stdout);
  // The group is there until nobody can break it any more: the signal may come only now, or never.
  ::kill(::getpid(), SIGUSR1);
  breaker.join();
  return 0;
}

}  // namespace
}  // namespace keel

int main(int, char** arguments) { return keel::Main(arguments); }
