/// The settings of the benchmark's roles, as [roles.NAME.config] of an application file gives them. Parsing, ranges,
/// `caftan help` and docs/configuration.md come from there. Its observers have none.
#pragma once

#include <cstdint>
#include <string>

#include "batch_settings/batch_config.hpp"

namespace caftan::rl_bench {

/// What the role type "rl_bench.coordinator" reads.
struct CoordinatorConfig {
  std::int64_t episodes = 10;
  std::int64_t steps = 100;

  static void settings(auto& s, CoordinatorConfig& c) {
    s("episodes", c.episodes, "calls of each observer").range(1, 1'000'000);
    s("steps", c.steps, "requests of each observer in a call").range(1, 1'000'000);
  }
};

/// What the role type "rl_bench.agent" reads.
struct AgentConfig {
  batch_settings::BatchConfig batch{};
  std::string state_size = "10-20-10";
  std::int64_t nlayers = 5;
  std::int64_t out_features = 10;

  static void settings(auto& s, AgentConfig& c) {
    s("batch", c.batch, "how requests for actions are collected");
    s("state_size", c.state_size, "sizes of a state's dimensions, with - between them");
    s("nlayers", c.nlayers, "linear layers of the policy after the first one").range(0, 1024);
    s("out_features", c.out_features, "size of each of its layers, and number of actions").range(1, 65536);
  }
};

}  // namespace caftan::rl_bench
