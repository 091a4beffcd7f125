/// The settings of actors, learner and evaluator, as [roles.NAME.config] of an application file gives them. Each struct
/// is declared once, in `settings`: parsing, ranges, `caftan help` and docs/configuration.md come from there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "caftan/rl/gymnasium.hpp"

namespace caftan::actor_critic {

/// The networks of policy and values: two of these sizes.
struct NetworkConfig {
  std::int64_t hidden = 64;
  std::int64_t layers = 2;
  bool normalize = true;

  static void settings(auto& s, NetworkConfig& c) {
    s("hidden", c.hidden, "size of each hidden layer").range(1, 4096).unit("units");
    s("layers", c.layers, "hidden layers").range(1, 8);
    s("normalize", c.normalize, "observations are shifted and scaled by their mean and deviation so far");
  }
};

/// How targets and advantages follow from trajectories, and what their loss is.
struct LossConfig {
  enum class Policy { vtrace, clipped };

  Policy policy = Policy::vtrace;
  double discount = 0.99;
  double lambda = 1;
  double ratio_limit = 1;
  double trace_limit = 1;
  double reward_scale = 1;
  double entropy_cost = 0.01;
  double value_cost = 0.5;
  bool normalize_advantages = true;
  std::int64_t epochs = 1;
  std::int64_t minibatches = 1;
  double clip_ratio = 0.2;

  static void settings(auto& s, LossConfig& c) {
    s("policy", c.policy, "loss of the policy")
        .one_of({{"vtrace", "IMPALA: policy gradient with V-trace's weights"},
                 {"clipped", "PPO: ratio of probabilities within clip_ratio, for epochs > 1"}});
    s("discount", c.discount, "of a reward that comes a decision later").range(0, 1);
    s("lambda", c.lambda, "1 = whole returns, less = shorter ones, of less variance").range(0, 1);
    s("ratio_limit", c.ratio_limit, "largest weight of a step (rho-bar)").greater_than(0).at_most(1000);
    s("trace_limit", c.trace_limit, "largest weight of what follows a step (c-bar)").greater_than(0).at_most(1000);
    s("reward_scale", c.reward_scale, "rewards are multiplied by this before they are learned from").greater_than(0);
    s("entropy_cost", c.entropy_cost, "what the policy's entropy is worth").range(0, 1000);
    s("value_cost", c.value_cost, "weight of the values' loss").range(0, 1000);
    s("normalize_advantages", c.normalize_advantages, "mean 0 and deviation 1 in each step of the optimizer");
    s("epochs", c.epochs, "how often each update goes through its trajectories").range(1, 1000);
    s("minibatches", c.minibatches, "steps of the optimizer in an epoch").range(1, 4096);
    s("clip_ratio", c.clip_ratio, "only read with clipped").greater_than(0).less_than(1);
  }
};

struct OptimizerConfig {
  enum class Name { adam, rmsprop };
  enum class Schedule { constant, linear, cosine };

  Name name = Name::adam;
  double lr = 1e-3;
  Schedule schedule = Schedule::constant;
  double clip = 0.5;

  static void settings(auto& s, OptimizerConfig& c) {
    s("name", c.name, "who makes steps of gradients").one_of({{"adam"}, {"rmsprop"}});
    s("lr", c.lr, "learning rate at the beginning").greater_than(0).at_most(1000);
    s("schedule", c.schedule, "the learning rate on the way to max_frames")
        .one_of({{"constant"}, {"linear", "falls to 0"}, {"cosine", "falls to 0, slowly at both ends"}});
    s("clip", c.clip, "largest norm of all gradients together; 0 = no clipping").at_least(0);
  }
};

struct CheckpointConfig {
  std::int64_t every = 0;
  std::int64_t keep = 2;
  bool best = true;

  static void settings(auto& s, CheckpointConfig& c) {
    s("every", c.every, "frames between checkpoints, also one at the end; 0 = none but the best").at_least(0);
    s("keep", c.keep, "newest ones that stay").at_least(1);
    s("best", c.best, "the one with the best evaluation stays, too, as checkpoints/best");
  }
};

/// What the role type "actor_critic.learner" reads.
struct LearnerConfig {
  std::string environment = "CartPole-v1";
  std::int64_t action_repeat = 1;
  std::int64_t unroll = 32;
  std::int64_t batch = 0;
  std::int64_t ahead = 1;
  NetworkConfig network{};
  LossConfig loss{};
  OptimizerConfig optimizer{};
  std::int64_t max_frames = 1'000'000;
  std::int64_t evaluate_every = 100'000;
  std::optional<double> target{};
  std::optional<double> goal{};
  CheckpointConfig checkpoint{};
  std::optional<std::filesystem::path> resume{};

  static void settings(auto& s, LearnerConfig& c) {
    s("environment", c.environment, "what actors and evaluators step: a name of the program, or gymnasium:ID");
    s("action_repeat", c.action_repeat, "how often each action is taken before the next decision").range(1, 1000);
    s("unroll", c.unroll, "decisions of each environment in a trajectory").range(1, 65536);
    s("batch", c.batch, "trajectories of actors that an update learns from; 0 = one of each actor").range(0, 4096);
    s("ahead", c.ahead, "trajectories that an actor plays while the learner has not learned from the last; 0 = none")
        .range(0, 64);
    s("network", c.network, "policy and values");
    s("loss", c.loss, "what is made smaller");
    s("optimizer", c.optimizer, "how the parameters change");
    s("max_frames", c.max_frames, "decisions of all actors together").at_least(1);
    s("evaluate_every", c.evaluate_every, "frames between two evaluations, and one at the end").at_least(1);
    s("target", c.target, "the training ends early when an evaluation's mean return reaches this").default_text("none");
    s("goal", c.goal, "a mean return of the best evaluation below this = failure (exit 1)").default_text("none");
    s("checkpoint", c.checkpoint, "what a later run can go on from and `caftan play` shows, in the run's folder");
    s("resume", c.resume, "go on from this checkpoint, or from the newest one of this run's folder")
        .default_text("none: start anew");
  }
};

/// What the role type "actor_critic.actor" reads.
struct ActorConfig {
  std::int64_t environments = 16;
  rl::GymnasiumOptions gymnasium{};

  static void settings(auto& s, ActorConfig& c) {
    s("environments", c.environments, "that this actor steps together").range(1, 4096);
    s("gymnasium", c.gymnasium, "for environments of Gymnasium");
  }
};

/// What the role type "actor_critic.evaluator" reads.
struct EvaluatorConfig {
  std::int64_t episodes = 100;
  std::int64_t most_steps = 100'000;
  rl::GymnasiumOptions gymnasium{};

  static void settings(auto& s, EvaluatorConfig& c) {
    s("episodes", c.episodes, "of an evaluation, each with the most probable actions").range(1, 4096);
    s("most_steps", c.most_steps, "an episode that is longer is cut").at_least(1).unit("decisions");
    s("gymnasium", c.gymnasium, "for environments of Gymnasium");
  }
};

}  // namespace caftan::actor_critic
