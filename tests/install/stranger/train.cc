// A stranger's training program: gets LibTorch through Evenkeel::trainer alone, and learns y = 2x.
#include <torch/torch.h>

#include <iostream>

int main() {
  torch::manual_seed(1);
  torch::nn::Linear model(1, 1);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  const torch::Tensor x = torch::linspace(-1, 1, 32).reshape({32, 1});
  double loss = 0;
  for (int step = 0; step < 200; ++step) {
    optimizer.zero_grad();
    const torch::Tensor error = torch::mse_loss(model(x), 2 * x);
    error.backward();
    optimizer.step();
    loss = error.item<double>();
  }
  std::cout << "trained, loss below 0.001: " << (loss < 0.001 ? "yes" : "no") << "\n";
}
