#include "actor_critic/local.hpp"

#include <utility>

#include "actor_critic/schedule.hpp"
#include "agents/environments.hpp"
#include "agents/greedy.hpp"

namespace caftan::actor_critic {

Result<LocalReport> train_locally(const rl::Environments& known, const LocalOptions& options) {
  const LearnerConfig& config = options.learner;
  const agents::EnvironmentChoice choice{config.environment, config.action_repeat};
  auto evaluated = agents::make_environments(known, choice, static_cast<std::size_t>(options.evaluator.episodes),
                                             options.evaluator.gymnasium);
  if (!evaluated) return evaluated.error();
  const agents::PolicyShape shape =
      agents::shape_for((*evaluated)->spec(), static_cast<std::size_t>(config.network.hidden),
                        static_cast<std::size_t>(config.network.layers));
  auto learning =
      Learning::make({.config = config, .shape = shape, .seed = options.seed, .deterministic = options.deterministic});
  if (!learning) return learning.error();
  std::vector<Player> players;
  for (const std::uint64_t seed : options.actor_seeds) {
    auto environments = agents::make_environments(known, choice, static_cast<std::size_t>(options.actor.environments),
                                                  options.actor.gymnasium);
    if (!environments) return environments.error();
    players.emplace_back(*std::move(environments), shape, seed);
  }
  agents::Policy policy(shape);
  UpdateReport report;
  Schedule schedule(config, learning->state().frames);
  std::int64_t part = -1;
  while (learning->state().frames < config.max_frames) {
    const LearningState& state = learning->state();
    const std::vector<float> weights = learning->weights();
    std::vector<Trajectories> trajectories;
    for (Player& player : players) {
      if (part != state.part) {
        if (auto begun = player.begin_part(static_cast<std::uint64_t>(state.part)); !begun) return begun.error();
      }
      if (auto loaded = player.load(weights); !loaded) return loaded.error();
      auto played = player.play(static_cast<std::uint64_t>(config.unroll));
      if (!played) return played.error();
      played->actor = trajectories.size();
      played->version = static_cast<std::uint64_t>(state.updates);
      trajectories.push_back(*std::move(played));
    }
    part = state.part;
    auto updated = learning->update(trajectories);
    if (!updated) return updated.error();
    report = *updated;
    const Schedule::Due due = schedule.after(learning->state().frames);
    if (due.evaluation) {
      if (auto loaded = policy.load(learning->weights()); !loaded) return loaded.error();
      const auto returns = agents::play_greedily(
          **evaluated, policy,
          evaluation_seed(options.evaluation_seed, static_cast<std::uint64_t>(learning->state().frames)),
          options.evaluator.most_steps);
      if (!returns) return returns.error();
      learning->take_evaluation(learning->state().frames, agents::mean_of(*returns));
      if (options.on_evaluation) options.on_evaluation(learning->state(), report);
      if (config.target && learning->state().evaluation >= *config.target) break;
    }
    if (due.checkpoint) learning->begin_part();
  }
  return LocalReport{.state = learning->state(), .fingerprint = learning->fingerprint()};
}

}  // namespace caftan::actor_critic
