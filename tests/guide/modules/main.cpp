// Modules that live at other workers: calls, training, modes, states, and functions before a method.
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/zeros.h>

#include <caftan/caftan.hpp>
#include <caftan/nn/remote_module.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

class Layer {  // plain torch code; a subclass of torch::nn::Module does as well
 public:
  Layer(int in, int out)
      : weight_(at::linspace(-0.5, 0.5, in * out).view({out, in}).requires_grad_(true)),
        bias_(at::zeros({out}).requires_grad_(true)) {}

  at::Tensor forward(const at::Tensor& x) {
    if (training_) examples_.add_(x.size(0));
    return at::linear(x, weight_, bias_).tanh();
  }
  at::Tensor forward_of(const caftan::RRef<at::Tensor>& x) { return forward(x.to_here()); }

  // What a plain class says of itself; torch::nn::Module has the three already.
  std::vector<caftan::nn::NamedTensor> named_parameters() const { return {{"weight", weight_}, {"bias", bias_}}; }
  std::vector<caftan::nn::NamedTensor> named_buffers() const { return {{"examples", examples_}}; }
  void train(bool on) { training_ = on; }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
  at::Tensor examples_ = at::zeros({1});
  bool training_ = true;
};

void limit(Layer&, at::Tensor& x) { x = x.clamp(-1, 1); }

caftan::Registry functions() {
  caftan::Registry registry;
  caftan::nn::add_module<Layer>(registry, "layer")
      .constructor<int, int>()
      .method<&Layer::forward>("forward")
      .method<&Layer::forward_of>("forward_of")
      .before<&Layer::forward, &limit>("limit");
  return registry;
}

using RemoteLayer = caftan::nn::RemoteModule<Layer>;

at::Tensor inputs() { return at::linspace(-1, 1, 256).view({64, 4}); }
at::Tensor targets() { return inputs().sum(1, true) * 0.1; }

bool a_module_lives_elsewhere(const caftan::Worker& a) {
  const RemoteLayer layer(a, "b", 4, 8);  // made at b
  const at::Tensor y = layer.forward(inputs());
  caftan::Future<at::Tensor> later = layer.forward_async(inputs());
  return y.size(1) == 8 && at::equal(later.get(), y);
}

bool it_is_trained_where_it_lives(const caftan::Worker& a) {
  const RemoteLayer encoder(a, "b", 4, 8);
  const RemoteLayer head(a, "c", 8, 1);
  std::vector<caftan::RRef<at::Tensor>> parameters = encoder.parameters();  // the values stay at b
  for (const caftan::RRef<at::Tensor>& parameter : head.parameters()) parameters.push_back(parameter);
  caftan::optim::DistributedOptimizer optimizer(a, parameters, caftan::optim::Adam{.lr = 0.02});
  std::vector<double> losses;
  for (int step = 0; step < 20; ++step) {
    const caftan::autograd::Context context(a);
    const at::Tensor loss = at::mse_loss(head.forward(encoder.forward(inputs())), targets());
    context.backward({loss});
    optimizer.step(context);
    losses.push_back(loss.item<double>());
  }
  return losses.back() < losses.front();
}

bool results_stay_until_they_are_asked_for(const caftan::Worker& a) {
  const RemoteLayer encoder(a, "b", 4, 8);
  const RemoteLayer head(a, "c", 8, 1);
  const caftan::RRef<at::Tensor> code = encoder.forward_remote(inputs());    // stays at b
  const caftan::RRef<at::Tensor> y = head.remote<&Layer::forward_of>(code);  // c fetches the value from b itself
  return y.to_here().size(1) == 1;
}

bool a_mode_belongs_to_a_handle(const caftan::Worker& a) {
  const RemoteLayer training(a, "b", 4, 8);
  RemoteLayer evaluation = training;  // the same module
  evaluation.eval();
  training.forward(inputs());
  evaluation.forward(inputs());
  return training.buffers().front().to_here().item<double>() == 64;
}

bool a_state_is_loaded_whole_or_not_at_all(const caftan::Worker& a) {
  const RemoteLayer from(a, "b", 4, 8);
  const RemoteLayer to(a, "c", 4, 8);
  from.forward(inputs());
  to.load_state_dict(from.state_dict());
  const bool same = to.buffers().front().to_here().item<double>() == 64;
  const RemoteLayer small(a, "c", 4, 1);
  const caftan::Result<void> refused = small.try_load_state_dict(from.state_dict());
  if (!refused) std::printf("%s\n", refused.error().message().c_str());
  return same && !refused;
}

bool a_function_runs_before_a_method(const caftan::Worker& a) {
  const RemoteLayer layer(a, "b", 4, 8);
  layer.add_before<&Layer::forward, &limit>();
  return at::equal(layer.forward(inputs().sign() * 100), layer.forward(inputs().sign()));
}

std::unique_ptr<caftan::Worker> launch(const std::string& name, const std::string& first) {
  caftan::WorkerOptions options;
  options.name = name;
  options.world = {{"a", first}, {"b", ""}, {"c", ""}};
  return caftan::Worker::launch(std::move(options), functions()).value();
}

int main() {
  const auto a = launch("a", "tcp:127.0.0.1:0");
  const auto b = launch("b", a->address());
  const auto c = launch("c", a->address());
  for (caftan::Worker* worker : {a.get(), b.get(), c.get()}) worker->wait_until_ready().value();
  const bool right = a_module_lives_elsewhere(*a) && it_is_trained_where_it_lives(*a) &&
                     results_stay_until_they_are_asked_for(*a) && a_mode_belongs_to_a_handle(*a) &&
                     a_state_is_loaded_whole_or_not_at_all(*a) && a_function_runs_before_a_method(*a);
  return right ? 0 : 1;
}
