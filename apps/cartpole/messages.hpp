/// The messages between the agent and its observers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "caftan/tensor/payload.hpp"

namespace caftan::cartpole {

/// What an observer's environment is.
struct EnvironmentFacts {
  std::string id;
  std::optional<double> solved_at{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& id& solved_at;
  }
};

/// The agent's order to an observer: play one episode.
struct EpisodeOrder {
  std::uint64_t observer = 0;     ///< index of the receiver among the agent's observers
  std::int64_t episode = 0;       ///< from 1
  std::int64_t budget = 0;        ///< env steps, >= 1
  std::uint64_t shared_seed = 0;  ///< the seed from which all observers start if their seeding is "same"
  bool fused = false;             ///< one call a step instead of two

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& observer& episode& budget& shared_seed& fused;
  }
};

/// What an observer reports about an episode that it played with calls.
struct EpisodeReport {
  std::int64_t steps = 0;
  double reward = 0;       ///< sum
  double last_reward = 0;  ///< reward of the last step; with `fused` no call has carried this reward
  std::int64_t calls = 0;
  double call_p50_us = 0;  ///< median time of a select_action or step call, microseconds

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& steps& reward& last_reward& calls& call_p50_us;
  }
};

/// A copy of the policy, to act with.
struct PolicyCopy {
  at::Tensor parameters{};  ///< as `Policy::snapshot`, [P], float32
  std::int64_t hidden = 0;
  double dropout = 0;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& parameters& hidden& dropout;
  }
};

}  // namespace caftan::cartpole
