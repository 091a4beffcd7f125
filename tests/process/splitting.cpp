// A program that splits a model over workers. Two trainers train without end, each through the server and the other
// trainer, and report each call, backward hook and step, so that a test can kill a worker at any of these points. An
// owner that commits a chosen step waits in the middle of it for a test to open the file `commit`.
#include <ATen/ops/eye.h>
#include <ATen/ops/ones.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "caftan/caftan.hpp"
#include "caftan/optim/custom_algorithm.hpp"
#include "caftan/optim/distributed_optimizer.hpp"

namespace {

using caftan::Result;
using caftan::RRef;

constexpr int kHops = 6;
constexpr int kWidth = 256;  // so wide that a gradient is more than one chunk, and a pass takes some milliseconds

/// One weight for each trainer: steps of one do not invalidate the graph of the other.
class Layer {
 public:
  at::Tensor forward(int trainer, const at::Tensor& x) const { return x.matmul(weight(trainer)).tanh(); }
  const at::Tensor& weight(int trainer) const { return weights_.at(static_cast<std::size_t>(trainer)); }

 private:
  std::array<at::Tensor, 2> weights_{at::eye(kWidth).requires_grad_(), at::eye(kWidth).requires_grad_()};
};

constexpr const char* kHeld = "held";

/// Plain descent that waits in one step, between two halves of the parameter, while the pipe `commit` is there.
class Held final : public caftan::optim::CustomAlgorithm {
 public:
  Result<void> check(const caftan::optim::Custom&) const override { return {}; }
  void step(const caftan::optim::Custom& options, const caftan::optim::CustomStep& step) const override {
    const at::Tensor change = step.gradient.mul(options.lr);
    step.parameter.narrow(0, 0, kWidth / 2).sub_(change.narrow(0, 0, kWidth / 2));
    if (static_cast<double>(step.number) == options.options.at("hold")) wait();
    step.parameter.narrow(0, kWidth / 2, kWidth / 2).sub_(change.narrow(0, kWidth / 2, kWidth / 2));
  }

 private:
  static void wait() {
    const int pipe = ::open("commit", O_RDONLY | O_CLOEXEC);  // until a test opens the other end
    if (pipe < 0) return;
    char byte = 0;
    while (::read(pipe, &byte, 1) > 0) {  // and until it closes that
    }
    ::close(pipe);
  }
};

struct TrainerConfig {
  int hold = 0;
  std::string holder{};
  static void settings(auto& s, TrainerConfig& c) {
    s("hold", c.hold, "the step of trainer 0 that an owner holds in its commit; 0 = none");
    s("holder", c.holder, "that owner: server or other");
  }
};

class Server {
 public:
  explicit Server(caftan::RoleContext& context) : context_(context) {}
  at::Tensor forward(int trainer, at::Tensor x) { return layer_.forward(trainer, x); }
  RRef<at::Tensor> weight(int trainer) { return context_.make_rref(layer_.weight(trainer)); }

 private:
  caftan::RoleContext& context_;
  Layer layer_;
};

class Trainer {
 public:
  using Config = TrainerConfig;
  Trainer(caftan::RoleContext& context, Config config)
      : context_(context),
        config_(std::move(config)),
        server_(context.use<Server>("server")),
        other_(context.use<Trainer>("other")) {}
  at::Tensor forward(int trainer, at::Tensor x) { return layer_.forward(trainer, x); }
  RRef<at::Tensor> weight(int trainer) { return context_.make_rref(layer_.weight(trainer)); }

  Result<void> run(std::stop_token) {
    const auto trained = train();
    context_.report(context_.name() + " ends: " + trained.error().message());
    return trained;
  }

 private:
  Result<void> train() {
    const int own = context_.replica();
    const auto at_server = server_.try_rpc_sync<&Server::weight>(own);
    if (!at_server) return at_server.error();
    const auto at_other = other_.try_rpc_sync<&Trainer::weight>(own);
    if (!at_other) return at_other.error();
    caftan::optim::StepOptions two_phases;
    two_phases.clip_norm = 1;
    auto optimizer = caftan::optim::DistributedOptimizer::try_make(
        context_, {{{*at_server}, held_by("server")}, {{*at_other}, held_by("other")}}, two_phases);
    if (!optimizer) return optimizer.error();
    for (int step = 1;; ++step) {
      const caftan::autograd::Context context(context_);
      const auto loss = forward_all(step);
      if (!loss) return loss.error();
      if (auto done = context.try_backward({*loss}); !done) return done;
      say(step, "backward done");
      say(step, "prepare");
      if (auto stepped = optimizer->try_step(context); !stepped) return stepped.error();
      say(step, "stepped");
    }
  }

  caftan::optim::Custom held_by(const std::string& owner) const {
    const bool holds = context_.replica() == 0 && owner == config_.holder;
    return {.name = kHeld, .lr = 0.01, .options = {{"hold", holds ? static_cast<double>(config_.hold) : 0.0}}};
  }

  Result<at::Tensor> forward_all(int step) {
    at::Tensor x = at::ones({kWidth, kWidth});
    for (int hop = 0; hop < kHops; ++hop) {
      auto y = hop % 2 == 0 ? server_.try_rpc_sync<&Server::forward>(context_.replica(), x)
                            : other_.try_rpc_sync<&Trainer::forward>(context_.replica(), x);
      if (!y) return y.error();
      x = *std::move(y);
      x.register_hook([this, step, hop](const at::Tensor&) { say(step, "backward " + std::to_string(hop)); });
      say(step, "forward " + std::to_string(hop));
    }
    return x.sum();
  }

  void say(int step, const std::string& where) const {
    context_.report(context_.name() + " " + std::to_string(step) + " " + where);
  }

  caftan::RoleContext& context_;
  Config config_;
  RRef<Server> server_;
  RRef<Trainer> other_;
  Layer layer_;
};

}  // namespace

int main(int argc, char** argv) {
  caftan::Program program("splitting");
  program.role<Trainer>("trainer")
      .uses<Server>("server")
      .uses<Trainer>("other")
      .method<&Trainer::forward>("forward")
      .method<&Trainer::weight>("weight");
  program.role<Server>("server").method<&Server::forward>("forward").method<&Server::weight>("weight");
  program.provide(
      [](caftan::Registry& registry) { caftan::optim::add_algorithm(registry, kHeld, std::make_shared<Held>()); });
  return program.main(argc, argv);
}
