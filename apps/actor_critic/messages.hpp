/// The messages between the learner, its actors and its evaluator, beside Trajectories.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "agents/policy.hpp"
#include "caftan/rl/environment.hpp"
#include "caftan/tensor/payload.hpp"

namespace caftan::actor_critic {

/// What the environments of an actor or an evaluator are.
struct EnvironmentFacts {
  std::string id{};
  std::uint64_t observation_size = 0;
  std::int64_t actions = 0;
  std::int64_t max_steps = 0;
  std::vector<float> action_low{};
  std::vector<float> action_high{};
  std::uint64_t environments = 0;  ///< that are stepped together

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& id& observation_size& actions& max_steps& action_low& action_high& environments;
  }
};

EnvironmentFacts facts_of(const rl::EnvironmentSpec& spec, std::size_t environments);
rl::EnvironmentSpec spec_of(const EnvironmentFacts& facts);

/// The learner's order to an actor: play until the learner says that it is over.
struct PlayOrder {
  std::uint64_t actor = 0;  ///< the number of the receiver among the learner's actors
  std::uint64_t unroll = 1;
  std::uint64_t ahead = 0;
  agents::PolicyShape shape{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& actor& unroll& ahead& shape;
  }
};

/// The learner's reply to an actor that asks for weights.
struct Weights {
  std::uint64_t version = 0;
  std::uint64_t part = 0;  ///< another one than before: begin all episodes anew
  bool is_over = false;    ///< the training has ended: the actor returns
  at::Tensor values{};     ///< [weight_count], float32; undefined where the actor has this version

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& version& part& is_over& values;
  }
};

/// Returns weights as they travel.
at::Tensor to_tensor(const std::vector<float>& weights);
/// Returns the floats of weights that have travelled.
/// Errors: bad_arguments (no float32 row on the CPU).
Result<std::vector<float>> to_weights(const at::Tensor& values);

}  // namespace caftan::actor_critic
