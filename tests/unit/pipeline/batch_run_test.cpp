// Batches over a cluster: the parameters after some steps are those of the model that was not split, bit for bit.
#include "pipeline/batch_run.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <vector>

#include "caftan/caftan.hpp"
#include "caftan/nn/fill_normal.hpp"
#include "caftan/optim/local_optimizer.hpp"
#include "caftan/testing/cluster.hpp"
#include "pipeline/staged_model.hpp"

namespace caftan::pipeline::batch_run_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kAll = ScheduleName::all_forward_then_backward;
constexpr auto kOne = ScheduleName::one_forward_one_backward;
const optim::Algorithm kAlgorithm = optim::SGD{.lr = 0.1, .momentum = 0.5};

Registry make_registry() {
  Registry registry;
  register_stages(registry);
  return registry;
}

ModelSpec mlp(double dropout = 0) {
  return {.model = ModelName::mlp,
          .hidden = {12, 10, 8},
          .dropout = dropout,
          .inputs = 6,
          .classes = 5,
          .parameter_seed = 3,
          .dropout_seed = 4};
}
ModelSpec resnet() { return {.model = ModelName::resnet18, .classes = 5, .parameter_seed = 3, .dropout_seed = 4}; }

at::Tensor noise(std::vector<std::int64_t> sizes, std::uint64_t seed) {
  at::Tensor tensor = at::empty(sizes);
  nn::fill_normal(tensor, {.seed = seed}, 0, 1);
  return tensor;
}

Batch batch_of(const ModelSpec& model, std::uint64_t step, const std::vector<Rows>& pieces) {
  const std::int64_t rows = pieces.back().end;
  at::Tensor labels = at::empty({rows}, at::kLong);
  for (std::int64_t row = 0; row < rows; ++row) labels[row] = (row * 3 + static_cast<std::int64_t>(step)) % 5;
  auto images = model.model == ModelName::mlp ? noise({rows, 6}, step) : noise({rows, 1, 16, 16}, step);
  return {.step = step, .images = images, .labels = labels, .pieces = pieces};
}

/// The model at two or three workers, and a master that takes steps.
class Split {
 public:
  /// @param ends  of the stages: units
  Split(std::uint64_t seed, const ModelSpec& model, const std::vector<std::uint64_t>& ends, bool checkpoints = false)
      : cluster_(seed, names(ends.size()), make_registry) {
    StagedModel::Options options{
        .home = "master", .spec = {.model = model, .checkpoints = checkpoints}, .algorithm = kAlgorithm};
    std::size_t first = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      options.places.push_back({"stage-" + std::to_string(i), {first, ends[i]}});
      first = ends[i];
    }
    model_.emplace(StagedModel::try_make(cluster_["master"], options).value());
  }

  Result<double> step(ScheduleName schedule, Batch batch) {
    BatchRun run(cluster_["master"], stages(), schedule, std::move(batch));
    return run.run(model_->optimizer(), {});
  }
  /// Returns parameters and buffers of all stages, parameters of each first.
  std::vector<nn::NamedTensor> state() const {
    std::vector<nn::NamedTensor> all;
    for (const RemoteStage& stage : stages()) {
      for (nn::NamedTensor& one : stage.state_dict()) all.push_back(std::move(one));
    }
    return all;
  }
  const std::vector<RemoteStage>& stages() const { return model_->stages(); }
  StagedModel& model() { return *model_; }
  testing::Cluster& cluster() { return cluster_; }

 private:
  static std::vector<std::string> names(std::size_t stages) {
    std::vector<std::string> names{"master"};
    for (std::size_t i = 0; i < stages; ++i) names.push_back("stage-" + std::to_string(i));
    return names;
  }

  testing::Cluster cluster_;
  std::optional<StagedModel> model_;
};

/// The same model in one piece, without calls.
class Whole {
 public:
  explicit Whole(const ModelSpec& model) : part_(ModelPart::make(model, whole(model)).value()) {
    for (const auto& one : part_.named_parameters()) parameters_.push_back(one.tensor);
    optimizer_.emplace(optim::LocalOptimizer::make({{parameters_, kAlgorithm}}).value());
  }

  double step(const Batch& batch) {
    std::vector<at::Tensor> sums;
    double total = 0;
    for (const Rows& rows : batch.pieces) {
      const at::Tensor logits =
          part_.forward(batch.images.slice(0, rows.first, rows.end), {.step = batch.step, .first_row = rows.first});
      const double share = static_cast<double>(rows.size()) / static_cast<double>(batch.labels.size(0));
      const at::Tensor loss = at::cross_entropy_loss(logits, batch.labels.slice(0, rows.first, rows.end)).mul(share);
      total += loss.item<double>();
      const auto gradients = torch::autograd::grad({loss}, parameters_);
      if (sums.empty()) {
        sums.assign(gradients.begin(), gradients.end());
      } else {
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = sums[i] + gradients[i];
      }
    }
    optimizer_->step(sums).value();
    return total;
  }
  at::Tensor value(const std::string& name) const {
    for (const auto& list : {part_.named_parameters(), part_.named_buffers()}) {
      for (const nn::NamedTensor& one : list) {
        if (one.name == name) return one.tensor.detach();
      }
    }
    return {};
  }
  std::size_t tensors() const { return part_.named_parameters().size() + part_.named_buffers().size(); }

 private:
  static models::UnitRange whole(const ModelSpec& model) {
    return {0, model.model == ModelName::mlp ? model.hidden.size() + 1 : 10};
  }

  ModelPart part_;
  std::vector<at::Tensor> parameters_;
  std::optional<optim::LocalOptimizer> optimizer_;
};

void expect_equal(const Split& split, const Whole& whole) {
  const auto state = split.state();
  EXPECT_EQ(state.size(), whole.tensors());
  for (const nn::NamedTensor& one : state) {
    const at::Tensor wanted = whole.value(one.name);
    ASSERT_TRUE(wanted.defined()) << one.name;
    EXPECT_TRUE(one.tensor.equal(wanted)) << one.name;
  }
}

struct Case {
  std::string name;
  ModelSpec model;
  std::vector<std::uint64_t> ends;
  ScheduleName schedule = kOne;
  bool checkpoints = false;
  std::vector<Rows> pieces{{0, 2}, {2, 4}, {4, 6}, {6, 7}};
};

class Batches : public ::testing::TestWithParam<Case> {
 protected:
  Batches() { at::set_num_threads(1); }  // as workers have it
};
INSTANTIATE_TEST_SUITE_P(
    Cases, Batches,
    ::testing::Values(Case{.name = "mlp", .model = mlp(), .ends = {2, 4}},
                      Case{.name = "mlp_all_forward", .model = mlp(), .ends = {2, 4}, .schedule = kAll},
                      Case{.name = "three_stages", .model = mlp(0.3), .ends = {1, 2, 4}},
                      Case{.name = "three_stages_all_forward", .model = mlp(0.3), .ends = {1, 2, 4}, .schedule = kAll},
                      Case{.name = "checkpointed", .model = mlp(0.3), .ends = {2, 4}, .checkpoints = true},
                      Case{.name = "one_piece", .model = mlp(), .ends = {3, 4}, .pieces = {{0, 7}}},
                      Case{.name = "resnet", .model = resnet(), .ends = {5, 10}, .pieces = {{0, 2}, {2, 4}, {4, 6}}},
                      Case{.name = "resnet_checkpointed",
                           .model = resnet(),
                           .ends = {5, 10},
                           .schedule = kAll,
                           .checkpoints = true,
                           .pieces = {{0, 2}, {2, 4}, {4, 6}}}),
    [](const auto& info) { return info.param.name; });

TEST_P(Batches, GiveTheParametersOfTheModelThatWasNotSplitBitForBit) {
  const Case& c = GetParam();
  const bool is_small = c.model.model == ModelName::mlp;
  for (std::uint64_t seed = 1; seed <= (is_small ? 5U : 1U); ++seed) {
    Split split(seed, c.model, c.ends, c.checkpoints);
    Whole whole(c.model);
    for (std::uint64_t step = 0; step < (is_small ? 3U : 2U); ++step) {
      const Batch batch = batch_of(c.model, step, c.pieces);
      const auto loss = split.step(c.schedule, batch);
      ASSERT_TRUE(loss) << loss.error();
      EXPECT_EQ(*loss, whole.step(batch));
    }
    expect_equal(split, whole);
  }
}

TEST(BatchesInPieces, GiveTheSumOfTheWholeBatchDropoutIncluded) {
  at::set_num_threads(1);
  Split split(1, mlp(0.3), {2, 4});
  Whole whole(mlp(0.3));
  const Batch pieces = batch_of(mlp(), 0, {{0, 3}, {3, 4}, {4, 8}});
  ASSERT_TRUE(split.step(kOne, pieces));
  whole.step(batch_of(mlp(), 0, {{0, 8}}));
  for (const nn::NamedTensor& one : split.state()) {
    EXPECT_TRUE(at::allclose(one.tensor, whole.value(one.name), 1e-5, 1e-6)) << one.name;
  }
}

std::vector<std::uint32_t> most_held(const Split& split) {
  std::vector<std::uint32_t> held;
  for (const RemoteStage& stage : split.stages()) held.push_back(stage.rpc_sync<&StageModule::report>().most_held);
  return held;
}

TEST(BatchesInPieces, AreHeldByTheScheduleAndNotedByTheStages) {
  const std::vector<Rows> pieces{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}};
  Split split(1, mlp(), {1, 2, 4});
  ASSERT_TRUE(split.step(kAll, batch_of(mlp(), 0, pieces)));
  EXPECT_THAT(most_held(split), ElementsAre(5, 5, 5));
  ASSERT_TRUE(split.step(kOne, batch_of(mlp(), 1, pieces)));
  EXPECT_THAT(most_held(split), ElementsAre(3, 2, 1));
  ASSERT_TRUE(split.step(kOne, batch_of(mlp(), 2, pieces)));
  for (const RemoteStage& stage : split.stages()) {
    const StageReport report = stage.rpc_sync<&StageModule::report>();
    EXPECT_EQ(report.works.size(), 2 * pieces.size());
    EXPECT_GT(report.peak_memory, 0);
    for (const Work& work : report.works) EXPECT_LE(work.begin, work.end);
  }
}

TEST(BatchesInPieces, GoFromStageToStageAndNotThroughTheMaster) {
  ModelSpec wide = mlp();
  wide.hidden = {4096};
  Split split(1, wide, {1, 2});
  ASSERT_TRUE(split.step(kOne, batch_of(wide, 0, {{0, 4}, {4, 8}})));
  const auto bytes = [&](const char* worker) {
    const auto counters = split.cluster()[worker].counters();
    return counters.bytes_out + counters.bytes_in;
  };
  const auto master = bytes("master");
  const auto stage = bytes("stage-1");
  ASSERT_TRUE(split.step(kOne, batch_of(wide, 1, {{0, 4}, {4, 8}})));
  constexpr std::uint64_t kCut = 8 * 4096 * sizeof(float);  // bytes of what goes from one stage to the other, and back
  EXPECT_LT(bytes("master") - master, kCut / 4);
  EXPECT_GE(bytes("stage-1") - stage, 2 * kCut);
}

TEST(Stages, ThatDoNotFitEachOtherAreNamed) {
  Split split(1, mlp(), {1, 2});
  std::vector<RemoteStage> mixed = split.stages();
  StageSpec spec{.model = mlp(), .first_unit = 2, .end_unit = 4, .next = "master"};
  mixed[1] = RemoteStage(split.cluster()["master"], "stage-1", spec);
  std::vector<RRef<at::Tensor>> parameters;
  for (const RemoteStage& stage : mixed) {
    for (const auto& parameter : stage.parameters()) parameters.push_back(parameter);
  }
  optim::DistributedOptimizer optimizer(split.cluster()["master"], parameters, optim::SGD{.lr = 1});
  BatchRun run(split.cluster()["master"], mixed, kOne, batch_of(mlp(), 0, {{0, 2}, {2, 4}}));
  const auto refused = run.run(optimizer, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::bad_arguments);
  EXPECT_EQ(refused.error().worker(), "stage-1");
  EXPECT_THAT(refused.error().text(),
              HasSubstr("the first layer of this stage takes [B, 10], the stage before gave [2, 12]"));
}

TEST(Stages, ThatCannotBeAreTheErrorOfEachUse) {
  testing::Cluster cluster(1, {"master", "stage-0"}, make_registry);
  const auto error_of = [&cluster](const StageSpec& spec) {
    return RemoteStage(cluster["master"], "stage-0", spec).try_parameters().error().text();
  };
  EXPECT_THAT(error_of({.model = mlp(), .first_unit = 3, .end_unit = 9}), HasSubstr("the units 3 to 9 of 4"));
  EXPECT_THAT(error_of({.model = mlp(), .first_unit = 1, .end_unit = 1}), HasSubstr("the units 1 to 1"));
  StageSpec none{.model = resnet(), .end_unit = 3};
  none.model.classes = 0;
  EXPECT_THAT(error_of(none), HasSubstr("0 classes"));
  StageSpec empty{.model = mlp(1.0), .end_unit = 3};
  EXPECT_THAT(error_of(empty), HasSubstr("dropout probability"));
}

checkpoints::ModelCheckpoint checkpoint_of(Split& split) {
  const auto tensors = split.model().tensors().value();
  return {.parameters = tensors.parameters, .buffers = tensors.buffers, .optimizer = split.model().optimizer().save()};
}

TEST(StagedModels, GoOnFromACheckpointThatWasWrittenWithOtherCuts) {
  at::set_num_threads(1);
  Split two(1, mlp(), {2, 4}), three(1, mlp(), {1, 3, 4});
  ASSERT_TRUE(two.step(kOne, batch_of(mlp(), 0, {{0, 2}, {2, 4}})));
  const auto loaded = three.model().load(checkpoint_of(two), "file");
  ASSERT_TRUE(loaded) << loaded.error();
  const Batch next = batch_of(mlp(), 1, {{0, 2}, {2, 4}});
  EXPECT_EQ(two.step(kOne, next).value(), three.step(kOne, next).value());
  const auto one = two.state(), other = three.state();
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(one[i].tensor.equal(other[i].tensor)) << one[i].name;
}

TEST(StagedModels, RefuseACheckpointOfAnotherModelWhole) {
  Split split(1, mlp(), {2, 4});
  const checkpoints::ModelCheckpoint own = checkpoint_of(split);
  const auto refuses = [&](checkpoints::ModelCheckpoint other) {
    for (at::Tensor& tensor : other.parameters) tensor = at::ones_like(tensor);
    const auto loaded = split.model().load(other, "runs/1");
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code(), Errc::invalid_config);
    EXPECT_EQ(loaded.error().text(), "runs/1: a checkpoint of another model");
    const auto left = split.model().tensors().value();
    for (std::size_t i = 0; i < left.parameters.size(); ++i) EXPECT_TRUE(left.parameters[i].equal(own.parameters[i]));
  };
  checkpoints::ModelCheckpoint fewer = own, more = own, wide = own, buffer = own;
  fewer.parameters.pop_back();
  more.parameters.push_back(own.parameters.front());
  wide.parameters.back() = at::empty({99});
  buffer.buffers.push_back(own.parameters.front());
  for (const auto& other : {fewer, more, wide, buffer}) refuses(other);
}

TEST(Stages, ALostStageEndsTheBatchTyped) {
  Split split(1, mlp(), {2, 4});
  ASSERT_TRUE(split.step(kOne, batch_of(mlp(), 0, {{0, 2}, {2, 4}})));
  split.cluster().network().kill("stage-1");
  const auto ended = split.step(kOne, batch_of(mlp(), 1, {{0, 2}, {2, 4}}));
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code(), Errc::peer_down);
}

}  // namespace
}  // namespace caftan::pipeline::batch_run_test
