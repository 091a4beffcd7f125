// PyTorch's parameter server, without its crash: two trainers train the two layers of one model at once, in each
// consistency mode, and a replay of the log of their steps gives the same parameters, bit for bit.
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <caftan/caftan.hpp>
#include <caftan/nn/replay.hpp>
#include <caftan/nn/shared_module.hpp>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

using Tensors = std::vector<at::Tensor>;

Tensors first_weights() {
  return {at::linspace(-0.5, 0.5, 32).view({8, 4}).requires_grad_(true), at::zeros({8}).requires_grad_(true),
          at::linspace(-0.3, 0.3, 8).view({1, 8}).requires_grad_(true), at::zeros({1}).requires_grad_(true)};
}
at::Tensor output_of(std::span<const at::Tensor> w, const at::Tensor& x) {
  return at::linear(at::linear(x, w[0], w[1]).tanh(), w[2], w[3]);
}

class Net {  // two layers; the backward pass of the second reads its weight
 public:
  at::Tensor forward(const at::Tensor& x) { return output_of(weights_, x); }
  std::vector<caftan::nn::NamedTensor> named_parameters() const {
    return {{"w1", weights_[0]}, {"b1", weights_[1]}, {"w2", weights_[2]}, {"b2", weights_[3]}};
  }

 private:
  Tensors weights_ = first_weights();
};
using SharedNet = caftan::nn::SharedModule<Net>;

at::Tensor input(std::uint64_t batch) {
  const double end = 1 + static_cast<double>(batch % 7);
  return at::linspace(-end, end, 64).view({16, 4}).sin();
}
at::Tensor target(const at::Tensor& x) { return x.sum(1, true) * 0.2; }

double train(caftan::Worker& worker, SharedNet net, std::uint32_t number) {
  net.join(number);
  double last = 0;
  for (std::uint64_t step = 0; step < 20; ++step) {
    const std::uint64_t batch = 2 * step + number;
    const caftan::autograd::Context context(worker);
    const at::Tensor x = input(batch);
    const at::Tensor loss = at::mse_loss(net.forward(x), target(x));  // reads one version
    context.backward({loss});
    net.step(context, batch);  // applied as the mode says
    last = loss.item<double>();
  }
  return last;
}

caftan::Registry functions() {
  caftan::Registry registry;
  registry.add<&train>("train");
  caftan::nn::add_module<Net>(registry, "net").constructor<>().method<&Net::forward>("forward");
  return registry;
}

SharedNet share(const caftan::Worker& ps, caftan::nn::ConsistencyMode mode, const std::string& log) {
  return SharedNet(ps, "ps",
                   {.consistency = {.mode = mode},
                    .trainers = 2,
                    .algorithm = caftan::optim::SGD{.lr = 0.05, .momentum = 0.5},
                    .step_log = log});
}

bool two_trainers_train_it(const caftan::Worker& ps, const SharedNet& net) {
  const at::Tensor x = input(3);
  const double before = at::mse_loss(net.evaluate(x), target(x)).item<double>();
  caftan::Future<double> first = ps.rpc_async<&train>("trainer0", net, 0U);
  caftan::Future<double> second = ps.rpc_async<&train>("trainer1", net, 1U);
  first.get();
  second.get();
  const caftan::nn::Evaluation<Net> now = net.evaluation();  // keeps its version for all its calls
  const double after = at::mse_loss(now.forward(x), target(x)).item<double>();
  std::printf("version %d: loss %.4f, before %.4f\n", static_cast<int>(now.version().value), after, before);
  return after < before;
}

Tensors gradients(std::span<const at::Tensor> weights, std::uint64_t batch) {
  const at::Tensor x = input(batch);
  return torch::autograd::grad({at::mse_loss(output_of(weights, x), target(x))}, {weights.begin(), weights.end()});
}

bool a_replay_gives_the_same_bits(const SharedNet& net, const std::string& log) {
  const Tensors weights = first_weights();
  auto optimizer =
      caftan::optim::LocalOptimizer::make({{weights, caftan::optim::SGD{.lr = 0.05, .momentum = 0.5}}}).value();
  const caftan::nn::StepLog steps = caftan::nn::read_step_log(log).value();
  caftan::nn::replay(steps, optimizer, [](const caftan::nn::Contribution& of, std::span<const at::Tensor> read) {
    return caftan::Result<Tensors>(gradients(read, of.batch));
  }).value();
  const caftan::nn::StateDict state = net.state_dict();
  bool same = true;
  for (std::size_t i = 0; i < weights.size(); ++i) same = same && at::equal(state[i].tensor, weights[i]);
  return same;
}

std::unique_ptr<caftan::Worker> launch(const std::string& name, const std::string& first) {
  caftan::WorkerOptions options;
  options.name = name;
  options.world = {{"ps", first}, {"trainer0", ""}, {"trainer1", ""}};
  return caftan::Worker::launch(std::move(options), functions()).value();
}

int main() {
  const auto ps = launch("ps", "tcp:127.0.0.1:0");
  const auto trainer0 = launch("trainer0", ps->address());
  const auto trainer1 = launch("trainer1", ps->address());
  for (caftan::Worker* worker : {ps.get(), trainer0.get(), trainer1.get()}) worker->wait_until_ready().value();
  bool right = true;
  using Mode = caftan::nn::ConsistencyMode;
  for (const Mode mode : {Mode::locked, Mode::versioned, Mode::sync}) {
    const std::string log = std::string(to_string(mode)) + ".steps";
    std::filesystem::remove(log);
    const SharedNet net = share(*ps, mode, log);
    right = two_trainers_train_it(*ps, net) && a_replay_gives_the_same_bits(net, log) && right;
  }
  return right ? 0 : 1;
}
