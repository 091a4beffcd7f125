// The local program: both parts in one process.
#include <ATen/ops/mse_loss.h>
#include <torch/csrc/autograd/autograd.h>

#include <caftan/optim/local_optimizer.hpp>
#include <cstdio>

#include "model.hpp"

int main() {
  const Encoder encoder;
  const Head head;
  std::vector<at::Tensor> parameters = encoder.parameters();
  for (const at::Tensor& parameter : head.parameters()) parameters.push_back(parameter);
  auto optimizer = caftan::optim::LocalOptimizer::make({{parameters, caftan::optim::Adam{.lr = 0.02}}}).value();

  for (int step = 1; step <= 100; ++step) {
    const at::Tensor code = encoder.forward(inputs());
    const at::Tensor loss = at::mse_loss(head.forward(code), targets());
    static_cast<void>(optimizer.step(torch::autograd::grad({loss}, parameters)).value());
    if (step % 25 == 0) std::printf("step %d loss %a\n", step, loss.item<double>());
  }
}
