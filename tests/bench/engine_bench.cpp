/// The engine of backward passes against torch's own on local graphs, and what recording one message costs. Both sides
/// take turns on the same graph, which is kept; a line has the medians and their ratio. Times are CPU time of the
/// thread, which does all the work on both sides, so other load on the machine counts only through its caches.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/relu.h>
#include <malloc.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <limits>
#include <vector>

#include "caftan/autograd/internal/engine.hpp"

namespace {

using namespace caftan;
using namespace caftan::autograd;

class NoPeers final : public GradientSink {
 public:
  void on_gradients(const RecordedMessage&, std::vector<at::Tensor>&&) override {}
};

/// Runs a pass of Caftan's engine from `root` into a GradientBook, as a worker does.
void run_engine(const at::Tensor& root) {
  NoPeers none;
  Result<std::unique_ptr<Engine>> engine = Engine::begin({.context = {}, .keep_graph = true});
  const at::Tensor roots[] = {root};
  (*engine)->add_roots(roots).value();
  (*engine)->walk(std::numeric_limits<std::size_t>::max());
  (*engine)->run(std::numeric_limits<std::size_t>::max(), none).value();
  const GradientBook book = (*engine)->take_staged();
}

/// A pass of torch's engine into fresh `.grad`s. These are dropped at the end, as the book of the other side is: memory
/// that one side kept the other side would have to get from the system.
void run_stock(const at::Tensor& root, const std::vector<at::Tensor>& leaves) {
  torch::autograd::backward({root}, {}, /*retain_graph=*/true);
  for (const at::Tensor& leaf : leaves) leaf.mutable_grad().reset();
}

double now_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}

double microseconds(const std::function<void()>& run) {
  const double start = now_us();
  run();
  return now_us() - start;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void compare(const char* name, const at::Tensor& root, const std::vector<at::Tensor>& leaves, std::size_t nodes,
             int rounds) {
  std::vector<double> stock;
  std::vector<double> ours;
  for (int i = 0; i < rounds; ++i) {
    stock.push_back(microseconds([&] { run_stock(root, leaves); }));
    ours.push_back(microseconds([&] { run_engine(root); }));
  }
  const double by_stock = median(stock);
  const double by_us = median(ours);
  std::printf("%-34s %8zu nodes   torch %10.1f us %7.0f ns/node   caftan %10.1f us %7.0f ns/node   ratio %.2f\n", name,
              nodes, by_stock, 1000 * by_stock / nodes, by_us, 1000 * by_us / nodes, by_us / by_stock);
}

void deep_chain() {
  const at::Tensor x = at::ones({16}).set_requires_grad(true);
  at::Tensor y = x;
  const std::size_t length = 10'000;
  for (std::size_t i = 0; i < length; ++i) y = y + 1;
  compare("deep chain (10,000 additions)", y.sum(), {x}, length + 2, 51);
}

void wide_fan_in() {
  const at::Tensor x = at::ones({16}).set_requires_grad(true);
  const std::size_t width = 10'000;
  at::Tensor sum = at::ones({16});
  for (std::size_t i = 0; i < width; ++i) sum = sum + x * 2;
  compare("wide fan-in (10,000 uses of a leaf)", sum.sum(), {x}, 2 * width + 2, 31);
}

void mlp() {
  std::vector<at::Tensor> leaves;
  at::Tensor y = at::rand({256, 256});
  const std::size_t layers = 20;
  for (std::size_t i = 0; i < layers; ++i) {
    leaves.push_back((at::rand({256, 256}) / 16).set_requires_grad(true));
    leaves.push_back(at::rand({256}).set_requires_grad(true));
    y = at::relu(at::linear(y, leaves[2 * i], leaves[2 * i + 1]));
  }
  compare("MLP (20 layers, 256 x 256)", y.sum(), leaves, 5 * layers + 1, 31);
}

std::size_t used_bytes() { return mallinfo2().uordblks; }

/// The time and memory that a call with one recorded tensor in each direction adds at one worker: a SendFunction and a
/// RecvFunction. The graph's own nodes, the tensors and the registration do not count.
void recording() {
  const std::size_t count = 20'000;
  const at::Tensor x = at::ones({16}).set_requires_grad(true);
  const at::Tensor y = x * 2;
  std::vector<std::shared_ptr<SendFunction>> sent(count);
  std::vector<std::shared_ptr<RecvFunction>> received(count);
  std::vector<at::Tensor> arrived;
  for (std::size_t i = 0; i < count; ++i) {
    arrived.push_back(at::ones({16}));
    // Makes the tensor's autograd metadata, which any tensor that requires grad has already.
    arrived.back().set_requires_grad(true).set_requires_grad(false);
  }
  const std::vector<at::Tensor> tensors = {y};
  const std::vector<std::uint8_t> bits = {1};
  std::vector<std::uint8_t> recorded;
  const std::size_t before = used_bytes();
  const double sending = microseconds([&] {
    for (std::size_t i = 0; i < count; ++i) sent[i] = record_sent({}, tensors, recorded);
  });
  const std::size_t between = used_bytes();
  const double receiving = microseconds([&] {
    for (std::size_t i = 0; i < count; ++i) {
      received[i] = *record_received({}, std::span<at::Tensor>(&arrived[i], 1), bits);
    }
  });
  const std::size_t after = used_bytes();
  const auto each = [](double total) { return total / static_cast<double>(count); };
  std::printf("recording, one tensor: send %.0f ns %.0f B   receive %.0f ns %.0f B (libtorch's node alone %zu B)\n",
              1000 * each(sending), each(static_cast<double>(between - before)), 1000 * each(receiving),
              each(static_cast<double>(after - between)), sizeof(torch::autograd::Node));
}

}  // namespace

int main() {
  at::set_num_threads(1);
  deep_chain();
  wide_fan_in();
  mlp();
  recording();
}
