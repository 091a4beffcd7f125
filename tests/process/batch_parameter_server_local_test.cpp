// The server and its trainers against one process that averages the same gradients by hand: after some rounds the
// parameters differ by 1e-6 at most.
#include <ATen/Parallel.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "batch_parameter_server/requirements.hpp"
#include "caftan/app/seeds.hpp"
#include "checkpoints/model_checkpoint.hpp"
#include "command.hpp"
#include "image_training/learner.hpp"
#include "programs.hpp"

namespace caftan::test::batch_parameter_server_local_test {
namespace {

using image_data::Batches;
using image_data::DataConfig;
using image_training::Learner;

constexpr std::uint32_t kTrainers = 3;
constexpr double kRate = 0.03;
constexpr double kMomentum = 0.9;

struct Case {
  std::string model;
  models::ModelName name;
  std::int64_t rounds;
};

std::uint64_t seed(const char* role, std::uint32_t replica, const char* purpose) {
  return app::stream_seed(1, role, replica, purpose);
}

/// Trains with the settings of configs/batch_parameter_server.test.toml, without any of the server's code.
std::vector<at::Tensor> train_alone(const Case& c) {
  const image_data::DataSet data = image_data::read_data({.name = DataConfig::Name::shapes}).value();
  const auto model = models::make_model(c.name, 10, {.parameters = seed("server", 0, "parameters")}).value();
  std::vector<at::Tensor> parameters = image_training::copies_of(model->parameters());
  std::vector<Learner> learners;
  for (std::uint32_t i = 0; i < kTrainers; ++i) {
    auto own = models::make_model(c.name, 10, {.dropout = seed("trainer", i, "dropout")}).value();
    learners.emplace_back(
        std::move(own), data,
        Batches::make(
            {.images = 2000, .batch = 16, .trainer = i, .trainers = kTrainers, .seed = seed("server", 0, "data")})
            .value());
  }
  std::vector<at::Tensor> momentum;
  for (const at::Tensor& parameter : parameters) momentum.push_back(at::zeros_like(parameter));
  for (std::int64_t round = 0; round < c.rounds; ++round) {
    std::vector<at::Tensor> sum;
    for (Learner& learner : learners) {
      learner.load_parameters(parameters).value();
      auto gradients = learner.compute(round).values;
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (i < sum.size()) {
          sum[i] = sum[i] + gradients[i];
        } else {
          sum.push_back(gradients[i]);
        }
      }
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const at::Tensor mean = sum[i] / static_cast<double>(kTrainers);
      momentum[i] = round == 0 ? mean : kMomentum * momentum[i] + mean;
      parameters[i] = parameters[i] - kRate * momentum[i];
    }
  }
  return parameters;
}

class BatchServerAlone : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Models, BatchServerAlone,
                         ::testing::Values(Case{"convnet", models::ModelName::convnet, 20},
                                           Case{"resnet18", models::ModelName::resnet18, 2}),
                         [](const auto& info) { return info.param.model; });

TEST_P(BatchServerAlone, EqualsAveragingInOneProcess) {
  const Case& c = GetParam();
  at::set_num_threads(1);  // as workers have it
  const Folder folder;
  const std::string server = "roles.server.config.";
  const Finished finished =
      run_to_end(folder, kCaftan,
                 {"run", kConfigs + "/batch_parameter_server.test.toml", server + "model=" + c.model,
                  server + "rounds=" + std::to_string(c.rounds), server + "goal=0.0", server + "evaluate_every=0"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto checkpoint = checkpoints::read_checkpoint(folder.path() / "runs/latest", {{"model", c.model}}).value();
  EXPECT_EQ(checkpoint.step, c.rounds);
  const std::vector<at::Tensor> alone = train_alone(c);
  ASSERT_EQ(checkpoint.parameters.size(), alone.size());
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_LE((checkpoint.parameters[i] - alone[i]).abs().max().item<double>(), 1e-6) << i;
  }
}

TEST(BatchServerAlone, WithoutTheFirstTrainerStatisticsGoOnAndNoRoundWaits) {
  const Folder folder;
  const std::string server = "roles.server.config.";
  Command command(
      folder, kCaftan,
      {"run", kConfigs + "/batch_parameter_server.test.toml", "roles.trainer.on_loss=go_on", "run.deterministic=false",
       server + "model=resnet18", server + "rounds=8", server + "goal=0.0", server + "quorum=2",
       server + "straggler_timeout=1h", server + "evaluate_every=0", "roles.trainer.config.batch=2"});
  ASSERT_TRUE(command.wait_for_line("trains resnet18"));
  ASSERT_NE(command.worker("trainer-0"), 0);
  ASSERT_EQ(::kill(command.worker("trainer-0"), SIGKILL), 0);
  EXPECT_EQ(command.wait(), 0) << command.err();
  EXPECT_THAT(command.err(), ::testing::HasSubstr("lost: trainer-0 was killed by signal 9"));
  const auto checkpoint = checkpoints::read_checkpoint(folder.path() / "runs/latest", {{"model", "resnet18"}}).value();
  EXPECT_EQ(checkpoint.step, 8);
  int counters = 0;
  for (const at::Tensor& buffer : checkpoint.buffers) {
    if (buffer.scalar_type() != at::kLong) continue;  // num_batches_tracked
    EXPECT_EQ(buffer.item<std::int64_t>(), 8) << "those of a trainer that has seen every round";
    ++counters;
  }
  EXPECT_GT(counters, 0);
}

}  // namespace
}  // namespace caftan::test::batch_parameter_server_local_test
