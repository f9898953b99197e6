// The smallest data-parallel job: some processes train one small model together and end with the
// same bits. Started by itself it launches --workers copies of itself and compares their digests;
// started by a launcher that sets RANK (keelrun, torchrun) it is one worker.
// Does not survive the loss of a worker: that is what the exact trainer will be for.
#include <torch/torch.h>

#include <cinttypes>
#include <cstdio>

#include "base/log.h"
#include "base/option_help.h"
#include "base/options.h"
#include "base/print_out.h"
#include "base/process_setup.h"
#include "elastic/process/spawn.h"
#include "elastic/worker_environment.h"
#include "store/catch_torch.h"
#include "store/own_address.h"
#include "store/resolve.h"
#include "store/tcp_store.h"
#include "store/torch_log.h"
#include "store/torch_store.h"
#include "trainer/data_parallel.h"
#include "trainer/numerics/tensor_digest.h"
#include "trainer/process_group.h"

namespace keel {
namespace {

struct Settings {
  int64_t workers = 3;
  int64_t steps = 20;
  int64_t batch = 32;
  int64_t seed = 1;
};

std::string DigestKey(int rank) { return "digest/" + std::to_string(rank); }

torch::nn::Sequential MakeModel(int64_t seed) {
  torch::manual_seed(static_cast<uint64_t>(seed));
  return torch::nn::Sequential(torch::nn::Linear(16, 64), torch::nn::ReLU(),
                               torch::nn::Linear(64, 64), torch::nn::ReLU(),
                               torch::nn::Linear(64, 1));
}

// A made-up task with an answer: each worker draws its own samples of one fixed function.
struct Batch {
  torch::Tensor input, wanted;
};
Batch MakeBatch(const Settings& settings, int64_t step, int rank) {
  torch::manual_seed(static_cast<uint64_t>(settings.seed * 1000003 + step * 1009 + rank));
  const torch::Tensor input = torch::randn({settings.batch, 16});
  return {input, torch::sin(input.sum(1, /*keepdim=*/true))};
}

Result<Digest> Train(const Settings& settings, const WorkerEnvironment& worker,
                     const Group& group) {
  torch::nn::Sequential model = MakeModel(settings.seed);
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  KEEL_TRY_ASSIGN(const auto parallel, DataParallel::Open(model->parameters(), group));
  double loss_value = 0;
  for (int64_t step = 0; step < settings.steps; ++step) {
    const Batch batch = MakeBatch(settings, step, worker.rank);
    optimizer.zero_grad();
    KEEL_TRY(parallel->BeforeForward());
    const torch::Tensor loss = torch::mse_loss(model->forward(batch.input), batch.wanted);
    KEEL_TRY(parallel->Backward(loss));
    optimizer.step();
    loss_value = loss.item<double>();
  }
  const Digest digest = DigestOfTensors(model->parameters());
  PrintOut("rank=%d step=%" PRId64 " loss=%.6f digest=%s\n", worker.rank, settings.steps,
           loss_value, digest.Hex().c_str());
  return digest;
}

Status RunWorker(const Settings& settings, const WorkerEnvironment& worker) {
  torch::set_num_threads(1);
  KEEL_TRY_ASSIGN(const auto store,
                  TcpStore::Connect({worker.master_address, worker.master_port}, {}));
  KEEL_TRY_ASSIGN(const std::string master,
                  ResolveHost(worker.master_address, std::chrono::seconds(10)));
  KEEL_TRY_ASSIGN(const Group group, MakeGlooGroup({.store = TorchStoreOf(*store),
                                                    .prefix = "allreduce",
                                                    .rank = worker.rank,
                                                    .size = worker.world_size,
                                                    .address = OwnAddressTowards(master)}));
  KEEL_TRY_ASSIGN(const Result<Digest> digest,
                  CatchTorch("training", [&] { return Train(settings, worker, group); }));
  if (!digest.ok()) return digest.error();
  return store->Set(DigestKey(worker.rank), digest->Hex());
}

// Every digest that the workers left on the board; equal ones are success.
Status CompareDigests(TcpStore& store, int64_t workers) {
  std::string first;
  for (int rank = 0; rank < workers; ++rank) {
    KEEL_TRY_ASSIGN(const std::optional<std::string> digest, store.Get(DigestKey(rank)));
    if (!digest) return Error{Code::kPeerLost, "rank " + std::to_string(rank) + " left no digest"};
    if (rank == 0) first = *digest;
    if (*digest != first) {
      return Error{Code::kCorrupt, "rank 0 ended with digest " + first + ", rank " +
                                       std::to_string(rank) + " with " + *digest};
    }
  }
  PrintOut("all %" PRId64 " workers hold the same parameters: digest=%s\n", workers, first.c_str());
  return Ok();
}

// Until all have ended well, or one has not: the others would wait for it in vain, and end with
// their Child objects. A worker that was killed is named before those that failed because of it.
Status AwaitAll(const std::vector<Child>& children) {
  for (size_t ended = 0; ended < children.size();) {
    ended = 0;
    std::string failed;
    for (size_t rank = 0; rank < children.size(); ++rank) {
      KEEL_TRY_ASSIGN(const std::optional<ExitStatus> status, children[rank].TryWait());
      if (!status) continue;
      ++ended;
      if (status->ok() || (!failed.empty() && status->kind == ExitStatus::Kind::kExited)) continue;
      failed = "rank " + std::to_string(rank) + " " + status->Text();
    }
    if (!failed.empty()) return Error{Code::kPeerLost, failed};
    RealClock().SleepFor(std::chrono::milliseconds(5));
  }
  return Ok();
}

Status Launch(const Settings& settings, const std::vector<std::string>& argv) {
  KEEL_TRY_ASSIGN(const auto host, TcpStoreHost::Open({"127.0.0.1", 0}));
  KEEL_TRY_ASSIGN(const auto store, TcpStore::Connect({"127.0.0.1", host->port()}, {}));
  std::vector<Child> children;
  for (int rank = 0; rank < settings.workers; ++rank) {
    const WorkerEnvironment worker{.rank = rank,
                                   .world_size = static_cast<int>(settings.workers),
                                   .local_rank = rank,
                                   .local_world_size = static_cast<int>(settings.workers),
                                   .master_address = "127.0.0.1",
                                   .master_port = host->port()};
    ChildSpec spec;
    spec.argv = argv;
    spec.argv[0] = "/proc/self/exe";
    spec.environment = With(OwnEnvironment(), worker.Variables());
    KEEL_TRY_ASSIGN(Child child, Spawn(spec));
    children.push_back(std::move(child));
  }
  KEEL_TRY(AwaitAll(children));
  return CompareDigests(*store, settings.workers);
}

}  // namespace
}  // namespace keel

namespace {

keel::OptionTable MakeTable() {
  keel::OptionTable table("allreduce_train",
                          "Trains a small model on several processes with plain all-reduce and "
                          "compares the parameters they end with.");
  table.Add(keel::Option::Integer("workers", 3, "Processes to start, unless a launcher starts them")
                .Range(1, 64)
                .Placeholder("N"));
  table.Add(keel::Option::Integer("steps", 20, "Optimizer steps")
                .Range(1, 1000000)
                .Placeholder("N"));
  table.Add(keel::Option::Integer("batch", 32, "Samples of each worker in a step")
                .Range(1, 1 << 20)
                .Placeholder("N"));
  table.Add(keel::Option::Integer("seed", 1, "Seed of the model and the samples").Placeholder("N"));
  table.AddExample("allreduce_train --workers 4 --steps 100", "four workers on this host");
  table.AddExample("torchrun --no-python --nproc-per-node 2 allreduce_train",
                   "two workers, started by another launcher");
  table.AddExitCode(0, "all workers hold the same parameters");
  table.AddExitCode(1, "a worker failed, parameters differ, or not all could be written to stdout");
  table.AddExitCode(2, "the options are not valid");
  return table;
}

int Report(const keel::Status& done) {
  const keel::Status status = done.ok() ? keel::OutputStatus() : done;
  if (status.ok()) return 0;
  keel::LogError("failed", {{"code", keel::CodeName(status.error().code)},
                            {"why", status.error().message}});
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  keel::IgnoreSigpipe();
  keel::RouteTorchLog();
  const keel::OptionTable table = MakeTable();
  const keel::Result<keel::Options> options =
      keel::ParseOptions(table, keel::RealInputs(argc, argv));
  if (!options.ok()) {
    std::fprintf(stderr, "allreduce_train: %s\n", options.error().message.c_str());
    return 2;
  }
  if (options->Flag("help")) {
    return Report(keel::PrintOutText(keel::HelpText(table, keel::TerminalWidth())));
  }
  if (options->Flag("print-config")) {
    return Report(keel::PrintOutText(options->ConfigText()));
  }
  const keel::Settings settings{.workers = options->Integer("workers"),
                                .steps = options->Integer("steps"),
                                .batch = options->Integer("batch"),
                                .seed = options->Integer("seed")};
  const keel::Environment environment = keel::OwnEnvironment();
  if (!keel::HasWorkerEnvironment(environment)) {
    return Report(keel::Launch(settings, std::vector<std::string>(argv, argv + argc)));
  }
  const keel::Result<keel::WorkerEnvironment> worker = keel::ReadWorkerEnvironment(environment);
  if (!worker.ok()) return Report(worker.error());
  return Report(keel::RunWorker(settings, *worker));
}
