/// The settings of CartPole's agent, as [roles.NAME.config] of an application file gives them; those of its observers
/// are ObserverConfig. Each struct is declared once, in `settings`: parsing, ranges, `caftan help` and
/// docs/configuration.md come from there.
#pragma once

#include <cstdint>
#include <optional>

#include "cartpole_learning/observer_config.hpp"

namespace caftan::cartpole {

/// What the role type "cartpole.agent" reads.
struct AgentConfig {
  enum class Protocol { two_calls, fused, rollout };
  enum class Returns { per_observer, joined };

  Protocol protocol = Protocol::two_calls;
  double gamma = 0.99;
  double learning_rate = 1e-2;
  int hidden = 128;
  double dropout = 0.6;
  Returns returns = Returns::per_observer;
  std::int64_t steps_per_episode = 5000;
  double running_average = 0.05;
  std::optional<double> solved_at;  ///< unset: the environment's own threshold
  std::int64_t max_episodes = 3000;
  std::int64_t evaluate = 100;

  static void settings(auto& s, AgentConfig& c) {
    s("protocol", c.protocol, "per env step")
        .one_of({{"two_calls"}, {"fused", "one call"}, {"rollout", "one message an episode"}});
    s("gamma", c.gamma, "discount").range(0, 1);
    s("learning_rate", c.learning_rate, "Adam").greater_than(0).at_most(1000);
    s("hidden", c.hidden, "size of the hidden layer").range(1, 65536).unit("units");
    s("dropout", c.dropout, "probability of dropping a hidden unit while learning").at_least(0).less_than(1);
    s("returns", c.returns, "discounted sums")
        .one_of({{"per_observer"}, {"joined", "as in PyTorch's tutorial, learns worse"}});
    s("steps_per_episode", c.steps_per_episode, "env steps, shared by all observers").at_least(1);
    s("running_average", c.running_average,
      "weight of the newest episode, in which the observer with the smallest reward counts")
        .greater_than(0)
        .at_most(1);
    s("solved_at", c.solved_at,
      "running reward above this = solved = success (exit 0); required where observers' environments have different "
      "thresholds")
        .default_text("the environment's threshold");
    s("max_episodes", c.max_episodes, "not solved by then = failure (exit 1)").at_least(1);
    s("evaluate", c.evaluate, "greedy episodes after solving, in the first observer's environment").at_least(0);
  }
};

}  // namespace caftan::cartpole
