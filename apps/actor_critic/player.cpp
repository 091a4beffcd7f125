#include "actor_critic/player.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "agents/greedy.hpp"

namespace caftan::actor_critic {
namespace {

/// What a stream of random numbers is for; a part of its key.
enum class Stream : std::uint64_t { environments = 0, actions = 1 };

std::span<const float> row_of(std::span<const float> rows, std::size_t row, std::size_t size) {
  return rows.subspan(row * size, size);
}

}  // namespace

Result<void> check_trajectories(const Trajectories& trajectories, const agents::PolicyShape& shape) {
  const std::size_t size = trajectories.steps * trajectories.environments;
  const auto truncated = static_cast<std::size_t>(std::ranges::count(trajectories.ends, kTruncated));
  struct Array {
    const char* name;
    std::size_t size;
    std::size_t wanted;
  };
  const std::size_t discrete = shape.continuous ? 0 : size;
  const std::size_t continuous = shape.continuous ? size * shape.outputs : 0;
  for (const Array& array :
       {Array{"observations", trajectories.observations.size(), (size + trajectories.environments) * shape.observation},
        Array{"actions", trajectories.actions.size(), discrete},
        Array{"continuous actions", trajectories.continuous_actions.size(), continuous},
        Array{"log-probabilities", trajectories.log_probabilities.size(), size},
        Array{"rewards", trajectories.rewards.size(), size}, Array{"ends", trajectories.ends.size(), size},
        Array{"last observations", trajectories.last_observations.size(), truncated * shape.observation}}) {
    if (array.size == array.wanted && size > 0) continue;
    return Error(Errc::bad_arguments, "trajectories of " + std::to_string(trajectories.steps) + " steps of " +
                                          std::to_string(trajectories.environments) + " environments have " +
                                          std::to_string(array.size) + " " + array.name + ", not " +
                                          std::to_string(array.wanted));
  }
  const bool has_actions = std::ranges::all_of(trajectories.actions, [&](std::int32_t action) {
    return action >= 0 && action < static_cast<std::int64_t>(shape.outputs);
  });
  if (has_actions) return {};
  return Error(Errc::bad_arguments, "trajectories with an action that the policy does not have");
}

Player::Player(std::unique_ptr<rl::VectorEnvironment> environments, const agents::PolicyShape& shape,
               std::uint64_t seed)
    : environments_(std::move(environments)), policy_(shape), seed_(seed) {}

Result<void> Player::begin_part(std::uint64_t part) {
  random_ = rl::make_stream({seed_, static_cast<std::uint64_t>(Stream::actions), part});
  // Environment i has the seed plus i: the low bits stay free for these.
  const std::uint64_t seed = rl::derive_seed({seed_, static_cast<std::uint64_t>(Stream::environments), part});
  const auto first = environments_->reset(seed >> 16);
  if (!first) return first.error();
  observations_.assign(first->begin(), first->end());
  returns_.assign(environments_->size(), 0.0);
  return {};
}

Result<Trajectories> Player::play(std::uint64_t steps) {
  const std::size_t n = environments_->size();
  const std::size_t size = spec().observation_size;
  Trajectories played{.steps = steps, .environments = n};
  played.observations.reserve((steps + 1) * n * size);
  played.log_probabilities.reserve(steps * n);
  played.rewards.reserve(steps * n);
  played.ends.reserve(steps * n);
  played.observations = observations_;
  for (std::uint64_t step = 0; step < steps; ++step) {
    policy_.act(observations_, random_, actions_);
    const auto taken = agents::step_environments(*environments_, actions_, bounded_);
    if (!taken) return taken.error();
    played.actions.insert(played.actions.end(), actions_.discrete.begin(), actions_.discrete.end());
    played.continuous_actions.insert(played.continuous_actions.end(), actions_.continuous.begin(),
                                     actions_.continuous.end());
    played.log_probabilities.insert(played.log_probabilities.end(), actions_.log_probabilities.begin(),
                                    actions_.log_probabilities.end());
    for (std::size_t i = 0; i < n; ++i) {
      played.rewards.push_back(static_cast<float>(taken->rewards[i]));
      returns_[i] += taken->rewards[i];
      const bool is_terminated = taken->terminated[i] != 0;
      played.ends.push_back(is_terminated ? kTerminated : taken->ended(i) ? kTruncated : 0);
      if (!taken->ended(i)) continue;
      played.returns.push_back(returns_[i]);
      returns_[i] = 0;
      if (is_terminated) continue;
      const auto last = row_of(taken->last_observations, i, size);
      played.last_observations.insert(played.last_observations.end(), last.begin(), last.end());
    }
    observations_.assign(taken->observations.begin(), taken->observations.end());
    played.observations.insert(played.observations.end(), observations_.begin(), observations_.end());
  }
  return played;
}

}  // namespace caftan::actor_critic
