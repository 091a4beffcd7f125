// A parameter server: one role owns the model, another one trains it. Its file is training.toml.
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/mse_loss.h>

#include <caftan/caftan.hpp>
#include <caftan/nn/fill_uniform.hpp>
#include <cstdint>
#include <memory>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

class Server {  // owns the model; its methods run one at a time
 public:
  struct Config {
    int hidden = 16;
  };
  static void settings(auto& s, Config& c) { s("hidden", c.hidden, "size of the hidden layer").range(1, 4096); }

  Server(caftan::RoleContext& context, Config config)
      : context_(context),
        weights_{{draw({config.hidden, 1}), draw({config.hidden})}, {draw({1, config.hidden}), draw({1})}} {}

  at::Tensor forward(at::Tensor x) {
    const at::Tensor hidden = at::linear(x, weights_[0].first, weights_[0].second).tanh();
    return at::linear(hidden, weights_[1].first, weights_[1].second);
  }

  std::vector<caftan::RRef<at::Tensor>> parameters() {
    std::vector<caftan::RRef<at::Tensor>> references;
    for (const auto& [weight, bias] : weights_) {
      references.push_back(context_.make_rref(weight));
      references.push_back(context_.make_rref(bias));
    }
    return references;
  }

 private:
  at::Tensor draw(const std::vector<std::int64_t>& shape) {  // the same numbers in every placement
    at::Tensor parameter = at::empty(shape);
    caftan::nn::fill_uniform(parameter, {.seed = context_.seed("parameters"), .call = drawn_++}, -1, 1);
    return parameter.requires_grad_(true);
  }

  caftan::RoleContext& context_;
  std::uint64_t drawn_ = 0;
  std::vector<std::pair<at::Tensor, at::Tensor>> weights_;  // weight and bias of each layer
};

class Sign final : public caftan::optim::CustomAlgorithm {  // steps by the sign of the mean gradient
 public:
  std::vector<std::string> slots() const override { return {"mean"}; }
  caftan::Result<void> check(const caftan::optim::Custom& options) const override {
    if (options.options.empty()) return {};
    return caftan::Error(caftan::Errc::bad_arguments, "sign has no options but lr");
  }
  void step(const caftan::optim::Custom& options, const caftan::optim::CustomStep& step) const override {
    step.state[0].mul_(0.9).add_(step.gradient, 0.1);
    step.parameter.add_(step.state[0].sign(), -options.lr);
  }
};

class Trainer {  // has the data and the loop
 public:
  struct Config {
    int steps = 300;
    int batch = 64;
    double learning_rate = 0.02;
    double goal = 0.05;
    bool sign = false;
    int refine = 0;
  };
  static void settings(auto& s, Config& c) {
    s("steps", c.steps, "training steps").at_least(1);
    s("batch", c.batch, "points of a step").range(1, 65536);
    s("learning_rate", c.learning_rate, "Adam").greater_than(0).at_most(1);
    s("goal", c.goal, "a larger mean squared error at the end = failure").greater_than(0);
    s("sign", c.sign, "steps by the algorithm of this program instead of Adam");
    s("refine", c.refine, "steps of LBFGS at the end").at_least(0);
  }

  Trainer(caftan::RoleContext& context, Config config)
      : context_(context), config_(config), server_(context.use<Server>("server")) {}

  caftan::Result<void> run(std::stop_token stop) {
    caftan::optim::DistributedOptimizer optimizer(context_, server_.rpc_sync<&Server::parameters>(), algorithm(),
                                                  {.clip_norm = 1.0});
    caftan::optim::StepLR schedule(optimizer, {.step_size = 100, .gamma = 0.5});
    for (int step = 1; step <= config_.steps && !stop.stop_requested(); ++step) {
      const at::Tensor x = batch(step);
      caftan::autograd::Context context(context_);  // calls from here on are recorded
      const at::Tensor loss = at::mse_loss(server_.rpc_sync<&Server::forward>(x), wanted(x));
      context.backward({loss});  // gradients stay at the server, in the context
      optimizer.step(context);   // and so does the step
      schedule.step();
      context_.metric("loss", loss.item<double>(), {.step = step});
      context_.progress(step, config_.steps);
    }
    if (!stop.stop_requested()) refine();
    return stop.stop_requested() ? caftan::Result<void>() : validate();
  }

 private:
  caftan::optim::Algorithm algorithm() const {
    if (config_.sign) return caftan::optim::Custom{.name = "sign", .lr = config_.learning_rate};
    return caftan::optim::Adam{.lr = config_.learning_rate};
  }

  void refine() {  // with all points at once, from where the steps above have come to
    if (config_.refine == 0) return;
    const at::Tensor x = at::linspace(-1, 1, 101).view({101, 1});
    const caftan::optim::LBFGS lbfgs{.line_search = caftan::optim::LBFGS::LineSearch::strong_wolfe};
    caftan::optim::DistributedOptimizer optimizer(context_, server_.rpc_sync<&Server::parameters>(), lbfgs);
    for (int step = 1; step <= config_.refine; ++step) {
      const auto report = optimizer.step([&]() -> caftan::Result<caftan::optim::Evaluation> {
        caftan::autograd::Context context(context_);
        const at::Tensor loss = at::mse_loss(server_.rpc_sync<&Server::forward>(x), wanted(x));
        context.backward({loss});
        return caftan::optim::Evaluation{loss.item<double>(), std::move(context)};
      });
      context_.metric("refined", report.loss, {.step = step});
    }
  }

  caftan::Result<void> validate() const {  // outside of a context: nothing is recorded
    const at::Tensor x = at::linspace(-1, 1, 101).view({101, 1});
    const double error = at::mse_loss(server_.rpc_sync<&Server::forward>(x), wanted(x)).item<double>();
    context_.metric("error", error);
    if (error <= config_.goal) return {};
    return caftan::Error(caftan::Errc::goal_missed, "the mean squared error is " + std::to_string(error));
  }

  at::Tensor batch(int step) const {  // a function of the step: no generator to save
    at::Tensor x = at::empty({config_.batch, 1});
    const auto ordinal = static_cast<std::uint64_t>(step);
    caftan::nn::fill_uniform(x, {.seed = context_.seed("batches"), .context = ordinal}, -1, 1);
    return x;
  }
  static at::Tensor wanted(const at::Tensor& x) { return (x * std::numbers::pi).sin(); }

  caftan::RoleContext& context_;
  Config config_;
  caftan::RRef<Server> server_;
};

int main(int argc, char** argv) {
  caftan::Program program("training");
  program.role<Server>("server").method<&Server::forward>("forward").method<&Server::parameters>("parameters");
  program.role<Trainer>("trainer").uses<Server>("server");
  program.provide([](caftan::Registry& registry) {  // at every worker of the program, so at the server too
    caftan::optim::add_algorithm(registry, "sign", std::make_shared<Sign>());
  });
  return program.main(argc, argv);
}
