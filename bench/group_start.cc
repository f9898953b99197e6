// How long it takes from exec until a group of workers has formed: start, connect to the store,
// meet over Gloo, one all-reduce. The workers link base, store and trainer, nothing else.
// Prints minimum, median and maximum over the rounds, in milliseconds.
#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/environment.h"
#include "base/option_help.h"
#include "base/options.h"
#include "base/process_setup.h"
#include "elastic/process/spawn.h"
#include "elastic/worker_environment.h"
#include "store/tcp_store.h"
#include "store/torch_store.h"
#include "trainer/process_group.h"

namespace keel {
namespace {

Status Work() {
  KEEL_TRY_ASSIGN(const WorkerEnvironment worker, ReadWorkerEnvironment(OwnEnvironment()));
  KEEL_TRY_ASSIGN(const auto store,
                  TcpStore::Connect({worker.master_address, worker.master_port}, {}));
  KEEL_TRY_ASSIGN(const Group group, MakeGlooGroup({.store = TorchStoreOf(*store),
                                                    .prefix = "start",
                                                    .rank = worker.rank,
                                                    .size = worker.world_size}));
  std::vector<torch::Tensor> one{torch::ones({1})};
  group->allreduce(one)->wait();
  KEEL_CHECK(one[0].item<float>() == static_cast<float>(worker.world_size), "wrong sum");
  return Ok();
}

// The time from the first exec to the end of the last worker.
Result<Duration> Round(int workers) {
  KEEL_TRY_ASSIGN(const auto host, TcpStoreHost::Open({"127.0.0.1", 0}));
  const TimePoint start = RealClock().Monotonic();
  std::vector<Child> children;
  for (int rank = 0; rank < workers; ++rank) {
    ChildSpec spec;
    spec.argv = {"/proc/self/exe"};
    spec.environment = With(OwnEnvironment(), WorkerEnvironment{.rank = rank,
                                                                .world_size = workers,
                                                                .local_rank = rank,
                                                                .local_world_size = workers,
                                                                .master_port = host->port()}
                                                  .Variables());
    KEEL_TRY_ASSIGN(Child child, Spawn(spec));
    children.push_back(std::move(child));
  }
  for (Child& child : children) {
    KEEL_TRY_ASSIGN(const ExitStatus end, child.Wait(kNever));
    if (!end.ok()) return Error{Code::kPeerLost, "a worker " + end.Text()};
  }
  return RealClock().Monotonic() - start;
}

Status Measure(int workers, int rounds) {
  std::vector<double> milliseconds;
  for (int round = 0; round < rounds; ++round) {
    KEEL_TRY_ASSIGN(const Duration took, Round(workers));
    milliseconds.push_back(std::chrono::duration<double, std::milli>(took).count());
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  std::printf("workers=%d rounds=%d min_ms=%.0f median_ms=%.0f max_ms=%.0f\n", workers, rounds,
              milliseconds.front(), milliseconds[milliseconds.size() / 2], milliseconds.back());
  return Ok();
}

}  // namespace
}  // namespace keel

int main(int argc, char** argv) {
  keel::IgnoreSigpipe();
  keel::OptionTable table("group_start", "Measures exec to a formed group, whole processes.");
  table.Add(keel::Option::Integer("workers", 2, "Workers of the group").Range(1, 64));
  table.Add(keel::Option::Integer("rounds", 20, "How often").Range(1, 10000));
  const auto options = keel::ParseOptions(table, keel::RealInputs(argc, argv));
  if (options.ok() && options->Flag("help")) {
    std::fputs(keel::HelpText(table, keel::TerminalWidth()).c_str(), stdout);
    return 0;
  }
  keel::Status status;
  if (keel::HasWorkerEnvironment(keel::OwnEnvironment())) {
    status = keel::Work();
  } else if (!options.ok()) {
    status = options.error();
  } else {
    status = keel::Measure(static_cast<int>(options->Integer("workers")),
                           static_cast<int>(options->Integer("rounds")));
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "group_start: %s\n", status.error().message.c_str());
  return 1;
}
