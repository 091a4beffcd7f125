/// The role type "actor_critic.learner": owns the networks, learns from what its actors send, and lets its evaluator
/// measure them. It drives. What it learns is in learning.hpp, who has sent what in seats.hpp; here are the calls.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "actor_critic/checkpoint.hpp"
#include "actor_critic/config.hpp"
#include "actor_critic/learning.hpp"
#include "actor_critic/messages.hpp"
#include "actor_critic/progress_text.hpp"
#include "actor_critic/schedule.hpp"
#include "actor_critic/seats.hpp"
#include "caftan/app/role_type.hpp"
#include "caftan/base/clock.hpp"
#include "caftan/rpc/future.hpp"
#include "caftan/rpc/rref.hpp"

namespace caftan {
class RoleContext;
}

namespace caftan::actor_critic {

class Actor;
class Evaluator;

class Learner {
 public:
  using Config = LearnerConfig;

  /// Returns what cannot work together, and what is wrong with the checkpoint to go on from.
  static std::vector<app::MissingRequirement> requirements(const Config& config, const app::RolePlace& place);

  Learner(RoleContext& context, Config config);

  /// Trains until max_frames are there or an evaluation reaches the target.
  /// Errors: goal_missed; invalid_config (environments that differ, it diverged); those of the checkpoint; cancelled
  /// (`stop` was requested); those of actors and evaluator.
  Result<void> run(std::stop_token stop);

  // The methods below are called by actors.

  /// Takes what an actor has played; one way. What is wrong with it ends the training.
  void take(Trajectories trajectories);
  /// Returns weights as soon as the learner has learned from `sent` trajectories of the actor.
  /// @param known  the version that the actor has, plus 1; 0 = none
  /// Errors: bad_arguments, as Seats::ask.
  Future<Weights> weights(std::uint64_t actor, std::uint64_t sent, std::uint64_t known);

 private:
  /// An evaluation that is under way.
  struct Evaluation {
    std::int64_t frames = 0;
    Future<std::vector<double>> returns;
    std::optional<Snapshot> snapshot{};  ///< of what is evaluated, where the best one stays
  };

  Result<void> prepare();
  Result<rl::EnvironmentSpec> open();
  Result<void> resume();
  void start_actors();
  Result<void> train(const std::stop_token& stop);
  Result<void> wait_for_trajectories();
  Result<void> update();
  Result<void> look_at_actors();
  Result<void> lose(std::size_t actor, const Error& error);
  void start_evaluation();
  Result<void> end_evaluation(bool wait);
  Result<void> write_checkpoint();
  void show(const UpdateReport& report, const std::vector<double>& returns, bool always);
  Standing standing() const;
  Result<void> finish();
  Weights weights_now(std::uint64_t known) const;

  RoleContext& context_;
  Config config_;
  std::vector<RRef<Actor>> actors_;
  std::vector<RRef<Evaluator>> evaluators_;  // one at most
  Seats seats_;
  std::vector<std::optional<Future<void>>> playing_{};  // of each actor, while it plays
  std::optional<Learning> learning_{};                  // from `run` on, like all below
  at::Tensor weights_{};                                // of the newest version
  std::optional<Promise<void>> arrival_{};              // while `run` waits for trajectories
  std::optional<Error> refused_{};                      // what is wrong with a trajectory
  std::optional<Schedule> schedule_{};
  std::optional<Evaluation> evaluation_{};
  Meter meter_{};
  std::int64_t saved_at_ = -1;  // frames of the newest checkpoint
  bool is_over_ = false;
  base::SteadyClock clock_{};
};

}  // namespace caftan::actor_critic
