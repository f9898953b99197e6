// One rank of the GPU tests: forms an NCCL group on GPU 0 with the others (each rank has an
// NCCL_HOSTID of its own, so that they may share the GPU), sums, trains a few steps, and prints
// what it found. With "hang" as its argument it sums for ever, until the test kills a member, and
// then aborts; with "times" it connects and aborts a few times, and prints how long that takes.
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
#include "trainer/exchange/exchange.h"
#include "trainer/exchange/gpu_queue.h"
#include "trainer/group/epoch_group.h"
#include "trainer/nccl_module.h"
#include "trainer/numerics/tensor_digest.h"

namespace keel {
namespace {

const torch::Device kGpu(torch::kCUDA, 0);

// What the current stream has been given before is summed, and there when it returns.
Status Sum(EpochGroup& group, GpuQueue& queue, const torch::Tensor& tensor) {
  queue.FollowCurrentStream();
  KEEL_TRY(group.SumOnGpu(tensor, queue.stream()));
  const std::function<bool()> is_done = queue.Mark();
  while (!is_done()) {
    KEEL_TRY(group.LookAtGpu());
    std::this_thread::yield();
  }
  return group.LookAtGpu();
}

// The sum of 1 .. size, in every element, on every rank.
Result<bool> SumIsRight(EpochGroup& group, GpuQueue& queue) {
  const torch::Tensor tensor = torch::full({1 << 20}, group.rank() + 1.0f,
                                           torch::TensorOptions(kGpu));
  KEEL_TRY(Sum(group, queue, tensor));
  const float wanted = static_cast<float>(group.size() * (group.size() + 1)) / 2;
  return (tensor.cpu() == wanted).all().item<bool>();
}

Status PrintSpeed(EpochGroup& group, GpuQueue& queue) {
  constexpr int64_t kElements = 16 << 20;
  std::vector<double> milliseconds;
  const torch::Tensor tensor = torch::ones({kElements}, torch::TensorOptions(kGpu));
  for (int round = 0; round < 20; ++round) {
    const TimePoint start = RealClock().Monotonic();
    KEEL_TRY(Sum(group, queue, tensor));
    milliseconds.push_back(
        std::chrono::duration<double, std::milli>(RealClock().Monotonic() - start).count());
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  std::printf("sum ranks=%d bytes=%lld median_ms=%.3f\n", group.size(),
              static_cast<long long>(kElements * 4), milliseconds[milliseconds.size() / 2]);
  return Ok();
}

Result<Digest> TrainFewSteps(EpochGroup& group) {
  torch::manual_seed(7);
  torch::nn::Sequential model(torch::nn::Linear(32, 64), torch::nn::ReLU(),
                              torch::nn::Linear(64, 1));
  model->to(kGpu);
  torch::optim::SGD optimizer(model->parameters(), 0.05);
  auto gradients = std::make_shared<GradientBuckets>(model->parameters(), BucketLimits{});
  KEEL_TRY_ASSIGN(const auto exchange,
                  Exchange::Open(std::move(gradients), group, {.lanes = group.size()}));
  for (int step = 0; step < 10; ++step) {
    torch::manual_seed(1000 + step * 10 + group.rank());
    const torch::Tensor input = torch::randn({16, 32}).to(kGpu);
    KEEL_TRY(exchange->Backward(model->forward(input).square().mean()));
    KEEL_TRY(exchange->Finish());
    optimizer.step();
  }
  return DigestOfTensors(model->parameters());
}

// Sums until a member dies; a thread aborts the group when asked to by the board.
void HangAndAbort(TcpStore& board, EpochGroup& group, GpuQueue& queue) {
  std::thread breaker([&] {
    (void)board.Wait({"break"}, std::chrono::minutes(2));
    group.Abort("the board says so");
  });
  std::printf("summing\n");
  std::fflush(stdout);
  const torch::Tensor tensor = torch::ones({1 << 20}, torch::TensorOptions(kGpu));
  Status ended;
  while (ended.ok()) ended = Sum(group, queue, tensor);
  breaker.join();
  std::printf("aborted: %s\n", ended.error().message.c_str());
}

// How long it takes to connect, and to be rid of that again, as after a break.
Status PrintTimes(EpochGroup::Spec spec) {
  std::vector<double> built, ended;
  const auto milliseconds = [](TimePoint begun) {
    return std::chrono::duration<double, std::milli>(RealClock().Monotonic() - begun).count();
  };
  for (int round = 0; round < 6; ++round) {
    spec.prefix = "times/" + std::to_string(round);
    const TimePoint begun = RealClock().Monotonic();
    KEEL_TRY_ASSIGN(auto group, EpochGroup::Build(spec, CancelToken::Never()));
    built.push_back(milliseconds(begun));
    RealClock().SleepFor(std::chrono::milliseconds(100));   // until the others have it, too
    const TimePoint broken = RealClock().Monotonic();
    group->Abort("for its time");
    group.reset();
    if (!EpochGroup::AwaitTeardown(std::chrono::seconds(20))) {
      return Error{Code::kTimeout, "a group has not ended within 20 s"};
    }
    ended.push_back(milliseconds(broken));
  }
  for (std::vector<double>* const times : {&built, &ended}) {
    const double first = times->front();   // it loads what NCCL loads once
    std::sort(times->begin(), times->end());
    std::printf("%s ranks=%d first_ms=%.1f median_ms=%.1f\n", times == &built ? "build" : "abort",
                spec.size, first, (*times)[times->size() / 2]);
  }
  return Ok();
}

Status Run(const std::string& what) {
  KEEL_TRY_ASSIGN(const WorkerEnvironment worker, ReadWorkerEnvironment(OwnEnvironment()));
  KEEL_TRY_ASSIGN(NcclModule* const module, OpenNcclModule());
  std::printf("found %s\n", module->Description().c_str());
  KEEL_TRY_ASSIGN(const auto store,
                  TcpStore::Connect({worker.master_address, worker.master_port}, {}));
  EpochGroup::Spec spec;
  spec.store = TorchStoreOf(*store);
  spec.prefix = "nccl";
  spec.rank = worker.rank;
  spec.size = worker.world_size;
  spec.gpu = 0;
  if (what == "times") return PrintTimes(spec);
  KEEL_TRY_ASSIGN(const auto group, EpochGroup::Build(spec, CancelToken::Never()));
  const Result<Status> used = CatchTorch("using the GPU", [&]() -> Status {
    const std::unique_ptr<GpuQueue> queue = OpenGpuQueue(kGpu);
    KEEL_TRY_ASSIGN(const bool right, SumIsRight(*group, *queue));
    std::printf("sum %s\n", right ? "right" : "wrong");
    if (what == "hang") {
      KEEL_TRY_ASSIGN(const auto board,
                      TcpStore::Connect({worker.master_address, worker.master_port}, {}));
      HangAndAbort(*board, *group, *queue);
      return Ok();
    }
    KEEL_TRY(PrintSpeed(*group, *queue));
    KEEL_TRY_ASSIGN(const Digest digest, TrainFewSteps(*group));
    std::printf("digest %s\n", digest.Hex().c_str());
    return Ok();
  });
  return used.ok() ? *used : Status(used.error());
}

}  // namespace
}  // namespace keel

int main(int argc, char** argv) {
  keel::PrepareForGroups();
  keel::RouteTorchLog();
  const keel::Status status = keel::Run(argc > 1 ? argv[1] : "");
  if (!status.ok()) {
    std::fprintf(stderr, "nccl_probe: %s\n", status.error().message.c_str());
    std::fflush(stdout);
    std::_Exit(1);
  }
  std::fflush(stdout);
  std::_Exit(0);  // an aborted group's threads must not meet static destructors
}
