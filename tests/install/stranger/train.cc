// A stranger's training program, built against the installed library alone: one worker, one board,
// one group, and a model that learns y = 2x.
#include <torch/torch.h>

#include <iostream>

#include "store/tcp_store.h"
#include "store/torch_store.h"
#include "trainer/data_parallel.h"
#include "trainer/nccl_module.h"
#include "trainer/process_group.h"

namespace {

keel::Result<double> Train() {
  KEEL_TRY_ASSIGN(const auto host, keel::TcpStoreHost::Open({"127.0.0.1", 0}));
  KEEL_TRY_ASSIGN(const auto store, keel::TcpStore::Connect({"127.0.0.1", host->port()}, {}));
  KEEL_TRY_ASSIGN(const keel::Group group,
                  keel::MakeGlooGroup({.store = keel::TorchStoreOf(*store), .prefix = "train"}));
  torch::manual_seed(1);
  torch::nn::Linear model(1, 1);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  KEEL_TRY_ASSIGN(const auto parallel, keel::DataParallel::Open(model->parameters(), group));
  const torch::Tensor x = torch::linspace(-1, 1, 32).reshape({32, 1});
  double loss = 0;
  for (int step = 0; step < 200; ++step) {
    optimizer.zero_grad();
    KEEL_TRY(parallel->BeforeForward());
    const torch::Tensor error = torch::mse_loss(model(x), 2 * x);
    KEEL_TRY(parallel->Backward(error));
    optimizer.step();
    loss = error.item<double>();
  }
  return loss;
}

}  // namespace

int main() {
  const keel::Result<keel::NcclModule*> nccl = keel::OpenNcclModule();
  std::cout << (nccl.ok() ? (*nccl)->Description() : nccl.error().message) << "\n";
  const keel::Result<double> loss = Train();
  if (!loss.ok()) {
    std::cerr << loss.error().message << "\n";
    return 1;
  }
  std::cout << "trained, loss below 0.001: " << (*loss < 0.001 ? "yes" : "no") << "\n";
}
