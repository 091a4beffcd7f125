// An agent learns a policy, a network of torch, by REINFORCE: it sends the policy to its observers and learns from the
// episodes that they return. Its file is reinforce.toml.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <torch/csrc/autograd/autograd.h>

#include <caftan/caftan.hpp>
#include <caftan/optim/local_optimizer.hpp>
#include <caftan/rl/environment.hpp>
#include <caftan/rl/random.hpp>
#include <caftan/rl/returns.hpp>
#include <caftan/rl/trajectory.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lake.hpp"
#include "policy.hpp"

using caftan::rl::Trajectory;

class Observer {  // plays whole episodes by the policy that it gets
 public:
  struct Config {
    double wind = 0;
  };
  static void settings(auto& s, Config& c) { s("wind", c.wind, "how often the wind moves the boat").range(0, 0.9); }

  Observer(caftan::RoleContext& context, Config config)
      : seed_(context.seed("lake")), lake_(std::make_unique<Lake>(config.wind), 40) {}

  caftan::Result<Trajectory> roll_out(Policy policy, std::uint64_t episode) {
    const at::NoGradGuard no_grad;  // the agent evaluates the episode again, with gradients
    Trajectory path;
    caftan::rl::Pcg64 random = caftan::rl::make_stream({seed_, episode});
    const auto first = lake_.reset(caftan::rl::derive_seed({seed_, episode}));
    if (!first) return first.error();
    std::span<const float> seen = *first;
    for (bool ended = false; !ended;) {
      const int action = policy.choose(seen, random);
      path.append(seen, action);  // before the step, which ends `seen`
      const auto step = lake_.step(action);
      if (!step) return step.error();
      path.append_outcome(*step);
      seen = step->observation;
      ended = step->ended();
    }
    return path;
  }

 private:
  std::uint64_t seed_;  // of this role
  caftan::rl::TimeLimit lake_;
};

class Agent {  // owns the policy, and drives the episodes
 public:
  struct Config {
    int episodes = 600;
    int hidden = 32;
    double lr = 0.01;
    double gamma = 0.9;
    double goal = -5;
  };
  static void settings(auto& s, Config& c) {
    s("episodes", c.episodes, "episodes of each observer").at_least(1);
    s("hidden", c.hidden, "units of the hidden layer").range(1, 4096);
    s("lr", c.lr, "learning rate of Adam").range(0, 1);
    s("gamma", c.gamma, "discount of later rewards").range(0, 1);
    s("goal", c.goal, "a running reward below this at the end = failure");
  }

  Agent(caftan::RoleContext& context, Config config)
      : context_(context),
        config_(config),
        observers_(context.uses<Observer>("observers")),
        policy_(make_policy(Lake::kObservations, config.hidden, Lake::kActions, context.seed("policy"))),
        optimizer_(caftan::optim::LocalOptimizer::make({{policy_.parameters(), caftan::optim::Adam{.lr = config.lr}}})
                       .value()) {}

  caftan::Result<void> run(std::stop_token stop) {
    double running = 0;
    for (int episode = 1; episode <= config_.episodes; ++episode) {
      if (stop.stop_requested()) return {};
      std::vector<caftan::Future<Trajectory>> calls;
      for (const auto& observer : observers_) {
        calls.push_back(observer.rpc_async<&Observer::roll_out>(policy_, static_cast<std::uint64_t>(episode)));
      }
      const std::vector<Trajectory> paths = caftan::wait_all(std::move(calls));
      const auto loss = learn(paths);
      if (!loss) return loss.error();
      double reward = 0;
      for (const Trajectory& path : paths) reward += path.total_reward() / static_cast<double>(paths.size());
      running = episode == 1 ? reward : running + 0.02 * (reward - running);
      context_.metric("reward", reward, {.step = episode});
      context_.metric("loss", *loss, {.step = episode});
      context_.progress(episode, config_.episodes, "running reward " + std::to_string(running));
    }
    if (running >= config_.goal) return {};
    return caftan::Error(caftan::Errc::goal_missed, "the running reward is " + std::to_string(running));
  }

 private:
  caftan::Result<double> learn(const std::vector<Trajectory>& paths) {
    std::vector<at::Tensor> chosen;  // log-probabilities of the actions that were taken, [T] for each episode
    std::vector<std::span<const double>> rewards;
    for (const Trajectory& path : paths) {
      const at::Tensor observations = at::tensor(path.observations).view({-1, Lake::kObservations});
      const at::Tensor actions = at::tensor(path.actions, at::kLong);  // from int32: torch's type of indices
      chosen.push_back(policy_.forward(observations).gather(1, actions.unsqueeze(1)).squeeze(1));
      rewards.emplace_back(path.rewards);
    }
    auto returns = caftan::rl::discounted_returns(rewards, config_.gamma, caftan::rl::ReturnScope::per_observer);
    caftan::rl::normalize(returns);
    const at::Tensor loss = -(at::cat(chosen) * at::tensor(returns, at::kFloat)).mean();
    const auto stepped = optimizer_.step(torch::autograd::grad({loss}, policy_.parameters()));
    if (!stepped) return stepped.error();
    return loss.item<double>();
  }

  caftan::RoleContext& context_;
  Config config_;
  std::vector<caftan::RRef<Observer>> observers_;
  Policy policy_;
  caftan::optim::LocalOptimizer optimizer_;  // steps the tensors of policy_
};

int main(int argc, char** argv) {
  caftan::Program program("reinforce");
  program.role<Observer>("observer").doc("a boat on a lake").method<&Observer::roll_out>("roll_out");
  program.role<Agent>("agent").doc("learns a policy").uses<Observer>("observers", caftan::at_least(1));
  return program.main(argc, argv);
}
