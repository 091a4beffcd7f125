/// The messages between coordinator, agent and observers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace caftan::rl_bench {

/// What the agent was made with.
struct AgentFacts {
  bool batch = true;
  std::string state_size{};
  std::int64_t nlayers = 0;
  std::int64_t out_features = 0;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& batch& state_size& nlayers& out_features;
  }
};

/// The coordinator's order to an observer: ask for so many actions.
struct EpisodeOrder {
  std::int64_t steps = 0;
  std::string state_size{};
  bool batch = true;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& steps& state_size& batch;
  }
};

/// What the agent measured since it was last asked; one entry for each batch.
struct AgentTimes {
  std::vector<double> latency{};  ///< seconds
  std::vector<std::int64_t> size{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& latency& size;
  }
};

}  // namespace caftan::rl_bench
