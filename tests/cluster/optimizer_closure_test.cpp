// Steps by a closure: LBFGS over parameters of one owner equals LBFGS here bit for bit; what ends in the middle leaves
// the owner as it was before the step (OP-12).
#include <map>
#include <optional>
#include <stdexcept>

#include "caftan/optim/internal/remote_optimizer.hpp"
#include "caftan/testing/network.hpp"
#include "optimizer_roles.hpp"

namespace caftan::test::optimizer_closure_test {
namespace {

using autograd::Context;
using optim::DistributedOptimizer;
using optim::Evaluation;
using optim::LBFGS;
using optim::LocalOptimizer;
using optim::SGD;
using ::testing::HasSubstr;

/// The parameters of layers, by worker: they are read when no owner can be asked any more.
std::map<std::string, std::vector<at::Tensor>> shown;
void show_parameters(Worker& worker, const RRef<Layer>& layer) {
  shown[worker.name()] = layer.local_value()->tensors();
}

Registry make_closure_registry() {
  Registry registry = make_optimizer_registry();
  registry.add<&show_parameters>("show_parameters");
  return registry;
}

/// Two layers at worker1 under one optimizer at worker0, whose loss is that of one after the other.
class Closures : public OptimizerCluster {
 protected:
  Closures() : OptimizerCluster(make_closure_registry) {
    second_ = here().remote<Layer>("worker1", 2);
    here().rpc_sync<&show_parameters>("worker1", layers_[0]);
  }
  ~Closures() override { shown.clear(); }

  Parameters parameters() {
    Parameters all;
    for (const RRef<Layer>& layer : {layers_[0], second_}) {
      for (const RRef<at::Tensor>& parameter : layer.rpc_sync<&Layer::parameters>()) all.push_back(parameter);
    }
    return all;
  }
  std::vector<at::Tensor> values() {
    std::vector<at::Tensor> all = layers_[0].rpc_sync<&Layer::values>();
    for (const at::Tensor& value : second_.rpc_sync<&Layer::values>()) all.push_back(value);
    return all;
  }
  /// Evaluates the loss once, as users write it.
  Evaluation evaluate() {
    ++evaluations_;
    Context context(here());
    const at::Tensor y = second_.rpc_sync<&Layer::forward>(layers_[0].rpc_sync<&Layer::forward>(make_input(0)));
    const at::Tensor loss = y.square().sum();
    context.backward({loss});
    return Evaluation{loss.item<double>(), std::move(context)};
  }
  optim::Closure closure() {
    return [this]() -> Result<Evaluation> { return evaluate(); };
  }
  static LBFGS lbfgs(std::uint64_t seed) {
    return {.lr = 0.5,
            .max_iter = 5,
            .line_search = seed % 2 == 0 ? LBFGS::LineSearch::none : LBFGS::LineSearch::strong_wolfe};
  }

  RRef<Layer> second_;
  int evaluations_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Seeds, Closures, ::testing::Range<std::uint64_t>(1, 7));

/// The same model here.
struct LocalClosureModel {
  std::vector<Layer> layers{Layer(1), Layer(2)};

  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all;
    for (const Layer& layer : layers) {
      for (const at::Tensor& tensor : layer.tensors()) all.push_back(tensor);
    }
    return all;
  }
  Result<optim::LocalEvaluation> evaluate() const {
    const at::Tensor loss = layers[1].forward(layers[0].forward(make_input(0))).square().sum();
    loss.backward();
    optim::LocalEvaluation value{loss.item<double>(), {}};
    for (const at::Tensor& parameter : parameters()) {
      value.gradients.push_back(parameter.grad());
      parameter.mutable_grad() = at::Tensor();
    }
    return value;
  }
};

TEST_P(Closures, Row21_01_LbfgsOfOneOwnerEqualsLocalBitForBitAlsoAfterALoad) {
  const LocalClosureModel model;
  LocalOptimizer local = LocalOptimizer::make({{model.parameters(), lbfgs(GetParam())}}).value();
  const Parameters all = parameters();
  std::optional<DistributedOptimizer> optimizer(std::in_place, here(), all, lbfgs(GetParam()));
  for (int step = 0; step < 4; ++step) {
    int local_evaluations = 0;
    const double loss = local
                            .step([&]() -> Result<optim::LocalEvaluation> {
                              ++local_evaluations;
                              return model.evaluate();
                            })
                            .value();
    evaluations_ = 0;
    const optim::StepReport report = optimizer->step(closure());
    EXPECT_EQ(report.loss, loss);
    EXPECT_EQ(report.step.value, static_cast<std::uint64_t>(step + 1));
    EXPECT_EQ(report.evaluations, static_cast<std::uint64_t>(local_evaluations));
    EXPECT_EQ(evaluations_, local_evaluations);
    EXPECT_EQ(report.owners[0].outcome->stepped, 4U);
    ASSERT_TRUE(same_values(values(), model.parameters())) << "step " << step;
    if (step != 1) continue;
    const wire::Bytes saved = optimizer->save();
    optimizer.emplace(here(), all, lbfgs(GetParam()));
    optimizer->load(saved);
    EXPECT_EQ(optimizer->save(), saved);
  }
}

TEST_P(Closures, AClosureMayReturnAFuture) {
  DistributedOptimizer optimizer(here(), parameters(), lbfgs(GetParam()));
  const auto before = values();
  const optim::StepReport report =
      optimizer.step([this]() -> Future<Evaluation> { return make_ready_future<Evaluation>(evaluate()); });
  EXPECT_GT(report.evaluations, 1U);
  EXPECT_FALSE(same_values(values(), before));
}

TEST_P(Closures, OtherAlgorithmsEvaluateItOnce) {
  DistributedOptimizer optimizer(here(), parameters(), SGD{.lr = 0.1});
  const auto before = values();
  const optim::StepReport report = optimizer.step(closure());
  EXPECT_EQ(evaluations_, 1);
  EXPECT_EQ(report.evaluations, 1U);
  EXPECT_GT(report.loss, 0);
  EXPECT_EQ(optimizer.last_report().loss, report.loss);
  EXPECT_FALSE(same_values(values(), before));
}

TEST_P(Closures, OP12_WhatAClosureFailsOfIsTheErrorAndTheOwnerIsAsBefore) {
  DistributedOptimizer optimizer(here(), parameters(), lbfgs(GetParam()));
  optimizer.step(closure());
  const auto before = values();
  const wire::Bytes state = optimizer.save();
  for (const int at : {1, 2, 3}) {
    for (const bool throws : {false, true}) {
      evaluations_ = 0;
      const optim::Closure failing = [&]() -> Result<Evaluation> {
        Evaluation value = evaluate();
        if (evaluations_ < at) return value;
        if (throws) throw std::runtime_error("the data are burnt");
        return Error(Errc::io_error, "the data are missing");
      };
      if (throws) {
        EXPECT_THROW((void)optimizer.try_step(failing), std::runtime_error);
      } else {
        const Error error = optimizer.try_step(failing).error();
        EXPECT_EQ(error.code(), Errc::io_error);
        EXPECT_THAT(error.text(), HasSubstr("in evaluation " + std::to_string(at)));
        EXPECT_THAT(error.text(), HasSubstr("the data are missing"));
        EXPECT_EQ(optimizer.last_report().owners[0].outcome.error().code(), Errc::io_error);
      }
      cluster_.run_until_idle();
      EXPECT_TRUE(same_values(values(), before)) << at;
    }
  }
  const std::uint64_t step = optimizer.last_report().step.value;
  EXPECT_EQ(optimizer.step(closure()).step.value, step + 2)
      << "the number of a step that was given up is not used again";
  EXPECT_FALSE(same_values(values(), before));
  EXPECT_NE(optimizer.save(), state);
}

TEST_P(Closures, OP12_TheLossOfTheStepCoordinatorLeavesTheOwnerAsBefore) {
  const auto before = shown.at("worker1")[0].detach().clone();
  {
    DistributedOptimizer optimizer(here(), parameters(), lbfgs(GetParam()));
    const auto lost = optimizer.try_step([&]() -> Result<Evaluation> {
      if (evaluations_ == 2) {
        EXPECT_FALSE(at::equal(shown.at("worker1")[0].detach(), before)) << "it is in the middle of the step";
        net_.cut("worker0", "worker1");
        cluster_.run_until_idle();
        return Error(Errc::peer_down, "worker1", "it is gone");
      }
      return evaluate();
    });
    EXPECT_EQ(lost.error().code(), Errc::peer_down);
  }
  cluster_.run_until_idle();
  EXPECT_TRUE(at::equal(shown.at("worker1")[0].detach(), before));
  EXPECT_EQ(cluster_[1].counters().owner_rrefs, 0U);
}

TEST_P(Closures, OP9_TheLossOfTheOwnerEndsTheStep) {
  DistributedOptimizer optimizer(here(), parameters(), lbfgs(GetParam()));
  const auto lost = optimizer.try_step([&]() -> Result<Evaluation> {
    Evaluation value = evaluate();
    if (evaluations_ == 2) net_.kill("worker1");
    return value;
  });
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code(), Errc::peer_down);
  EXPECT_EQ(optimizer.last_report().owners[0].outcome.error().code(), Errc::peer_down);
}

TEST_P(Closures, TheOptimizerInsideOfItsOwnClosureIsRefused) {
  DistributedOptimizer optimizer(here(), parameters(), lbfgs(GetParam()));
  Errc stepped = Errc::ok;
  Errc again = Errc::ok;
  Errc saved = Errc::ok;
  Errc loaded = Errc::ok;
  optimizer.step([&]() -> Result<Evaluation> {
    Evaluation value = evaluate();
    stepped = optimizer.try_step(value.context).error().code();
    again = optimizer.try_step(closure()).error().code();
    saved = optimizer.try_save().error().code();
    loaded = optimizer.try_load({}).error().code();
    return value;
  });
  for (const Errc refused : {stepped, again, saved, loaded}) EXPECT_EQ(refused, Errc::would_deadlock);
  EXPECT_TRUE(optimizer.try_save());
}

TEST_P(Closures, WhatLbfgsCannotStepIsRefusedWithTheWayOut) {
  const auto refusal = [&](const Parameters& of, const optim::StepOptions& options = {}) {
    return DistributedOptimizer::try_make(here(), {{of, LBFGS{}}}, options).error();
  };
  const Error placed = refusal(all_parameters());
  EXPECT_EQ(placed.code(), Errc::bad_arguments);
  EXPECT_THAT(placed.text(), HasSubstr("they are at worker1 and worker2: use another algorithm"));
  EXPECT_THAT(refusal(parameters(), {.clip_norm = 1}).text(), HasSubstr("leave clip_norm and clip_value out"));
  EXPECT_THAT(refusal(parameters(), {.clip_value = 1}).text(), HasSubstr("leave clip_norm and clip_value out"));
  const Parameters p = parameters();
  EXPECT_THAT(DistributedOptimizer::try_make(here(), {{{p[0]}, LBFGS{}}, {{p[1]}, SGD{}}}).error().text(),
              HasSubstr("give it one group, here are 2"));

  DistributedOptimizer optimizer(here(), {p[0], p[1]}, LBFGS{});
  EXPECT_EQ(optimizer.try_add_param_group({{p[2]}, SGD{}}).error().code(), Errc::bad_arguments);
  Context context(here());
  context.backward({layers_[0].rpc_sync<&Layer::forward>(make_input(0)).sum()});
  EXPECT_THAT(optimizer.try_step(context).error().text(), HasSubstr("pass a closure to step"));
  EXPECT_EQ(optimizer.try_step(optim::Closure()).error().code(), Errc::bad_arguments);
}

TEST_P(Closures, AContextWithoutAPassEndsTheStepAndNothingIsMoved) {
  DistributedOptimizer optimizer(here(), parameters(), lbfgs(GetParam()));
  const auto before = values();
  const Error error = optimizer.try_step([&]() -> Result<Evaluation> {
                                 return Evaluation{1, Context(here())};
                               })
                          .error();
  EXPECT_EQ(error.code(), Errc::bad_arguments);
  EXPECT_THAT(error.text(), HasSubstr("call context.backward"));
  EXPECT_TRUE(same_values(values(), before));
}

}  // namespace
}  // namespace caftan::test::optimizer_closure_test
