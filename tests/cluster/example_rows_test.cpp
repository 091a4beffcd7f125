// Group 25 of PyTorch's own suite: its two examples, over a cluster.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "caftan/base/keyed_random.hpp"
#include "caftan/caftan.hpp"
#include "caftan/rpc/wait.hpp"
#include "caftan/testing/cluster.hpp"

namespace caftan::test::example_rows_test {
namespace {

// ---- 25.01: a server whose method answers when the gradients of all trainers are there

constexpr std::size_t kTrainers = 3;
constexpr int kBatches = 4;
constexpr double kRate = 0.1;

class BatchServer {
 public:
  BatchServer() = default;

  at::Tensor model() const { return model_; }
  /// Takes one trainer's gradient; the last one of a batch steps the model, and answers all.
  Future<at::Tensor> update(const at::Tensor& gradient) {
    sum_ += gradient;
    Promise<at::Tensor>& promise = waiting_.emplace_back();
    Future<at::Tensor> updated = promise.future();
    if (waiting_.size() == kTrainers) {
      model_ = model_ - sum_ * (kRate / kTrainers);
      sum_ = at::zeros_like(model_);
      ++batches_;
      for (auto& one : std::exchange(waiting_, {})) one.set(model_.clone());
    }
    return updated;
  }
  int batches() const { return batches_; }

 private:
  at::Tensor model_ = at::full({4}, 1.0);
  at::Tensor sum_ = at::zeros({4});
  std::vector<Promise<at::Tensor>> waiting_;
  int batches_ = 0;
};

/// Trains for some batches; returns the model that each batch gave.
std::vector<at::Tensor> train(const RRef<BatchServer>& server, int trainer) {
  std::vector<at::Tensor> models;
  at::Tensor model = server.rpc_sync<&BatchServer::model>();
  for (int batch = 0; batch < kBatches; ++batch) {
    at::Tensor own = model.detach().clone().requires_grad_(true);
    (own * own * (trainer + 1.0)).sum().backward();
    model = server.rpc_sync<&BatchServer::update>(own.grad());
    models.push_back(model);
  }
  return models;
}

// ---- 25.02: an agent that its observers ask for actions

constexpr int kObservers = 3;
constexpr double kThreshold = 4.5;  // the reward of an episode in which the better action is always taken is 5

class Agent;

class Observer {
 public:
  explicit Observer(std::int64_t seed) : seed_(static_cast<std::uint64_t>(seed)) {}
  /// Plays an episode: asks the agent for each action, and reports each reward.
  void run_episode(Worker& worker, const RRef<Agent>& agent, std::int64_t steps);

 private:
  std::uint64_t seed_;
  std::uint64_t episode_ = 0;
};

/// Learns which of two actions has a reward, from the log-probabilities that autograd recorded.
class Agent {
 public:
  Agent() = default;
  std::int64_t select_action(std::int64_t observer, double draw) {
    const at::Tensor probability = preference_.sigmoid();
    const bool takes = draw < probability.item<double>();
    log_probabilities_.push_back((takes ? probability : 1 - probability).log());
    ++asked_[static_cast<std::size_t>(observer)];
    return takes ? 1 : 0;
  }
  void report_reward(std::int64_t observer, double reward) {
    rewards_.push_back(reward);
    sums_[static_cast<std::size_t>(observer)] += reward;
  }
  /// Ends an episode of all observers; returns the running reward.
  double finish_episode() {
    at::Tensor loss = at::zeros({});
    for (std::size_t i = 0; i < log_probabilities_.size(); ++i)
      loss = loss - log_probabilities_[i] * (rewards_[i] - 0.5);
    loss.backward();
    {
      const at::NoGradGuard no_grad;
      preference_.sub_(preference_.grad() * 0.3);
      preference_.mutable_grad() = at::Tensor();
    }
    const double worst = *std::min_element(sums_.begin(), sums_.end());
    running_ = 0.2 * worst + 0.8 * running_;
    log_probabilities_.clear();
    rewards_.clear();
    sums_.assign(kObservers, 0);
    return running_;
  }
  std::vector<std::int64_t> asked() const { return asked_; }

 private:
  at::Tensor preference_ = at::zeros({}).requires_grad_(true);
  std::vector<at::Tensor> log_probabilities_;
  std::vector<double> rewards_;
  std::vector<double> sums_ = std::vector<double>(kObservers, 0);
  std::vector<std::int64_t> asked_ = std::vector<std::int64_t>(kObservers, 0);
  double running_ = 0;
};

void Observer::run_episode(Worker& worker, const RRef<Agent>& agent, std::int64_t steps) {
  const std::int64_t id = worker.name().back() - '0';
  for (std::int64_t step = 0; step < steps; ++step) {
    const double draw = base::random_uniform({.seed = seed_, .context = episode_}, static_cast<std::uint64_t>(step));
    const std::int64_t action = agent.rpc_sync<&Agent::select_action>(id, draw);
    agent.rpc_sync<&Agent::report_reward>(id, static_cast<double>(action));
  }
  ++episode_;
}

Registry make_registry() {
  Registry registry;
  registry.add<BatchServer>("server")
      .constructor<>()
      .method<&BatchServer::model>("model")
      .method<&BatchServer::update>("update")
      .method<&BatchServer::batches>("batches");
  registry.add<&train>("train");
  registry.add<Observer>("observer").constructor<std::int64_t>().method<&Observer::run_episode>("run_episode");
  registry.add<Agent>("agent")
      .constructor<>()
      .method<&Agent::select_action>("select_action")
      .method<&Agent::report_reward>("report_reward")
      .method<&Agent::finish_episode>("finish_episode")
      .method<&Agent::asked>("asked");
  return registry;
}

class ExampleRows : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  testing::Cluster cluster_{GetParam(), {"agent", "observer0", "observer1", "observer2"}, &make_registry};
};
INSTANTIATE_TEST_SUITE_P(Seeds, ExampleRows, ::testing::Range<std::uint64_t>(1, 5));

TEST_P(ExampleRows, Row25_01_AllTrainersGetTheModelThatTheLastOneOfABatchCompletes) {
  const RRef<BatchServer> server = cluster_["agent"].remote<BatchServer>("agent");
  std::vector<Future<std::vector<at::Tensor>>> runs;
  for (std::size_t trainer = 0; trainer < kTrainers; ++trainer) {
    runs.push_back(
        cluster_["agent"].rpc_async<&train>("observer" + std::to_string(trainer), server, static_cast<int>(trainer)));
  }
  const auto models = wait_all(runs);
  double expected = 1;
  for (int batch = 0; batch < kBatches; ++batch) {
    expected -= kRate * (2 * expected * (1 + 2 + 3)) / kTrainers;
    for (const auto& of_trainer : models) {
      EXPECT_TRUE(of_trainer[static_cast<std::size_t>(batch)].allclose(at::full({4}, expected)));
      EXPECT_TRUE(of_trainer[static_cast<std::size_t>(batch)].equal(models[0][static_cast<std::size_t>(batch)]));
    }
  }
  EXPECT_EQ(server.rpc_sync<&BatchServer::batches>(), kBatches);
}

TEST_P(ExampleRows, Row25_02_TheAgentLearnsFromItsObserversUntilItsRunningRewardIsEnough) {
  Worker& here = cluster_["agent"];
  const RRef<Agent> agent = here.make_rref(Agent());
  std::vector<RRef<Observer>> observers;
  for (int i = 0; i < kObservers; ++i) {
    observers.push_back(here.remote<Observer>("observer" + std::to_string(i), static_cast<std::int64_t>(i + 1)));
  }
  double running = 0;
  int episodes = 0;
  while (running < kThreshold && episodes < 200) {
    std::vector<Future<void>> playing;
    for (const auto& observer : observers) {
      playing.push_back(observer.rpc_async<&Observer::run_episode>(agent, std::int64_t{5}));
    }
    wait_all(playing);
    running = agent.rpc_sync<&Agent::finish_episode>();
    ++episodes;
  }
  EXPECT_GE(running, kThreshold) << episodes;
  EXPECT_EQ(agent.rpc_sync<&Agent::asked>(), (std::vector<std::int64_t>(kObservers, 5 * episodes)));
}

}  // namespace
}  // namespace caftan::test::example_rows_test
