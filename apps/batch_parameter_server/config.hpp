/// The settings of the batch-updating parameter server, as [roles.NAME.config] of an application file gives them; those
/// of its trainers are image_training::TrainerConfig. Each struct is declared once, in `settings`: parsing, ranges,
/// `caftan help` and docs/configuration.md come from there.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "checkpoints/checkpoint_config.hpp"
#include "image_training/config.hpp"
#include "models/model_name.hpp"

namespace caftan::batch_parameter_server {

/// What the role type "batch_parameter_server.server" reads.
struct ServerConfig {
  models::ModelName model = models::ModelName::convnet;
  std::int64_t rounds = 200;
  std::optional<std::uint32_t> quorum{};  ///< trainers; together with straggler_timeout
  std::optional<std::chrono::nanoseconds> straggler_timeout{};
  image_training::OptimizerConfig optimizer{};
  std::int64_t evaluate_every = 0;  ///< rounds
  std::optional<double> goal{};     ///< accuracy
  checkpoints::CheckpointConfig checkpoint{};
  std::optional<std::filesystem::path> resume{};

  static void settings(auto& s, ServerConfig& c) {
    using namespace std::chrono_literals;
    s("model", c.model, "what is trained").one_of(models::model_choices());
    s("rounds", c.rounds, "steps of the model, each with one gradient of each trainer").at_least(1);
    s("quorum", c.quorum, "gradients that make a step without the others, together with straggler_timeout")
        .at_least(1)
        .default_text("all trainers");
    s("straggler_timeout", c.straggler_timeout, "how long gradients wait for those of other trainers")
        .range(1ms, 1h)
        .default_text("none: they wait for all");
    s("optimizer", c.optimizer, "how the server changes the parameters");
    s("evaluate_every", c.evaluate_every, "rounds between two measurements of accuracy; 0 = only at the end")
        .at_least(0)
        .unit("rounds");
    s("goal", c.goal, "an accuracy at the end below this = failure (exit 1)").range(0, 1).default_text("none");
    s("checkpoint", c.checkpoint, "what a later run can go on from, in the run's folder; each round is a step");
    checkpoints::resume_setting(s, c.resume);
  }
};

}  // namespace caftan::batch_parameter_server
