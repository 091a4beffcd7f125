#include "shared_roles.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <torch/csrc/autograd/autograd.h>

#include <map>
#include <stdexcept>

#include "caftan/nn/fill_uniform.hpp"
#include "caftan/optim/custom_algorithm.hpp"

namespace caftan::test {
namespace {

at::Tensor drawn_values(at::IntArrayRef sizes, std::uint64_t seed, std::uint64_t call) {
  at::Tensor values = at::ones(sizes);
  nn::fill_uniform(values, {.seed = seed, .call = call}, -1, 1);
  return values;
}

at::Tensor output_of(std::span<const at::Tensor> p, const at::Tensor& x) {
  return (x.matmul(p[0].t()) + p[1]).tanh().matmul(p[2].t()) + p[3];
}

/// What `give` returns to a worker that asks for it.
nn::SharedModule<Layers> given;
nn::SharedModule<Layers> give() { return given; }

bool stumbles = false;
class Stumbling final : public optim::CustomAlgorithm {
 public:
  Result<void> check(const optim::Custom&) const override { return {}; }
  void step(const optim::Custom& options, const optim::CustomStep& step) const override {
    if (stumbles && step.parameter.dim() == 1) throw std::runtime_error("the floor was wet");
    step.parameter.sub_(step.gradient, options.lr);
  }
};

std::vector<Promise<bool>> waiting_to_draw;
bool drawing_waits = false;

std::vector<Promise<bool>> waiting_at_gate;
Future<bool> wait_at_shared_gate() {
  Promise<bool> promise;
  Future<bool> opened = promise.future();
  waiting_at_gate.push_back(std::move(promise));
  return opened;
}

}  // namespace

Tensors make_weights(int seed) {
  const auto draw = [seed](at::IntArrayRef sizes, std::uint64_t call) {
    return drawn_values(sizes, static_cast<std::uint64_t>(seed), call).requires_grad_();
  };
  return {draw({6, 3}, 0), draw({6}, 1), draw({2, 6}, 2), draw({2}, 3)};
}

Layers::Layers(int seed) : weights_(make_weights(seed)) {
  if (seed < 0) throw std::invalid_argument("no seed is negative");
}

std::vector<nn::NamedTensor> Layers::named_parameters() const {
  return {{"first.weight", weights_[0]},
          {"first.bias", weights_[1]},
          {"second.weight", weights_[2]},
          {"second.bias", weights_[3]}};
}

at::Tensor Layers::forward(const at::Tensor& x) {
  if (training_) {
    examples_.add_(x.size(0));
    calls_.add_(1);
  }
  return output_of(weights_, x);
}

at::Tensor Layers::forward_at_gate(Worker& worker, const at::Tensor& x) {
  worker.rpc_sync<&wait_at_shared_gate>("maker");
  return forward(x);
}

at::Tensor Layers::forward_growing(const at::Tensor& x) {
  examples_.resize_({examples_.numel() + 1});
  return output_of(weights_, x);
}

Drawing::Drawing(int /*number*/) : weight_(at::rand({2}).requires_grad_()) {
  if (!drawing_waits) return;
  Promise<bool> promise;
  Future<bool> opened = promise.future();
  waiting_to_draw.push_back(std::move(promise));
  opened.get();
}
void set_stumbling(bool on) { stumbles = on; }

void close_drawing_gate() { drawing_waits = true; }
bool let_one_draw() {
  if (waiting_to_draw.empty()) return false;
  Promise<bool> first = std::move(waiting_to_draw.front());
  waiting_to_draw.erase(waiting_to_draw.begin());
  return first.set(true);
}

at::Tensor Layers::look_up(const at::Tensor& rows) const {
  return at::embedding(weights_[0], rows, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false, /*sparse=*/true);
}

at::Tensor input_of(std::uint64_t batch) { return drawn_values({8, 3}, 11, 2 * batch); }
at::Tensor target_of(std::uint64_t batch) { return drawn_values({8, 2}, 11, 2 * batch + 1); }

Tensors gradients_at(std::span<const at::Tensor> parameters, std::uint64_t batch) {
  return torch::autograd::grad({at::mse_loss(output_of(parameters, input_of(batch)), target_of(batch))},
                               {parameters.begin(), parameters.end()});
}

Tensors replayed(const std::string& path, int seed, const optim::Algorithm& algorithm) {
  const Tensors weights = make_weights(seed);
  auto optimizer = optim::LocalOptimizer::make({{weights, algorithm}}).value();
  const nn::StepLog log = nn::read_step_log(path).value();
  nn::replay(log, optimizer, [](const nn::Contribution& contribution, std::span<const at::Tensor> parameters) {
    return Result<Tensors>(gradients_at(parameters, contribution.batch));
  }).value();
  return weights;
}

Tensors parameters_of(const nn::StateDict& state) {
  Tensors parameters;
  for (std::size_t i = 0; i < 4; ++i) parameters.push_back(state[i].tensor);
  return parameters;
}

bool same(const Tensors& one, const Tensors& other) {
  bool equal = one.size() == other.size();
  for (std::size_t i = 0; equal && i < one.size(); ++i) equal = one[i].detach().equal(other[i].detach());
  return equal;
}

Trained train(Worker& worker, nn::SharedModule<Layers> net, std::uint32_t number, std::uint64_t steps) {
  net.join(number);
  Trained trained;
  for (std::uint64_t batch = 100 * number; trained.applied < steps; ++batch) {
    const autograd::Context context(worker);
    const Result<at::Tensor> y = net.try_rpc_sync<&Layers::forward>(input_of(batch));
    if (!y) {
      if (y.error().code() != Errc::lease_conflict) throw RpcException(y.error());
      ++trained.conflicts;
      continue;
    }
    context.backward({at::mse_loss(*y, target_of(batch))});
    const Result<nn::StepResult> done = net.try_step(context, batch);
    if (done) {
      ++trained.applied;
    } else if (done.error().code() == Errc::stale_gradient) {
      ++trained.stale;
    } else if (done.error().code() == Errc::round_closed) {
      ++trained.late;
    } else {
      throw RpcException(done.error());
    }
  }
  return trained;
}

Registry make_shared_registry() {
  Registry registry;
  registry.add<&train>("train");
  registry.add<&give>("give");
  registry.add<&wait_at_shared_gate>("wait_at_gate");
  optim::add_algorithm(registry, "stumbling", std::make_shared<Stumbling>());
  nn::add_module<Layers>(registry, "layers")
      .constructor<int>()
      .method<&Layers::forward>("forward")
      .method<&Layers::forward_at_gate>("forward_at_gate")
      .method<&Layers::forward_growing>("forward_growing")
      .method<&Layers::look_up>("look_up")
      .method<&Layers::is_in_train_mode>("is_in_train_mode");
  nn::add_module<Keeping>(registry, "keeping").constructor<at::Tensor>().method<&Keeping::forward>("forward");
  nn::add_module<Drawing>(registry, "drawing").constructor<int>().method<&Drawing::forward>("forward");
  return registry;
}

void open_gate() {
  for (Promise<bool>& promise : std::exchange(waiting_at_gate, {})) promise.set(true);
}

SharedCluster::SharedCluster(std::uint64_t seed)
    : cluster_(seed, {"maker", "ps", "t0", "t1", "t2", "t3"}, make_shared_registry) {}

SharedCluster::~SharedCluster() {
  given = {};
  waiting_at_gate.clear();
  waiting_to_draw.clear();
  drawing_waits = false;
  stumbles = false;
}

nn::SharedModule<Layers> SharedCluster::make(const nn::ConsistencyOptions& consistency, std::uint32_t trainers) {
  nn::SharedModule<Layers> net(
      cluster_["maker"], "ps",
      {.consistency = consistency, .trainers = trainers, .algorithm = algorithm_, .step_log = log_path()}, kSeed);
  net.created().get();
  return net;
}

nn::SharedModule<Layers> SharedCluster::handle_at(const std::string& worker, const nn::SharedModule<Layers>& net) {
  given = net;
  nn::SharedModule<Layers> handle = cluster_[worker].rpc_sync<&give>("maker");
  given = {};
  return handle;
}

std::unique_ptr<ByHandTrainer> SharedCluster::trainer(std::uint32_t number, const nn::SharedModule<Layers>& net) {
  const std::string name = "t" + std::to_string(number);
  nn::SharedModule<Layers> handle = handle_at(name, net);
  handle.join(number);
  return std::make_unique<ByHandTrainer>(cluster_[name], std::move(handle));
}

void SharedCluster::expect_replay(const nn::SharedModule<Layers>& net) {
  EXPECT_TRUE(same(parameters_of(net.state_dict()), replayed(log_path(), kSeed, algorithm_)))
      << "the replay has other parameters";
}

}  // namespace caftan::test
