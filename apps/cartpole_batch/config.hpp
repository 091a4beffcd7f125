/// The settings of the batching CartPole agent, as [roles.NAME.config] of an application file gives them; those of its
/// observers are cartpole::ObserverConfig. Parsing, ranges, `caftan help` and docs/configuration.md come from there.
#pragma once

#include <cstdint>

#include "batch_settings/batch_config.hpp"

namespace caftan::cartpole_batch {

/// What the role type "cartpole_batch.agent" reads.
struct AgentConfig {
  batch_settings::BatchConfig batch{};
  std::int64_t episodes = 10;
  std::int64_t steps_per_call = 500;
  double gamma = 1;
  double learning_rate = 1e-2;
  int hidden = 128;
  double dropout = 0.6;
  double running_average = 0.5;

  static void settings(auto& s, AgentConfig& c) {
    s("batch", c.batch, "how requests for actions are collected");
    s("episodes", c.episodes, "calls of each observer, with a step of learning after each").range(1, 1'000'000);
    s("steps_per_call", c.steps_per_call, "env steps of each observer in a call, with resets inside")
        .range(1, 1'000'000)
        .unit("steps");
    s("gamma", c.gamma, "discount").range(0, 1);
    s("learning_rate", c.learning_rate, "Adam").greater_than(0).at_most(1000);
    s("hidden", c.hidden, "size of the hidden layer").range(1, 65536).unit("units");
    s("dropout", c.dropout, "probability of dropping a hidden unit while learning").at_least(0).less_than(1);
    s("running_average", c.running_average, "weight of the newest episode").greater_than(0).at_most(1);
  }
};

}  // namespace caftan::cartpole_batch
