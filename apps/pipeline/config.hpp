/// The settings of the pipeline's master, as [roles.NAME.config] of an application file gives them. Each struct is
/// declared once, in `settings`: parsing, ranges, `caftan help` and docs/configuration.md come from there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints/checkpoint_config.hpp"
#include "image_data/config.hpp"
#include "image_training/config.hpp"

namespace caftan::pipeline {

enum class ModelName : std::uint8_t { mlp, resnet18, resnet50 };

enum class ScheduleName : std::uint8_t { all_forward_then_backward, one_forward_one_backward };

/// What is only read with the model mlp.
struct MlpConfig {
  std::vector<std::int64_t> hidden{256, 128, 64};
  double dropout = 0;

  static void settings(auto& s, MlpConfig& c) {
    s("hidden", c.hidden, "sizes of the hidden layers, each 1..65536; the layers are fc1, fc2, ...");
    s("dropout", c.dropout, "probability of dropping a unit of a hidden layer while learning").at_least(0).less_than(1);
  }
};

/// What the role type "pipeline.master" reads.
struct MasterConfig {
  ModelName model = ModelName::resnet18;
  MlpConfig mlp{};
  std::vector<std::string> cuts{"layer3"};
  image_data::DataConfig data{.name = image_data::DataConfig::Name::shapes};
  std::optional<std::int64_t> image_size{};  ///< pixels
  std::int64_t batch = 16;
  std::optional<std::int64_t> micro_batch_size{};   ///< images
  std::optional<std::int64_t> num_micro_batches{};  ///< of a batch
  ScheduleName schedule = ScheduleName::one_forward_one_backward;
  bool checkpoint_activations = false;
  std::int64_t batches = 60;
  image_training::OptimizerConfig optimizer{.lr = 0.05};
  std::int64_t test_images = 500;
  std::optional<double> goal{};  ///< accuracy
  checkpoints::CheckpointConfig checkpoint{};
  std::optional<std::filesystem::path> resume{};

  static void settings(auto& s, MasterConfig& c) {
    s("model", c.model, "what is trained")
        .one_of({{"mlp", "linear layers, see `mlp`"},
                 {"resnet18", "11 million parameters"},
                 {"resnet50", "24 million parameters"}});
    s("mlp", c.mlp, "layers of the model mlp, not read with the others");
    s("cuts", c.cuts,
      "the layer with which each stage but the first begins, in their order: \"layer3\", \"layer3.1\", \"fc\" of a "
      "ResNet, \"fc2\" of mlp");
    s("data", c.data, "the images that the model learns from");
    s("image_size", c.image_size, "height and width that images are scaled to")
        .range(1, 4096)
        .unit("pixels")
        .default_text("as they are");
    s("batch", c.batch, "images of a step").range(1, 65536);
    s("micro_batch_size", c.micro_batch_size, "images that go through the stages together; or num_micro_batches")
        .range(1, 65536)
        .unit("images")
        .default_text("the whole batch");
    s("num_micro_batches", c.num_micro_batches, "pieces that a batch is cut into; or micro_batch_size")
        .range(1, 65536)
        .default_text("1");
    s("schedule", c.schedule, "when the backward of a micro-batch begins")
        .one_of({{"all_forward_then_backward", "after the forward of all"},
                 {"1f1b", "as soon as it can; a stage holds as many micro-batches as stages are left from it on"}});
    s("checkpoint_activations", c.checkpoint_activations,
      "stages keep only their inputs and run their forward again in the backward");
    s("batches", c.batches, "steps of the training").range(1, 1'000'000'000);
    s("optimizer", c.optimizer, "how the parameters of all stages change");
    s("test_images", c.test_images, "test images that are classified at the end; 0 = none").at_least(0).unit("images");
    s("goal", c.goal, "an accuracy at the end below this = failure (exit 1)").range(0, 1).default_text("none");
    s("checkpoint", c.checkpoint, "what a later run can go on from, in the run's folder; each batch is a step");
    checkpoints::resume_setting(s, c.resume);
  }
};

/// What the role type "pipeline.stage" reads: nothing yet. The requirements of the master see a worker by its config.
struct StageConfig {
  static void settings(auto& /*s*/, StageConfig& /*c*/) {}
};

/// Returns a choice as the file has it.
std::string name_of(ModelName model);
std::string name_of(ScheduleName schedule);

}  // namespace caftan::pipeline
