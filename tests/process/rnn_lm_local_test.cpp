// The split model against the same model in this process: after 50 steps every parameter is equal bit for bit.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "caftan/app/seeds.hpp"
#include "caftan/optim/clipping.hpp"
#include "caftan/optim/local_optimizer.hpp"
#include "command.hpp"
#include "programs.hpp"
#include "rnn_lm/checkpoint.hpp"
#include "rnn_lm/local.hpp"

namespace caftan::test::rnn_lm_local_test {
namespace {

using rnn_lm::OptimizerConfig;

struct Case {
  std::string name;
  OptimizerConfig::Name optimizer = OptimizerConfig::Name::adam;
  double lr = 1e-2;
  double clip = 0;
  double dropout = 0;
  int layers = 1;
  std::string placement = "processes";
};

/// Returns the trainer's config: that of configs/rnn_lm.test.toml with what the case changes.
rnn_lm::TrainerConfig config_of(const Case& c) {
  rnn_lm::TrainerConfig config;
  config.emb = 8;
  config.hid = 16;
  config.layers = c.layers;
  config.dropout = c.dropout;
  config.bptt = 16;
  config.batch = 8;
  return config;
}

/// The model of configs/rnn_lm.test.toml, in one process.
class LocalModel {
 public:
  explicit LocalModel(const Case& c) : clip_(c.clip), training_(make(c)) {
    optim::Algorithm algorithm = optim::Adam{.lr = c.lr};
    if (c.optimizer == OptimizerConfig::Name::sgd) algorithm = optim::SGD{.lr = c.lr};
    optimizer_.emplace(optim::LocalOptimizer::make({{training_.parameters(), algorithm}}).value());
  }

  void step() {
    static_cast<void>(training_.step([this](const std::vector<at::Tensor>& gradients) { apply(gradients); }).value());
  }
  const rnn_lm::LocalTraining& training() const { return training_; }

 private:
  static rnn_lm::LocalTraining make(const Case& c) {
    const rnn_lm::TrainerConfig config = config_of(c);
    const auto seed = [](const char* role, const char* purpose) { return app::stream_seed(1, role, 0, purpose); };
    return rnn_lm::LocalTraining::make(config, {.trainer = {.parameters = seed("trainer", "parameters"),
                                                            .dropout = seed("trainer", "dropout"),
                                                            .sample = seed("trainer", "sample")},
                                                .embedding_dropout = seed("ps", "dropout"),
                                                .decoder_dropout = seed("ps", "dropout")})
        .value();
  }

  /// Clips and steps as the distributed optimizer does over two owners: the squares of the norm are added owner by
  /// owner, the trainer's parameters first.
  void apply(const std::vector<at::Tensor>& gradients) {
    if (clip_ == 0) return static_cast<void>(optimizer_->step(gradients).value());
    const std::span all(gradients);
    const std::size_t own = training_.training().parameters().size();
    const double square = optim::squared_norm(all.first(own)) + optim::squared_norm(all.subspan(own));
    static_cast<void>(optimizer_->step(optim::scaled(all, optim::clip_scale(square, clip_))).value());
  }

  double clip_;
  rnn_lm::LocalTraining training_;
  std::optional<optim::LocalOptimizer> optimizer_;
};

class SplitModel : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    Cases, SplitModel,
    ::testing::Values(Case{.name = "adam"}, Case{.name = "sgd", .optimizer = OptimizerConfig::Name::sgd, .lr = 0.5},
                      Case{.name = "adam_one_process", .placement = "one_process"},
                      Case{.name = "clipped", .clip = 0.5, .layers = 2},
                      Case{.name = "dropout", .clip = 1, .dropout = 0.3, .layers = 2},
                      Case{.name = "dropout_one_process", .dropout = 0.3, .layers = 2, .placement = "one_process"}),
    [](const auto& info) { return info.param.name; });

TEST_P(SplitModel, EqualsTheLocalOneBitForBitAfter50Steps) {
  const Case& c = GetParam();
  at::set_num_threads(1);
  const Folder folder;
  const std::string config = "roles.trainer.config.";
  const Finished run = run_to_end(
      folder, kCaftan,
      {"run", kConfigs + "/rnn_lm.test.toml", "run.placement=" + c.placement, config + "max_steps=50",
       config + "validate_every=25", config + "checkpoint.every=50", config + "generate.chars=0", config + "goal=10.0",
       config + "dropout=" + std::to_string(c.dropout), config + "layers=" + std::to_string(c.layers),
       config + "optimizer.lr=" + std::to_string(c.lr), config + "optimizer.clip=" + std::to_string(c.clip),
       config + "optimizer.name=" + (c.optimizer == OptimizerConfig::Name::sgd ? "sgd" : "adam")});
  ASSERT_EQ(run.code, 0) << run.err;

  LocalModel local(c);
  for (int step = 0; step < 50; ++step) local.step();

  rnn_lm::TrainerConfig as_run = config_of(c);
  as_run.optimizer.name = c.optimizer;
  const auto split =
      rnn_lm::read_checkpoint(folder.path() / "runs" / "latest", rnn_lm::facts_of(as_run, local.training().training()));
  ASSERT_TRUE(split) << split.error().message();
  std::vector<at::Tensor> there = split->trainer;
  there.resize(local.training().training().parameters().size());
  there.insert(there.end(), split->embedding.begin(), split->embedding.end());
  there.insert(there.end(), split->decoder.begin(), split->decoder.end());
  const auto here = local.training().parameters();
  ASSERT_EQ(there.size(), here.size());
  for (std::size_t i = 0; i < here.size(); ++i) EXPECT_TRUE(there[i].equal(here[i].detach())) << "parameter " << i;
}

}  // namespace
}  // namespace caftan::test::rnn_lm_local_test
