// Batched functions and methods between workers: what runs together, and what each caller gets (BT-1 to BT-12).
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "caftan/caftan.hpp"
#include "caftan/testing/cluster.hpp"

namespace caftan::batching_test {
namespace {

using namespace std::chrono_literals;

/// How many calls each run of a batched function answered, in the order of the runs.
std::vector<std::size_t> sizes;

std::vector<int> squares(const Batch<int>& numbers) {
  sizes.push_back(numbers.size());
  std::vector<int> results;
  for (const int x : numbers) results.push_back(x * x);
  return results;
}
/// Waits for a minute, or for 16 requests.
std::vector<int> patient(const Batch<int>& numbers) { return squares(numbers); }
std::vector<at::Tensor> doubled(Batch<at::Tensor> rows) {
  sizes.push_back(rows.size());
  return (at::stack(rows.requests()) * 2).unbind();
}
std::vector<Result<int>> halves(const Batch<int>& numbers) {
  std::vector<Result<int>> results;
  for (const int x : numbers) {
    if (x % 2 == 0) {
      results.emplace_back(x / 2);
    } else {
      results.emplace_back(user_error("halves.odd", std::to_string(x) + " is odd"));
    }
  }
  return results;
}
std::vector<std::string> notes;
void note(Worker& worker, const Batch<int, std::string>& requests) {
  for (const auto& [number, text] : requests) notes.push_back(worker.name() + std::to_string(number) + text);
}
std::vector<Future<int>> asks_on(Worker& worker, const Batch<std::string>& names) {
  std::vector<Future<int>> results;
  int number = 0;
  for (const std::string& name : names) results.push_back(worker.rpc_async<&squares>(name, ++number));
  return results;
}
std::vector<bool> records(const Batch<>& requests) {
  sizes.push_back(requests.size());
  return std::vector<bool>(requests.size(), at::GradMode::is_enabled());
}
std::vector<int> too_few(const Batch<int>& numbers) { return std::vector<int>(numbers.size() - 1); }
std::vector<int> throws(const Batch<int>& numbers) {
  if (numbers[0] < 0) throw std::runtime_error("a negative number");
  return squares(numbers);
}
Result<std::vector<int>> refuses(const Batch<int>&) { return user_error("refuses", "always"); }

/// A value that the callee cannot decode while `refuse` is set.
struct Picky {
  static inline bool refuse = false;
  int value = 0;
  void serialize(auto& archive, unsigned) {
    archive& value;
    if (refuse && value < 0) throw std::runtime_error("negative");
  }
};
std::vector<int> values(const Batch<Picky>& requests) {
  sizes.push_back(requests.size());
  std::vector<int> results;
  for (const Picky& one : requests) results.push_back(one.value);
  return results;
}

std::optional<Promise<int>> gate;

class Agent {
 public:
  std::vector<int> choose(const Batch<int>& observations) {
    for (const int one : observations) sum_ += one;
    return squares(observations);
  }
  std::vector<int> choose_alone(const Batch<int>& observations) { return choose(observations); }
  /// Exclusive: keeps the turn until the test opens the gate.
  int hold() { return gate->future().get(); }
  int sum() const { return sum_; }

 private:
  int sum_ = 0;
};

constexpr BatchLimits kThree{.max_size = 3, .max_wait = 10ms};

Registry make_registry() {
  Registry registry;
  registry.add_batched<&squares>("squares", kThree);
  registry.add_batched<&patient>("patient", {.max_size = 16, .max_wait = 1min});
  registry.add_batched<&doubled>("doubled", kThree);
  registry.add_batched<&halves>("halves", kThree);
  registry.add_batched<&note>("note", kThree);
  registry.add_batched<&asks_on>("asks_on", kThree);
  registry.add_batched<&records>("records", kThree);
  registry.add_batched<&too_few>("too_few", kThree);
  registry.add_batched<&throws>("throws", kThree);
  registry.add_batched<&refuses>("refuses", kThree);
  registry.add_batched<&values>("values", kThree);
  registry.add<Agent>("agent")
      .constructor<>()
      .batched<&Agent::choose>("choose", kThree)
      .batched<&Agent::choose_alone>("choose_alone", kThree, TurnMode::exclusive)
      .exclusive<&Agent::hold>("hold")
      .method<&Agent::sum>("sum");
  return registry;
}

using Sizes = std::vector<std::size_t>;
using Values = std::vector<int>;

class Batching : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  static constexpr std::size_t kPending = 6;
  Batching() {
    sizes.clear();
    notes.clear();
    Picky::refuse = false;
  }
  Worker& a() { return cluster_["a"]; }

  /// Calls the batched function F of b with each of `numbers`.
  template <auto F>
  std::vector<Future<int>> call(const Values& numbers) {
    std::vector<Future<int>> calls;
    for (const int x : numbers) calls.push_back(a().rpc_async<F>("b", x));
    return calls;
  }

  testing::Cluster cluster_{GetParam(), {"a", "b", "c"}, make_registry, [](WorkerOptions& options) {
                              options.limits.pending_calls = kPending;
                            }};
};
INSTANTIATE_TEST_SUITE_P(Seeds, Batching, ::testing::Range<std::uint64_t>(1, 6));

TEST_P(Batching, BT1_BT4_AFullBatchRunsAtOnceAndEachCallerGetsItsOwnResult) {
  auto calls = call<&squares>({1, 2, 3});
  cluster_.run_until_idle();
  for (Future<int>& one : calls) EXPECT_TRUE(one.ready());
  EXPECT_EQ(wait_all(std::move(calls)), (Values{1, 4, 9}));
  EXPECT_EQ(sizes, (Sizes{3}));
}

TEST_P(Batching, BT1_APartialBatchRunsAfterItsWait) {
  auto calls = call<&squares>({1, 2});
  calls.push_back(cluster_["c"].rpc_async<&patient>("b", 5));
  cluster_.advance(9ms);
  for (Future<int>& one : calls) EXPECT_FALSE(one.ready());
  EXPECT_EQ(sizes, Sizes{});
  cluster_.advance(2ms);
  EXPECT_EQ(sizes, (Sizes{2}));
  EXPECT_TRUE(calls[0].ready() && calls[1].ready());
  EXPECT_FALSE(calls[2].ready()) << "each function collects its own requests";
  EXPECT_EQ(calls[0].get() + calls[1].get(), 5);
  calls[2].cancel();
}

TEST_P(Batching, BT2_WhileTheObjectIsBusyItsBatchGrowsAndTakesItsTurn) {
  const RRef<Agent> agent = a().remote<Agent>("b");
  gate.emplace();
  Future<int> held = agent.rpc_async<&Agent::hold>();
  cluster_.run_until_idle();
  std::vector<Future<int>> calls;
  calls.push_back(agent.rpc_async<&Agent::choose>(1));
  cluster_.advance(20ms);
  EXPECT_EQ(sizes, Sizes{}) << "its object is busy";
  calls.push_back(agent.rpc_async<&Agent::choose>(2));
  calls.push_back(agent.rpc_async<&Agent::choose>(3));
  cluster_.run_until_idle();
  gate->set(7);
  cluster_.run_until_idle();
  EXPECT_EQ(sizes, (Sizes{3}));
  EXPECT_EQ(wait_all(std::move(calls)), (Values{1, 4, 9}));
  EXPECT_EQ(held.get(), 7);
  EXPECT_EQ(agent.rpc_sync<&Agent::choose_alone>(4), 16);
  EXPECT_EQ(agent.rpc_sync<&Agent::sum>(), 10);
}

TEST_P(Batching, BT4_ObjectsCollectForThemselvesAndResultsMayStayAtTheOwner) {
  const RRef<Agent> one = a().remote<Agent>("b");
  const RRef<Agent> other = a().remote<Agent>("b");
  const RRef<int> first = one.remote<&Agent::choose>(2);
  Future<int> second = other.rpc_async<&Agent::choose>(3);
  const RRef<int> third = a().remote<&squares>("b", 4);
  EXPECT_EQ(second.get(), 9);
  EXPECT_EQ(first.to_here() + third.to_here(), 4 + 16);
  EXPECT_EQ(sizes, (Sizes{1, 1, 1}));
}

TEST_P(Batching, BT4_AnErrorAmongTheResultsIsThatOfOneCaller) {
  auto calls = call<&halves>({2, 3, 4});
  const std::vector<Result<int>> results = wait_all_results(calls);
  EXPECT_EQ(*results[0] + *results[2], 3);
  ASSERT_FALSE(results[1]);
  EXPECT_EQ(results[1].error().code(), Errc::user_error);
  EXPECT_EQ(results[1].error().kind(), "halves.odd");
}

TEST_P(Batching, BT4_FunctionsWithoutAResultWithTensorsAndWithFutures) {
  Future<void> noted = a().rpc_async<&note>("b", 1, "x");
  Future<at::Tensor> tensor = a().rpc_async<&doubled>("b", at::ones({2}));
  Future<int> later = a().rpc_async<&asks_on>("b", "c");
  noted.get();
  EXPECT_EQ(notes, std::vector<std::string>{"b1x"});
  EXPECT_TRUE(tensor.get().equal(at::ones({2}) * 2));
  EXPECT_EQ(later.get(), 1);
}

TEST_P(Batching, BT5_AnotherNumberOfResultsIsAnErrorThatNamesBothNumbers) {
  auto calls = call<&too_few>({1, 2, 3});
  for (const Result<int>& result : wait_all_results(calls)) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), Errc::remote_exception);
    EXPECT_EQ(result.error().worker(), "b");
    EXPECT_NE(result.error().text().find("too_few: its batch had 3 requests, and it returned 2 results"),
              std::string::npos)
        << result.error().message();
  }
}

TEST_P(Batching, BT6_WhatTheFunctionThrowsGoesToAllItsCallersAndTheNextRunIsNotAffected) {
  auto calls = call<&throws>({-1, -2, -3});
  for (const Result<int>& result : wait_all_results(calls)) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), Errc::remote_exception);
    EXPECT_NE(result.error().text().find("a negative number"), std::string::npos);
  }
  EXPECT_EQ(a().rpc_sync<&throws>("b", 3), 9);
  EXPECT_EQ(a().try_rpc_sync<&refuses>("b", 3).error().kind(), "refuses");
}

TEST_P(Batching, BT7_ARequestThatDoesNotDecodeFailsAlone) {
  std::vector<Future<int>> calls;
  for (const int x : {1, -2, 3}) calls.push_back(a().rpc_async<&values>("b", Picky{x}));
  Picky::refuse = true;
  const std::vector<Result<int>> results = wait_all_results(calls);
  EXPECT_EQ(*results[0] + *results[2], 4);
  EXPECT_EQ(results[1].error().code(), Errc::bad_arguments);
  EXPECT_EQ(sizes, (Sizes{2}));
}

TEST_P(Batching, BT8_RequestsThatNoCallerWaitsForAreLeftOut) {
  auto calls = call<&squares>({1, 2});
  Future<int> late = a().with({.timeout = 5ms}).rpc_async<&patient>("b", 3);
  cluster_.run_until_idle();
  EXPECT_TRUE(calls[0].cancel());
  EXPECT_EQ(calls[1].get(), 4);
  EXPECT_EQ(sizes, (Sizes{1}));
  EXPECT_EQ(calls[0].result().error().code(), Errc::cancelled);
  EXPECT_EQ(late.result().error().code(), Errc::timeout);
  cluster_.advance(61s);
  EXPECT_EQ(sizes, (Sizes{1})) << "a run without a request whose caller waits does not call the function";
}

TEST_P(Batching, BT8_ADeadCallerStallsNoOther) {
  Future<int> lost = cluster_["c"].rpc_async<&squares>("b", 1);
  Future<int> call = a().rpc_async<&squares>("b", 2);
  cluster_.run_until_idle();
  cluster_.network().kill("c");
  EXPECT_EQ(call.get(), 4);
  EXPECT_EQ(sizes, (Sizes{1}));
  EXPECT_EQ(lost.result().error().code(), Errc::peer_down);
}

TEST_P(Batching, BT9_AWorkerThatStopsAnswersWhatWaits) {
  auto calls = call<&patient>({1, 2});
  cluster_.run_until_idle();
  EXPECT_EQ(cluster_["b"].stop().served_calls, 0U);
  EXPECT_EQ(wait_all(std::move(calls)), (Values{1, 4}));
  EXPECT_EQ(sizes, (Sizes{2}));
}

TEST_P(Batching, BT10_CallsThatWouldBeRecordedAreRefused) {
  const autograd::Context context(a());
  const Result<int> refused = a().try_rpc_sync<&squares>("b", 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::unsupported);
  EXPECT_NE(refused.error().text().find("squares is batched"), std::string::npos);
  EXPECT_EQ(sizes, Sizes{});
  const at::NoGradGuard no_grad;
  EXPECT_EQ(a().rpc_sync<&squares>("b", 2), 4);
}

TEST_P(Batching, BT11_GradModesDoNotMix) {
  Future<bool> on = a().rpc_async<&records>("b");
  std::optional<at::NoGradGuard> no_grad(std::in_place);
  Future<bool> off = a().rpc_async<&records>("b");
  no_grad.reset();
  EXPECT_TRUE(on.get());
  EXPECT_FALSE(off.get());
  EXPECT_EQ(sizes, (Sizes{1, 1}));
}

TEST_P(Batching, BT12_RequestsThatWaitCountAgainstTheLimitOfOpenCalls) {
  auto calls = call<&patient>(Values(kPending, 1));
  cluster_.run_until_idle();
  const Result<int> refused =
      a().with({.timeout = std::nullopt, .fail_when_full = true}).try_rpc_sync<&squares>("b", 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::overloaded);
  for (Future<int>& one : calls) one.cancel();
  EXPECT_EQ(a().rpc_sync<&squares>("b", 2), 4);
}

TEST(BatchingRegistry, LimitsOutOfRangeAreRefusedByName) {
  Registry registry;
  registry.add_batched<&squares>("squares", {.max_wait = 1ms});
  registry.add_batched<&patient>("patient", {.max_size = 2, .max_wait = -1ms});
  const Result<void> frozen = registry.freeze();
  ASSERT_FALSE(frozen);
  EXPECT_EQ(frozen.error().code(), Errc::invalid_config);
  EXPECT_NE(frozen.error().text().find("'squares' is batched with max_size 0: it must be 1 to 65536"),
            std::string::npos);
  EXPECT_NE(frozen.error().text().find("'patient' is batched with max_wait -1000000 ns"), std::string::npos);
}

TEST(BatchingRegistry, CallersSeeTheTypesOfOneRequest) {
  EXPECT_EQ(rpc::CallTypes<decltype(&squares)>::signature(), "int(int)");
  EXPECT_EQ(rpc::CallTypes<decltype(&note)>::signature(), "void(int, std::string)");
  EXPECT_EQ(rpc::CallTypes<decltype(&halves)>::signature(), "int(int)");
  EXPECT_EQ(rpc::CallTypes<decltype(&refuses)>::signature(), "int(int)");
}

}  // namespace
}  // namespace caftan::batching_test
