// A parameter server of roles: the server makes the shared module, trainers get its handle and train it. The file says
// how many there are, and the consistency mode.
#include <ATen/ops/linear.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/zeros.h>

#include <caftan/caftan.hpp>
#include <caftan/nn/shared_module.hpp>
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

class Net {  // plain torch code; a subclass of torch::nn::Module (<torch/nn.h>) does as well
 public:
  explicit Net(int hidden)
      : w1_(at::linspace(-0.5, 0.5, 4L * hidden).view({hidden, 4}).requires_grad_(true)),
        b1_(at::zeros({hidden}).requires_grad_(true)),
        w2_(at::linspace(-0.3, 0.3, hidden).view({1, hidden}).requires_grad_(true)) {}

  at::Tensor forward(const at::Tensor& x) { return at::linear(at::linear(x, w1_, b1_).tanh(), w2_); }
  std::vector<caftan::nn::NamedTensor> named_parameters() const { return {{"w1", w1_}, {"b1", b1_}, {"w2", w2_}}; }

 private:
  at::Tensor w1_;
  at::Tensor b1_;
  at::Tensor w2_;
};
using SharedNet = caftan::nn::SharedModule<Net>;

at::Tensor input(std::uint64_t batch) {
  const double end = 1 + static_cast<double>(batch % 7);
  return at::linspace(-end, end, 64).view({16, 4}).sin();
}
at::Tensor target(const at::Tensor& x) { return x.sum(1, true) * 0.2; }

class Server {  // owns the module and its optimizer
 public:
  struct Config {
    std::uint32_t trainers = 2;
    int hidden = 8;
    double lr = 0.05;
    caftan::nn::ConsistencyOptions consistency;
  };
  static void settings(auto& s, Config& c) {
    s("trainers", c.trainers, "how many trainers there are").at_least(1);
    s("hidden", c.hidden, "units of the hidden layer").at_least(1);
    s("lr", c.lr, "learning rate").greater_than(0.0);
    s("consistency", c.consistency, "what a trainer sees of the others' steps");
  }
  static std::vector<caftan::app::MissingRequirement> requirements(const Config& c) {
    const auto fits = caftan::nn::check_consistency(c.consistency, c.trainers);  // found by `check`
    if (fits) return {};
    return {{.keys = {"consistency.mode", "consistency"},
             .text = fits.error().text(),
             .kind = caftan::app::MissingRequirement::Kind::file}};
  }

  Server(caftan::RoleContext& context, Config config)
      : net_(context, context.name(),
             {.consistency = config.consistency,
              .trainers = config.trainers,
              .algorithm = caftan::optim::SGD{.lr = config.lr, .momentum = 0.5},
              .step_log = (context.output_directory() / "steps.log").string()},
             config.hidden) {}

  SharedNet net() { return net_; }

 private:
  SharedNet net_;
};

class Trainer {
 public:
  struct Config {
    int steps = 20;
  };
  static void settings(auto& s, Config& c) { s("steps", c.steps, "of each trainer").at_least(1); }

  Trainer(caftan::RoleContext& context, Config config)
      : context_(context), config_(config), server_(context.use<Server>("server")) {}

  caftan::Result<void> run(std::stop_token stop) {
    SharedNet net = server_.rpc_sync<&Server::net>();
    const auto number = static_cast<std::uint32_t>(context_.replica());
    const auto trainers = static_cast<std::uint64_t>(context_.replicas());
    net.join(number);
    for (int step = 0; step < config_.steps && !stop.stop_requested(); ++step) {
      const std::uint64_t batch = static_cast<std::uint64_t>(step) * trainers + number;
      const caftan::autograd::Context context(context_);
      const at::Tensor x = input(batch);
      const at::Tensor loss = at::mse_loss(net.forward(x), target(x));
      context.backward({loss});
      net.step(context, batch);
      context_.metric("loss", loss.item<double>(), {.step = step});
      context_.progress(step + 1, config_.steps);
    }
    net.leave();  // no round waits for this trainer any more
    const at::Tensor x = input(3);
    context_.report("loss " + std::to_string(at::mse_loss(net.evaluate(x), target(x)).item<double>()));
    return {};
  }

 private:
  caftan::RoleContext& context_;
  Config config_;
  caftan::RRef<Server> server_;
};

int main(int argc, char** argv) {
  caftan::Program program("trainers");
  program.provide([](caftan::Registry& registry) {  // on each worker: the server makes the module, trainers call it
    caftan::nn::add_module<Net>(registry, "net").constructor<int>().method<&Net::forward>("forward");
  });
  program.role<Server>("server").method<&Server::net>("net");
  program.role<Trainer>("trainer").uses<Server>("server");
  return program.main(argc, argv);
}
