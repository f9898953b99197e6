// What a group of workers costs: one vote beside one Gloo barrier, building the group, coming to
// agree in it (the reports and digests of a re-form, no state moved), and moving a state beside a
// Gloo broadcast. A foreign worker: start it with keelrun --no-python.
// Prints, from the first rank, a JSON line a measurement: {"what":W,"workers":N,"seconds":S}.
// What is compared takes turns.
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/torch.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/option_help.h"
#include "base/options.h"
#include "elastic/worker_environment.h"
#include "store/catch_torch.h"
#include "store/tcp_store.h"
#include "store/torch_log.h"
#include "store/torch_store.h"
#include "trainer/exchange/gather.h"
#include "trainer/exchange/transfer.h"
#include "trainer/group/epoch_group.h"
#include "trainer/loop/vote.h"

namespace keel {
namespace {

constexpr size_t kReportBytes = 400;   // about what trainer/state/reform.h writes
constexpr size_t kDigestBytes = 32;
constexpr int kLanesEach = 1;

class Bench {
 public:
  Bench(EpochGroup::Spec spec, const Options& options)
      : spec_(std::move(spec)), options_(options) {}

  Status Run() {
    const int64_t rounds = options_.Integer("rounds");
    for (int64_t round = 0; round < rounds; ++round) KEEL_TRY(Round(round));
    return Ok();
  }

 private:
  // Only the first rank's time is told: it is rank 0 that all the others wait for, or who waits.
  Status Timed(const char* what, const std::function<Status()>& work) {
    const TimePoint begin = RealClock().Monotonic();
    KEEL_TRY(work());
    const double took =
        std::chrono::duration<double>(RealClock().Monotonic() - begin).count();
    if (spec_.rank == 0) {
      std::printf(R"({"what":"%s","workers":%d,"seconds":%.9f})" "\n", what, spec_.size, took);
    }
    return Ok();
  }

  Status Round(int64_t round) {
    EpochGroup::Spec spec = spec_;
    spec.prefix = "round" + std::to_string(round);
    std::unique_ptr<EpochGroup> group;
    if (last_) KEEL_TRY(Barrier(*last_));
    KEEL_TRY(Timed("build", [&]() -> Status {
      KEEL_TRY_ASSIGN(group, EpochGroup::Build(spec, CancelToken::Never()));
      return Ok();
    }));
    KEEL_TRY(Barrier(*group));
    KEEL_TRY(Timed("agree", [&] { return Agree(*group); }));
    KEEL_TRY(Votes(*group));
    if (round < options_.Integer("transfers")) KEEL_TRY(Move(*group));
    last_ = std::move(group);
    return Ok();
  }

  Status Agree(EpochGroup& group) {
    for (const size_t bytes : {sizeof(uint64_t), kReportBytes, kDigestBytes}) {
      const std::vector<size_t> sizes(static_cast<size_t>(spec_.size), bytes);
      KEEL_TRY(Gather(group, RecordBytes(bytes), sizes));
    }
    return Ok();
  }

  Status Votes(EpochGroup& group) {
    VoteRecord record;
    record.losses.resize(kLanesEach);
    const Placement placement = EvenPlacement(spec_.size, spec_.size * kLanesEach);
    for (int64_t i = 0; i < options_.Integer("votes"); ++i) {
      record.step = i;
      KEEL_TRY(Barrier(group));
      KEEL_TRY(Timed("vote", [&]() -> Status {
        KEEL_TRY(Vote(group, record, placement));
        return Ok();
      }));
      KEEL_TRY(Barrier(group));
      KEEL_TRY(Timed("gloo barrier", [&] { return Barrier(group); }));
    }
    return Ok();
  }

  Status Move(EpochGroup& group) {
    std::vector<at::Tensor> state = {torch::ones({options_.Integer("megabytes") << 18})};
    std::vector<bool> has_it(static_cast<size_t>(spec_.size));
    has_it[0] = true;
    KEEL_TRY(Barrier(group));
    // Sources are done before the others: so the time until all are.
    KEEL_TRY(Timed("transfer", [&]() -> Status {
      KEEL_TRY(Transfer(group, state, has_it));
      return Barrier(group);
    }));
    return Timed("gloo broadcast", [&]() -> Status {
      KEEL_TRY(CatchTorch("broadcasting", [&] { group.gloo().broadcast(state)->wait(); }));
      return Barrier(group);
    });
  }

  static Status Barrier(EpochGroup& group) {
    KEEL_TRY(CatchTorch("a barrier", [&] { group.gloo().barrier()->wait(); }));
    return Ok();
  }

  const EpochGroup::Spec spec_;
  const Options& options_;
  std::unique_ptr<EpochGroup> last_;
};

Status Measure(const Options& options) {
  KEEL_TRY_ASSIGN(const WorkerEnvironment worker, ReadWorkerEnvironment(OwnEnvironment()));
  KEEL_TRY_ASSIGN(const auto store,
                  TcpStore::Connect({worker.master_address, worker.master_port}, {}));
  EpochGroup::Spec spec;
  spec.store = TorchStoreOf(*store);
  spec.rank = worker.rank;
  spec.size = worker.world_size;
  KEEL_TRY(Bench(spec, options).Run());
  EpochGroup::AwaitTeardown(std::chrono::seconds(5));
  return Ok();
}

}  // namespace
}  // namespace keel

int main(int argc, char** argv) {
  keel::PrepareForGroups();
  keel::RouteTorchLog();
  at::set_num_threads(1);
  keel::OptionTable table("group_bench", "Measures votes, groups and the moving of a state.");
  table.Add(keel::Option::Integer("rounds", 10, "Groups that are built").Range(1, 10000));
  table.Add(keel::Option::Integer("votes", 100, "In each of them").Range(0, 1000000));
  table.Add(keel::Option::Integer("transfers", 3, "Groups in which a state is moved")
                .Range(0, 10000));
  table.Add(keel::Option::Integer("megabytes", 64, "Of that state").Range(1, 4096));
  const auto options = keel::ParseOptions(table, keel::RealInputs(argc, argv));
  if (!options.ok()) {
    std::fprintf(stderr, "%s\n", options.error().message.c_str());
    return 2;
  }
  if (options->Flag("help")) {
    std::fputs(keel::HelpText(table, keel::TerminalWidth()).c_str(), stdout);
    return 0;
  }
  const keel::Status status = keel::Measure(*options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "group_bench: %s\n", status.error().message.c_str());
  return 1;
}
