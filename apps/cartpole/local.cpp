#include "local.hpp"

#include <memory>
#include <utility>

#include "caftan/rl/environment.hpp"
#include "caftan/rl/random.hpp"
#include "training.hpp"

namespace caftan::cartpole {
namespace {

using Environments = std::vector<std::unique_ptr<rl::Environment>>;

Result<Environments> make_environments(const LocalOptions& options) {
  Environments environments;
  for (std::size_t i = 0; i < options.environment_seeds.size(); ++i) {
    auto made = rl::make_environment(environment_id(options.observer));
    if (!made) return made.error();
    environments.push_back(*std::move(made));
  }
  if (environments.empty()) return Error(Errc::invalid_config, "no observer");
  return environments;
}

Result<EpisodeOutcome> play_episode(Training& training, const Environments& environments, const LocalOptions& options) {
  training.begin_episode();
  for (std::size_t i = 0; i < environments.size(); ++i) {
    auto record =
        roll_out(training.policy(), *environments[i], episode_seed(options.environment_seeds[i], training.episode()),
                 rl::Pcg64(training.stream_seed(i)), training.step_budget());
    if (!record) return record.error();
    if (auto accepted = training.accept(i, *std::move(record)); !accepted) return accepted.error();
  }
  return training.end_episode();
}

}  // namespace

Result<LocalReport> train_locally(const LocalOptions& options) {
  auto environments = make_environments(options);
  if (!environments) return environments.error();
  auto training = Training::make(
      {.config = options.agent,
       .observers = environments->size(),
       .seed = options.seed,
       .solved_at = options.agent.solved_at.value_or(environments->front()->spec().solved_at.value_or(0)),
       .deterministic = options.deterministic});
  if (!training) return training.error();
  while (!training->is_solved() && !training->is_exhausted()) {
    const auto outcome = play_episode(*training, *environments, options);
    if (!outcome) return outcome.error();
    if (options.on_episode) options.on_episode(training->episode(), *outcome);
  }
  LocalReport report{.is_solved = training->is_solved(),
                     .episodes = training->episode(),
                     .env_steps = training->env_steps(),
                     .running_reward = training->running_reward(),
                     .evaluation = {},
                     .fingerprint = training->fingerprint()};
  if (report.is_solved) {
    auto rewards = evaluate_greedily(training->policy(), *environments->front(), training->evaluation_seed(),
                                     options.agent.evaluate);
    if (!rewards) return rewards.error();
    report.evaluation = *std::move(rewards);
  }
  return report;
}

}  // namespace caftan::cartpole
