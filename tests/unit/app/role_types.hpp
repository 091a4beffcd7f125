/// Role types for the tests: the real CartPole configs, and small ones with one of everything.
#pragma once

#include "actor_critic/config.hpp"
#include "batch_parameter_server/config.hpp"
#include "caftan/app/internal/load.hpp"
#include "caftan/sim/clock_config.hpp"
#include "cartpole/config.hpp"
#include "cartpole_batch/config.hpp"
#include "cqn/cqn.hpp"
#include "hybrid_ddp/config.hpp"
#include "image_training/config.hpp"
#include "parameter_server/config.hpp"
#include "phold/phold.hpp"
#include "pipeline/config.hpp"
#include "ps_bench/config.hpp"
#include "quarter_car/quarter_car.hpp"
#include "rl_bench/config.hpp"
#include "rnn_lm/config.hpp"

namespace caftan::app::testing {

struct ServerConfig {
  struct Optimizer {
    std::string type = "sgd";
    double learning_rate = 0.03;
    static void settings(auto& s, Optimizer& c) {
      s("type", c.type, "update rule").one_of({"sgd", "adam"});
      s("learning_rate", c.learning_rate, "step size").greater_than(0);
    }
  };
  std::string model;
  int max_staleness = 16;
  Optimizer optimizer;
  std::optional<std::filesystem::path> data;

  static void settings(auto& s, ServerConfig& c) {
    s("model", c.model, "a registered module").required();
    s("max_staleness", c.max_staleness, "older gradients are refused").at_least(0);
    s("optimizer", c.optimizer, "how parameters move");
    s("data", c.data, "training data");
  }
};

/// Returns the two types of CartPole as the program registers them.
inline RoleTypes make_cartpole_types() {
  RoleTypes types;
  RoleType agent{.name = "cartpole.agent", .doc = "Learns CartPole by REINFORCE from its observers"};
  agent.config = SettingsDeclaration::of<cartpole::AgentConfig>();
  agent.uses = {{.name = "observers", .role_type = "cartpole.observer", .min = 1, .max = RoleUse::kAnyNumber}};
  agent.drives = true;
  RoleType observer{.name = "cartpole.observer", .doc = "Steps one environment and asks the agent for actions"};
  observer.config = SettingsDeclaration::of<cartpole::ObserverConfig>();
  types.add(std::move(agent)).value();
  types.add(std::move(observer)).value();
  return types;
}

/// Adds the types of the applications whose agents answer in batches.
inline void add_batching_types(RoleTypes& types) {
  RoleType batching{.name = "cartpole_batch.agent",
                    .doc = "Learns CartPole from observers whose requests for actions it answers in batches"};
  batching.config = SettingsDeclaration::of<cartpole_batch::AgentConfig>();
  batching.uses = {{.name = "observers", .role_type = "cartpole_batch.observer", .min = 1, .max = RoleUse::kAnyNumber}};
  batching.drives = true;
  RoleType stepping{.name = "cartpole_batch.observer",
                    .doc = "Steps one environment, a fixed number of steps a call, and asks the agent for actions"};
  stepping.config = SettingsDeclaration::of<cartpole::ObserverConfig>();
  types.add(std::move(batching)).value();
  types.add(std::move(stepping)).value();
  RoleType coordinator{.name = "rl_bench.coordinator",
                       .doc =
                           "Measures calls between an agent and observers, as PyTorch's benchmark of RPC for "
                           "reinforcement learning does"};
  coordinator.config = SettingsDeclaration::of<rl_bench::CoordinatorConfig>();
  coordinator.uses = {{.name = "agent", .role_type = "rl_bench.agent"},
                      {.name = "observers", .role_type = "rl_bench.observer", .min = 1, .max = RoleUse::kAnyNumber}};
  coordinator.drives = true;
  RoleType measured{
      .name = "rl_bench.agent",
      .doc = "Chooses actions on random states, in batches or one by one, and measures how long that takes"};
  measured.config = SettingsDeclaration::of<rl_bench::AgentConfig>();
  measured.uses = {{.name = "observers", .role_type = "rl_bench.observer", .min = 1, .max = RoleUse::kAnyNumber}};
  RoleType asking{.name = "rl_bench.observer",
                  .doc = "Sends random states to the agent and measures how long its replies take"};
  types.add(std::move(coordinator)).value();
  types.add(std::move(measured)).value();
  types.add(std::move(asking)).value();
}

/// Adds the types of the benchmark of parameter servers.
inline void add_ps_bench_types(RoleTypes& types) {
  RoleType server{
      .name = "ps_bench.server",
      .doc = "Averages the gradients of its trainers, or makes steps of them, and measures how long that takes"};
  RoleType trainer{
      .name = "ps_bench.trainer",
      .doc = "Computes gradients of a model that learns nothing, sends them to its servers, and measures each part"};
  RoleType master{
      .name = "ps_bench.master",
      .doc = "Measures parameter servers and their trainers, as PyTorch's benchmark of parameter servers does"};
  master.config = SettingsDeclaration::of<ps_bench::MasterConfig>();
  master.uses = {{.name = "servers", .role_type = "ps_bench.server", .min = 1, .max = RoleUse::kAnyNumber},
                 {.name = "trainers", .role_type = "ps_bench.trainer", .min = 1, .max = RoleUse::kAnyNumber}};
  master.drives = true;
  types.add(std::move(server)).value();
  types.add(std::move(trainer)).value();
  types.add(std::move(master)).value();
}

/// Adds the types of pipeline parallelism.
inline void add_pipeline_types(RoleTypes& types) {
  RoleType master{.name = "pipeline.master",
                  .doc =
                      "Trains a model that is cut into stages, in micro-batches that overlap; has the images and the "
                      "loss"};
  master.config = SettingsDeclaration::of<pipeline::MasterConfig>();
  master.uses = {{.name = "stages", .role_type = "pipeline.stage", .min = 2, .max = RoleUse::kAnyNumber}};
  master.drives = true;
  RoleType stage{.name = "pipeline.stage", .doc = "Has one stage of a pipeline's model"};
  stage.config = SettingsDeclaration::of<pipeline::StageConfig>();
  types.add(std::move(master)).value();
  types.add(std::move(stage)).value();
}

/// Adds the types of data parallelism beside an embedding on a server.
inline void add_hybrid_types(RoleTypes& types) {
  RoleType master{
      .name = "hybrid_ddp.master",
      .doc = "Lets trainers learn which text a passage is from: an embedding on a server, a replicated dense layer"};
  master.config = SettingsDeclaration::of<hybrid_ddp::MasterConfig>();
  master.uses = {{.name = "ps", .role_type = "hybrid_ddp.ps"},
                 {.name = "trainers", .role_type = "hybrid_ddp.trainer", .min = 2, .max = RoleUse::kAnyNumber}};
  master.drives = true;
  RoleType words{.name = "hybrid_ddp.ps", .doc = "A worker for the embedding of hybrid data parallelism"};
  RoleType replica{.name = "hybrid_ddp.trainer",
                   .doc = "Trains its replica of the dense layer, and the embedding on the server"};
  replica.config = SettingsDeclaration::of<hybrid_ddp::TrainerConfig>();
  for (RoleType* const type : {&master, &words, &replica}) types.add(std::move(*type)).value();
}

/// Adds the two types of a simulation.
template <class Model>
void add_simulation_types(RoleTypes& types, const std::string& name) {
  RoleType partition{.name = name + ".partition", .doc = "Holds a part of the logical processes of the model " + name};
  partition.config = SettingsDeclaration::of<typename Model::Config>();
  RoleType clock{.name = name + ".clock",
                 .doc = "Gives out virtual time to the partitions of the model " + name + ", and drives the run"};
  clock.config = SettingsDeclaration::of<sim::ClockConfig>();
  clock.uses = {{.name = "partitions", .role_type = name + ".partition", .min = 1, .max = RoleUse::kAnyNumber}};
  clock.drives = true;
  types.add(std::move(partition)).value();
  types.add(std::move(clock)).value();
}

/// Adds the types of actors, a learner and an evaluator.
inline void add_actor_critic_types(RoleTypes& types) {
  RoleType learner{.name = "actor_critic.learner",
                   .doc = "Learns a policy and values from what its actors play, with V-trace or clipped ratios"};
  learner.config = SettingsDeclaration::of<actor_critic::LearnerConfig>();
  learner.uses = {{.name = "actors", .role_type = "actor_critic.actor", .min = 1, .max = RoleUse::kAnyNumber},
                  {.name = "evaluator", .role_type = "actor_critic.evaluator", .min = 0, .max = 1}};
  learner.drives = true;
  RoleType actor{.name = "actor_critic.actor",
                 .doc = "Plays environments with a copy of the learner's policy, and sends what it has played"};
  actor.config = SettingsDeclaration::of<actor_critic::ActorConfig>();
  RoleType evaluator{.name = "actor_critic.evaluator",
                     .doc = "Plays whole episodes with the most probable actions, apart from the training"};
  evaluator.config = SettingsDeclaration::of<actor_critic::EvaluatorConfig>();
  for (RoleType* const type : {&learner, &actor, &evaluator}) types.add(std::move(*type)).value();
}

/// Returns the types of all built-in applications as the command registers them.
inline RoleTypes make_shipped_types() {
  RoleTypes types = make_cartpole_types();
  add_batching_types(types);
  add_ps_bench_types(types);
  add_pipeline_types(types);
  add_hybrid_types(types);
  add_simulation_types<phold::Phold>(types, "phold");
  add_simulation_types<cqn::Cqn>(types, "cqn");
  add_simulation_types<quarter_car::QuarterCar>(types, "quarter_car");
  add_actor_critic_types(types);
  RoleType averaging{.name = "batch_parameter_server.server",
                     .doc = "Owns a model and makes each step of it from one gradient of each trainer"};
  averaging.config = SettingsDeclaration::of<batch_parameter_server::ServerConfig>();
  averaging.uses = {
      {.name = "trainers", .role_type = "batch_parameter_server.trainer", .min = 1, .max = RoleUse::kAnyNumber}};
  averaging.drives = true;
  RoleType averaged{.name = "batch_parameter_server.trainer",
                    .doc = "Computes gradients of a batch-updating parameter server's model from its images"};
  averaged.config = SettingsDeclaration::of<image_training::TrainerConfig>();
  types.add(std::move(averaging)).value();
  types.add(std::move(averaged)).value();
  RoleType sharing{.name = "parameter_server.server",
                   .doc = "Owns a model that its trainers share, in the consistency mode of the file"};
  sharing.config = SettingsDeclaration::of<parameter_server::ServerConfig>();
  sharing.uses = {{.name = "trainers", .role_type = "parameter_server.trainer", .min = 1, .max = RoleUse::kAnyNumber}};
  sharing.drives = true;
  RoleType shared{.name = "parameter_server.trainer",
                  .doc = "Trains the model of a parameter server with its images, through distributed autograd"};
  shared.config = SettingsDeclaration::of<image_training::TrainerConfig>();
  types.add(std::move(sharing)).value();
  types.add(std::move(shared)).value();
  RoleType server{.name = "rnn_lm.ps", .doc = "Holds the embedding table, the decoder, or both, of a language model"};
  RoleType trainer{
      .name = "rnn_lm.trainer",
      .doc = "Trains a character language model whose LSTM it holds, and whose other parts are on other workers"};
  trainer.config = SettingsDeclaration::of<rnn_lm::TrainerConfig>();
  trainer.uses = {{.name = "embedding", .role_type = "rnn_lm.ps"}, {.name = "decoder", .role_type = "rnn_lm.ps"}};
  trainer.drives = true;
  types.add(std::move(server)).value();
  types.add(std::move(trainer)).value();
  return types;
}

/// CartPole, and a parameter server whose trainers use exactly one server and may use each other.
inline RoleTypes make_types() {
  RoleTypes types = make_cartpole_types();
  RoleType server{.name = "parameter_server.server"};
  server.config = SettingsDeclaration::of<ServerConfig>();
  server.requirements = [](const std::any& config, const RolePlace& place) -> std::vector<MissingRequirement> {
    const auto& server = std::any_cast<const ServerConfig&>(config);
    if (server.model == "huge") {
      return {{.keys = {"model", "optimizer.type"},
               .text = "no room for '" + place.role + "' of seed " + std::to_string(place.root_seed)}};
    }
    if (!server.data || std::filesystem::exists(*server.data)) return {};
    return {{.keys = {"data"}, .text = "no data there; apt-get install dataset-fashion-mnist"}};
  };
  RoleType trainer{.name = "parameter_server.trainer", .drives = true};
  trainer.uses = {{.name = "server", .role_type = "parameter_server.server"},
                  {.name = "peers", .role_type = "parameter_server.trainer", .min = 0, .max = 3}};
  types.add(std::move(server)).value();
  types.add(std::move(trainer)).value();
  return types;
}

inline LoadedApplication load(std::string_view text, std::vector<std::string> overrides = {},
                              LoadMode mode = LoadMode::check) {
  const RoleTypes types = make_types();
  return parse_application(text, "app.toml", overrides, types, {.mode = mode, .cores = 64});
}

}  // namespace caftan::app::testing
