// One rank of the GPU tests: forms an NCCL group on GPU 0 with the others (each rank has an
// NCCL_HOSTID of its own, so that they may share the GPU), sums, trains a few steps, and prints
// what it found. With "hang" as its argument it sums for ever, until the test kills a member, and
// then aborts.
#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/environment.h"
#include "elastic/worker_environment.h"
#include "store/catch_torch.h"
#include "store/tcp_store.h"
#include "store/torch_log.h"
#include "store/torch_store.h"
#include "trainer/data_parallel.h"
#include "trainer/group/epoch_group.h"
#include "trainer/nccl_module.h"
#include "trainer/numerics/tensor_digest.h"
#include "trainer/process_group.h"

namespace keel {
namespace {

const torch::Device kGpu(torch::kCUDA, 0);

void Sum(const Group& group, torch::Tensor tensor) {
  std::vector<torch::Tensor> one{std::move(tensor)};
  group->allreduce(one)->wait();
}

// The sum of 1 .. size, in every element, on every rank.
bool SumIsRight(const Group& group, int rank) {
  torch::Tensor tensor = torch::full({1 << 20}, rank + 1.0f, torch::TensorOptions(kGpu));
  Sum(group, tensor);
  const float wanted = static_cast<float>(group->getSize() * (group->getSize() + 1)) / 2;
  return (tensor.cpu() == wanted).all().item<bool>();
}

void PrintSpeed(const Group& group) {
  constexpr int64_t kElements = 16 << 20;
  std::vector<double> milliseconds;
  torch::Tensor tensor = torch::ones({kElements}, torch::TensorOptions(kGpu));
  for (int round = 0; round < 20; ++round) {
    const TimePoint start = RealClock().Monotonic();
    Sum(group, tensor);
    (void)tensor[0].item<float>();  // waits for the stream
    milliseconds.push_back(
        std::chrono::duration<double, std::milli>(RealClock().Monotonic() - start).count());
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  std::printf("allreduce ranks=%d bytes=%lld median_ms=%.3f\n", group->getSize(),
              static_cast<long long>(kElements * 4), milliseconds[milliseconds.size() / 2]);
}

Digest TrainFewSteps(const Group& group, int rank) {
  torch::manual_seed(7);
  torch::nn::Sequential model(torch::nn::Linear(32, 64), torch::nn::ReLU(),
                              torch::nn::Linear(64, 1));
  model->to(kGpu);
  torch::optim::SGD optimizer(model->parameters(), 0.05);
  Result<std::unique_ptr<DataParallel>> parallel = DataParallel::Open(model->parameters(), group);
  KEEL_CHECK(parallel.ok(), parallel.error().message);
  for (int step = 0; step < 10; ++step) {
    torch::manual_seed(1000 + step * 10 + rank);
    const torch::Tensor input = torch::randn({16, 32}).to(kGpu);
    optimizer.zero_grad();
    KEEL_CHECK((*parallel)->BeforeForward().ok(), "step " << step);
    const Status backward = (*parallel)->Backward(model->forward(input).square().mean());
    KEEL_CHECK(backward.ok(), backward.error().message);
    optimizer.step();
  }
  return DigestOfTensors(model->parameters());
}

// Sums until a member dies; a thread aborts the group when asked to by the board.
void HangAndAbort(NcclModule& module, TcpStore& board, const Group& group) {
  std::thread breaker([&] {
    (void)board.Wait({"break"}, std::chrono::minutes(2));
    module.Abort(*group->getBackend(c10::kCUDA));
  });
  std::printf("summing\n");
  std::fflush(stdout);
  const Status ended = CatchTorch("summing", [&] {
    const torch::Tensor tensor = torch::ones({1 << 20}, torch::TensorOptions(kGpu));
    for (;;) {
      Sum(group, tensor);
      (void)tensor[0].item<float>();
    }
  });
  breaker.join();
  std::printf("aborted: %s\n", ended.error().message.c_str());
}

Status Run(bool hang) {
  KEEL_TRY_ASSIGN(const WorkerEnvironment worker, ReadWorkerEnvironment(OwnEnvironment()));
  KEEL_TRY_ASSIGN(NcclModule* const module, OpenNcclModule());
  std::printf("found %s\n", module->Description().c_str());
  KEEL_TRY_ASSIGN(const auto store,
                  TcpStore::Connect({worker.master_address, worker.master_port}, {}));
  KEEL_TRY_ASSIGN(const Group group, MakeNcclGroup({.store = TorchStoreOf(*store),
                                                    .prefix = "nccl",
                                                    .rank = worker.rank,
                                                    .size = worker.world_size},
                                                   /*device=*/0));
  return CatchTorch("using the GPU", [&] {
    std::printf("sum %s\n", SumIsRight(group, worker.rank) ? "right" : "wrong");
    if (hang) {
      const auto board = TcpStore::Connect({worker.master_address, worker.master_port}, {});
      KEEL_CHECK(board.ok(), board.error().message);
      return HangAndAbort(*module, **board, group);
    }
    PrintSpeed(group);
    std::printf("digest %s\n", TrainFewSteps(group, worker.rank).Hex().c_str());
  });
}

}  // namespace
}  // namespace keel

int main(int argc, char** argv) {
  keel::PrepareForGroups();
  keel::RouteTorchLog();
  const keel::Status status = keel::Run(argc > 1 && std::string(argv[1]) == "hang");
  if (!status.ok()) {
    std::fprintf(stderr, "nccl_probe: %s\n", status.error().message.c_str());
    std::fflush(stdout);
    std::_Exit(1);
  }
  std::fflush(stdout);
  std::_Exit(0);  // an aborted group's threads must not meet static destructors
}
