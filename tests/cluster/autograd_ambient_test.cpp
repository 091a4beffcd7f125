// Contexts follow the code that runs in them: continuations, asynchronous functions and methods, on threads.
#include <atomic>
#include <thread>

#include "autograd_roles.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "channel_kind.hpp"
#include "folder.hpp"

namespace caftan::test::autograd_ambient_test {
namespace {

using autograd::Context;

struct AmbientCase {
  const char* kind;
  unsigned runners;
};

class AmbientOnThreads : public ::testing::TestWithParam<AmbientCase> {
 protected:
  void SetUp() override {
    const bool sockets = std::string(GetParam().kind) == "unix";
    std::vector<WorkerAddress> world{{"worker0", ""}, {"worker1", ""}, {"worker2", ""}, {"worker3", ""}};
    if (sockets) {
      for (auto& member : world) member.address = test::path_scheme() + (folder_ / member.name);
    }
    std::shared_ptr<transport::PollingExecutor> shared;
    for (const WorkerAddress& member : world) {
      WorkerOptions options;
      options.name = member.name;
      options.world = world;
      options.start_timeout = std::chrono::seconds(30);
      if (sockets || !shared) {
        shared = std::make_shared<transport::ThreadedExecutor>(
            transport::ThreadedExecutor::Options{.runners = GetParam().runners});
      }
      options.executor = shared;
      if (!sockets) options.network = network_;
      workers_.push_back(Worker::launch(std::move(options), make_autograd_registry()).value());
    }
    for (const auto& worker : workers_) worker->wait_until_ready().value();
  }

  Folder folder_;
  std::shared_ptr<LocalNetwork> network_ = std::make_shared<LocalNetwork>();
  std::vector<std::unique_ptr<Worker>> workers_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, AmbientOnThreads,
                         ::testing::Values(AmbientCase{"loopback", 1}, AmbientCase{"loopback", 4},
                                           AmbientCase{"unix", 1}, AmbientCase{"unix", 4}),
                         [](const auto& info) {
                           return std::string(info.param.kind) + std::to_string(info.param.runners);
                         });

TEST_P(AmbientOnThreads, AHundredInterleavedFunctionsKeepTheirContexts) {
  constexpr int kContexts = 100;
  Worker& worker = *workers_[0];
  std::vector<at::Tensor> inputs;
  std::vector<Context> contexts;
  std::vector<Future<at::Tensor>> results;
  for (int i = 0; i < kContexts; ++i) {
    Ambient own;  // stands for the code of one context
    const AmbientSwap swap(&own);
    inputs.push_back(leaf({1.0 + i, 2.0}));
    contexts.push_back(Context(worker));
    results.push_back(worker.rpc_async<&fourth_power_later>("worker1", "worker2", inputs.back()));
  }
  std::vector<Future<void>> passes;
  for (int i = 0; i < kContexts; ++i) {
    passes.push_back(contexts[i].backward_async({std::move(results[i]).get().sum()}));
  }
  for (int i = 0; i < kContexts; ++i) {
    std::move(passes[i]).get();
    const autograd::Gradients gradients = contexts[i].gradients();
    const double x = 1.0 + i;
    EXPECT_EQ(values(gradients.of(inputs[i])), (std::vector<double>{4 * x * x * x, 32}));
    EXPECT_EQ(gradients.entries().size(), 1U);
  }
}

TEST_P(AmbientOnThreads, Row17_06_SixtyThreadsOfThreeWorkersTrainAtAFourth) {
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (std::size_t rank = 1; rank < workers_.size(); ++rank) {
    for (int i = 0; i < 20; ++i) {
      threads.emplace_back([this, rank, i, &right] {
        const at::Tensor x = leaf({1.0 * i, 2.0});
        const Context context(*workers_[rank]);
        const at::Tensor y = workers_[rank]->rpc_sync<&square>("worker0", x);
        context.backward({workers_[rank]->rpc_sync<&square>("worker0", y).sum()});
        if (values(context.gradients().of(x)) == std::vector<double>{4.0 * i * i * i, 32}) ++right;
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 60);
}

TEST_P(AmbientOnThreads, ThreadsOfOnesOwnAreBound) {
  Context context(*workers_[0]);
  const at::Tensor x = leaf({3});
  at::Tensor outside;
  at::Tensor inside;
  auto call = [&] { return workers_[0]->rpc_sync<&square>("worker1", x); };
  std::thread([&, bound = context.bind(call)]() mutable {
    outside = call();
    inside = bound();
  }).join();
  EXPECT_EQ(context.try_backward({outside.sum()}).error().code(), Errc::backward_failed);  // DA-21
  context.backward({inside.sum()});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{6}));
}

}  // namespace
}  // namespace caftan::test::autograd_ambient_test
