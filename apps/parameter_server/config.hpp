/// The settings of the parameter server, as [roles.NAME.config] of an application file gives them; those of its
/// trainers are image_training::TrainerConfig. Each struct is declared once, in `settings`: parsing, ranges,
/// `caftan help` and docs/configuration.md come from there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "caftan/nn/consistency.hpp"
#include "checkpoints/checkpoint_config.hpp"
#include "image_training/config.hpp"
#include "models/model_name.hpp"

namespace caftan::parameter_server {

/// What the role type "parameter_server.server" reads.
struct ServerConfig {
  models::ModelName model = models::ModelName::convnet;
  nn::ConsistencyOptions consistency{};
  std::int64_t epochs = 1;
  std::optional<std::int64_t> max_steps{};  ///< of each trainer
  image_training::OptimizerConfig optimizer{};
  std::int64_t evaluate_every = 0;  ///< steps of each trainer
  std::optional<double> goal{};     ///< accuracy
  bool step_log = false;
  checkpoints::CheckpointConfig checkpoint{};
  std::optional<std::filesystem::path> resume{};

  static void settings(auto& s, ServerConfig& c) {
    s("model", c.model, "what is trained").one_of(models::model_choices());
    s("consistency", c.consistency, "what the trainers see of each other's steps");
    s("epochs", c.epochs, "how often each trainer goes through its images").range(1, 1'000'000);
    s("max_steps", c.max_steps, "steps of each trainer, if these are fewer than its epochs have")
        .at_least(1)
        .default_text("none");
    s("optimizer", c.optimizer, "how the server changes the parameters");
    s("evaluate_every", c.evaluate_every,
      "steps of each trainer between two measurements of accuracy, for which all trainers wait; 0 = only at the end")
        .at_least(0)
        .unit("steps");
    s("goal", c.goal, "an accuracy at the end below this = failure (exit 1)").range(0, 1).default_text("none");
    s("step_log", c.step_log, "a line for each step of the model, in steps.log of the run's folder");
    s("checkpoint", c.checkpoint,
      "what a later run can go on from, in the run's folder; steps are those of each trainer, and all wait for it");
    checkpoints::resume_setting(s, c.resume);
  }
};

}  // namespace caftan::parameter_server
