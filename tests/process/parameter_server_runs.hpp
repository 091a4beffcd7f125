/// Runs of the parameter server in small, and the same training in one process.
#pragma once

#include <ATen/ops/cross_entropy_loss.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "caftan/app/seeds.hpp"
#include "caftan/nn/replay.hpp"
#include "checkpoints/model_checkpoint.hpp"
#include "image_data/batches.hpp"
#include "image_training/learner.hpp"
#include "parameter_server/served_model.hpp"
#include "programs.hpp"

namespace caftan::test {

inline const std::string kSharedFile = kConfigs + "/parameter_server.test.toml";
inline const std::string kSharing = "roles.server.config.";

inline std::vector<std::string> run_shared_file(std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(), {"run", kSharedFile});
  return overrides;
}

/// The trainers of configs/parameter_server.test.toml in one process: gradients of one step at given parameters.
class Alone {
 public:
  explicit Alone(std::uint32_t trainers) {
    for (std::uint32_t i = 0; i < trainers; ++i) {
      batches_.push_back(image_data::Batches::make({.images = 2000,
                                                    .batch = 16,
                                                    .trainer = i,
                                                    .trainers = trainers,
                                                    .seed = app::stream_seed(1, "server", 0, "data")})
                             .value());
    }
  }
  Result<std::vector<at::Tensor>> gradients(const nn::Contribution& of, std::span<const at::Tensor> parameters) {
    const auto step = static_cast<std::int64_t>(of.batch);
    const auto taken = image_training::take_images(data_, data_.train, batches_[of.trainer.value].at(step));
    image_training::copy_into(model_->parameters(), {parameters.begin(), parameters.end()}).value();
    const auto draw = parameter_server::draw_of(of.trainer.value, step);
    const at::Tensor loss = at::cross_entropy_loss(model_->forward(taken.images, draw), taken.labels);
    const auto all = torch::autograd::grad({loss}, model_->parameters());
    return std::vector<at::Tensor>(all.begin(), all.end());
  }
  std::vector<at::Tensor> first_parameters() const { return model_->parameters(); }

 private:
  image_data::DataSet data_ = image_data::read_data({.name = image_data::DataConfig::Name::shapes}).value();
  std::vector<image_data::Batches> batches_;
  std::shared_ptr<models::ImageModel> model_ =
      models::make_model(models::ModelName::convnet, 10,
                         {.parameters = app::stream_seed(1, "server", 0, "parameters"),
                          .dropout = app::stream_seed(1, "server", 0, "dropout")})
          .value();
};

/// Checks that the log of steps of a run, replayed in one process, gives the parameters of its last checkpoint bit for
/// bit (CM-17).
/// @param run   the run's folder
/// @param from  the checkpoint that the run went on from, if it did
inline void expect_replay(const std::filesystem::path& run, std::uint32_t trainers, const optim::Algorithm& algorithm,
                          const std::optional<checkpoints::ModelCheckpoint>& from = std::nullopt) {
  const nn::StepLog log = nn::read_step_log(run / "steps.log").value();
  Alone alone(trainers);
  std::vector<at::Tensor> parameters;
  for (const at::Tensor& first : from ? from->parameters : alone.first_parameters()) {
    parameters.push_back(first.detach().clone().requires_grad_(true));
  }
  auto optimizer = optim::LocalOptimizer::make({{parameters, algorithm}}).value();
  if (from) optimizer.load(from->optimizer).value();
  const auto replayed = nn::replay(
      log, optimizer,
      [&alone](const nn::Contribution& of, std::span<const at::Tensor> at) { return alone.gradients(of, at); });
  ASSERT_TRUE(replayed) << replayed.error();
  const auto last = checkpoints::read_checkpoint(run, {{"model", "convnet"}}).value();
  ASSERT_EQ(last.parameters.size(), parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) EXPECT_TRUE(last.parameters[i].equal(parameters[i])) << i;
}

}  // namespace caftan::test
