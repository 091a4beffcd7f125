// Contexts: which code runs in a context, how it enters one, how contexts are listed and released, and which requests
// are refused.
#include <optional>
#include <thread>

#include "autograd/autograd_host.hpp"
#include "autograd_roles.hpp"
#include "caftan/autograd/checkpoint.hpp"
#include "caftan/testing/cluster.hpp"
#include "caftan/testing/network.hpp"
#include "caftan/transport/stepped_executor.hpp"
#include "counting_hook.hpp"
#include "worker/worker_core.hpp"

namespace caftan::test::autograd_context_test {
namespace {

using autograd::Context;
using autograd::Mode;

class Contexts : public AutogradCluster {
 protected:
  Result<void> backward(const Context& context, const std::vector<at::Tensor>& roots,
                        std::vector<at::Tensor> gradients = {}) {
    return context.try_backward(roots, {.gradients = std::move(gradients)});
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, Contexts, ::testing::Range<std::uint64_t>(1, 11));

TEST_P(Contexts, ListedWithAgeCreatorWorkersAndBytes) {
  const at::Tensor x = leaf({1, 2, 3});
  Context context((*this)[0]);
  (*this)[0].rpc_sync<&relay>("worker1", std::vector<std::string>{"worker2"}, x);
  cluster_.executor().advance(std::chrono::seconds(3));
  const auto here = (*this)[0].autograd_contexts();
  ASSERT_EQ(here.size(), 1U);
  EXPECT_EQ(here[0].id, context.id());
  EXPECT_EQ(here[0].creator, "worker0");
  EXPECT_GE(here[0].age, std::chrono::seconds(3));
  EXPECT_EQ(here[0].workers, (std::vector<std::string>{"worker1"}));
  EXPECT_EQ(here[0].sent, 1U);
  EXPECT_EQ(here[0].received, 1U);
  EXPECT_EQ(here[0].bytes, 2 * 3 * sizeof(double));
  const auto there = (*this)[1].autograd_contexts();
  ASSERT_EQ(there.size(), 1U);
  EXPECT_EQ(there[0].creator, "worker0");
  EXPECT_EQ(there[0].sent, 2U);
  EXPECT_EQ(there[0].received, 2U);
  EXPECT_EQ(there[0].workers, (std::vector<std::string>{"worker0", "worker2"}));
}

TEST_P(Contexts, K11_AWorkerThatLeavesTakesOnNoContextAndSaysWhy) {
  const std::string why = "shut_down: worker1: this worker has left (because: cancelled: the run was interrupted)";
  const at::Tensor x = leaf({1, 2, 3});
  {
    const Context begun((*this)[0]);
    (*this)[0].rpc_sync<&square>("worker1", x);
    actors::WorkerCore::of((*this)[1]).begin_leaving(Error(Errc::cancelled, "the run was interrupted"));
    EXPECT_TRUE((*this)[0].try_rpc_sync<&square>("worker1", x)) << "a context that it has taken part in goes on";
  }
  const auto made = Context::try_make((*this)[1]);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message(), why);
  {
    const Context late((*this)[0]);
    const auto refused = (*this)[0].try_rpc_sync<&square>("worker1", x);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message(), why);
  }
  expect_no_contexts();
}

TEST_P(Contexts, ACallFromACheckpointedSegmentIsRefusedAndNothingIsSent) {
  Errc code = Errc::ok;
  const autograd::Segment segment = [&](const std::vector<at::Tensor>& in) {
    const auto called = (*this)[0].try_rpc_sync<&square>("worker1", in[0]);
    if (!called) code = called.error().code();
    return in;
  };
  Context context((*this)[0]);
  (void)autograd::checkpoint(segment, {leaf({1, 2})});
  EXPECT_EQ(code, Errc::unsupported);
  EXPECT_TRUE((*this)[1].autograd_contexts().empty());
}

TEST_P(Contexts, EndedScopesAreReleasedEverywhere) {
  const at::Tensor x = leaf({1, 2, 3});
  for (int i = 0; i < 5; ++i) {
    Context context((*this)[0]);
    const at::Tensor y = (*this)[0].rpc_sync<&relay>("worker1", std::vector<std::string>{"worker2"}, x);
    if (i % 2 == 0) context.backward({y.sum()});
  }
  expect_no_contexts();
}

TEST_P(Contexts, DA19_TheReleaseWaitsForTheContextsOwnCalls) {
  net_.link("worker1", "worker0").hold();
  Future<at::Tensor> late;
  const at::Tensor x = leaf({1, 2, 3});
  {
    Context context((*this)[0]);
    late = (*this)[0].rpc_async<&square>("worker1", x);
    run_until_idle();
  }
  run_until_idle();
  EXPECT_EQ((*this)[0].autograd_contexts().size(), 1U);
  net_.link("worker1", "worker0").release();
  EXPECT_EQ(values(late.get()), (std::vector<double>{1, 4, 9}));
  expect_no_contexts();
}

TEST_P(Contexts, DA13_AWorkerAsksAboutTheContextsThatOverlappedItsOwn) {
  actors::AutogradHost& home = actors::WorkerCore::of((*this)[0]).autograd_host();
  const at::Tensor x = leaf({1, 2, 3});
  for (int i = 0; i < 40; ++i) {
    const ContextId before = home.create().value()->id();
    std::optional<Context> joined((*this)[0]);
    (*this)[0].rpc_sync<&square>("worker1", x);
    const ContextId after = home.create().value()->id();
    joined.reset();
    run_until_idle();
    home.release(before);
    home.release(after);
    run_until_idle();
    ASSERT_LE(actors::WorkerCore::of((*this)[1]).autograd_host().counts().remembered, 17U) << i;
  }
  expect_no_contexts();
}

TEST_P(Contexts, ReleasedEverywhereWhenTheCreatorDies) {
  const at::Tensor x = leaf({1, 2, 3});
  Context context((*this)[0]);
  (*this)[0].rpc_sync<&relay>("worker1", std::vector<std::string>{"worker2"}, x);
  run_until_idle();
  EXPECT_EQ((*this)[1].autograd_contexts().size() + (*this)[2].autograd_contexts().size(), 2U);
  net_.kill("worker0");
  run_until_idle();
  EXPECT_TRUE((*this)[1].autograd_contexts().empty());
  EXPECT_TRUE((*this)[2].autograd_contexts().empty());
}

TEST_P(Contexts, CodeOfAnEndedContextGetsAnError) {
  Promise<void> go((*this)[0].caller());
  Future<Errc> seen;
  {
    Context context((*this)[0]);
    seen = go.future().then(
        [this](Result<void>) { return (*this)[0].try_rpc_sync<&square>("worker1", leaf({1})).error().code(); });
  }
  run_until_idle();
  go.set({});
  EXPECT_EQ(seen.get(), Errc::context_released);
}

TEST_P(Contexts, AReleasedOneHasNoGradients) {
  const at::Tensor x = leaf({1, 2});
  std::optional<autograd::ContextView> view;
  {
    const Context context((*this)[0]);
    context.backward({(*this)[0].rpc_sync<&square>("worker1", x).sum()});
    view = Context::current((*this)[0]);
    EXPECT_EQ(values(view->gradients().of(x)), (std::vector<double>{2, 4}));
  }
  run_until_idle();
  const auto gradients = view->try_gradients();
  ASSERT_FALSE(gradients);
  EXPECT_EQ(gradients.error().code(), Errc::context_released);
}

TEST_P(Contexts, EndWithTheirScopeOnTheirThread) {
  EXPECT_EQ(Context::try_current((*this)[0]).error().code(), Errc::unknown_context);
  {
    Context context((*this)[0]);
    EXPECT_EQ(Context::current((*this)[0]).id(), context.id());
    Errc elsewhere = Errc::ok;
    std::thread([&] {
      const auto none = Context::try_current((*this)[0]);
      if (!none) elsewhere = none.error().code();
    }).join();
    EXPECT_EQ(elsewhere, Errc::unknown_context) << "another thread has no part in it";
  }
  EXPECT_EQ(Context::try_current((*this)[0]).error().code(), Errc::unknown_context);
}

TEST_P(Contexts, APassOfAHandleThatWasMovedAwayIsRefused) {
  Context context((*this)[0]);
  const Context moved = std::move(context);
  const auto refused = context.try_backward({leaf({1})});  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_EQ(refused.error().code(), Errc::bad_arguments);
  EXPECT_TRUE(moved.try_backward({leaf({1}).sum()}));
}

TEST_P(Contexts, OfAnotherWorkerOfTheProcessAreRefused) {
  Context context((*this)[0]);
  EXPECT_EQ((*this)[1].try_rpc_sync<&square>("worker0", leaf({1})).error().code(), Errc::foreign_context);
  EXPECT_EQ(Context::try_current((*this)[1]).error().code(), Errc::foreign_context);
}

TEST_P(Contexts, Row18_04_BadRootsAreRefusedByName) {
  const at::Tensor x = leaf({1, 2});
  const at::Tensor plain = at::ones({1}, at::kDouble);
  Context context((*this)[0]);
  const at::Tensor y = (*this)[0].rpc_sync<&square>("worker1", x);
  for (const auto& done :
       {backward(context, {}), backward(context, {plain}), backward(context, {at::Tensor()}), backward(context, {y}),
        backward(context, {y}, {at::ones({3}, at::kDouble)}), backward(context, {y}, {at::ones({2}, at::kFloat)}),
        backward(context, {y.sum()}, {at::Tensor(), at::Tensor()})}) {
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), Errc::bad_arguments) << done.error().message();
    EXPECT_NE(done.error().text().find("root"), std::string::npos) << done.error().message();
  }
  context.backward({y.sum()});
}

TEST_P(Contexts, Row18_04_ALeafAsRootGetsItsGradientBesideThatOfItsHops) {
  const at::Tensor x = leaf({3});
  Context context((*this)[0]);
  const at::Tensor y = (*this)[0].rpc_sync<&square>("worker1", x);
  context.backward({x, y}, {.retain_graph = true});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{7}));
  context.backward({x});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{8}));
}

TEST_P(Contexts, DA3_AGraphOfAnotherContextIsRefused) {
  const at::Tensor x = leaf({1, 2});
  at::Tensor old;
  {
    Context context((*this)[0]);
    old = (*this)[0].rpc_sync<&square>("worker1", x);
  }
  run_until_idle();
  Context context((*this)[0]);
  for (const Mode mode : {Mode::smart, Mode::fast}) {
    const auto done = context.try_backward({old.sum()}, {.retain_graph = true, .mode = mode});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), Errc::foreign_context) << done.error().message();
  }
  const at::Tensor y = (*this)[0].rpc_sync<&square>("worker1", x);
  context.backward({y.sum()});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{2, 4}));
}

TEST_P(Contexts, DA15_AStockBackwardOverAHopSaysWhatToDo) {
  Context context((*this)[0]);
  const at::Tensor y = (*this)[0].rpc_sync<&square>("worker1", leaf({1, 2}));
  try {
    y.sum().backward();
    FAIL() << "a stock backward crossed workers";
  } catch (const RpcException& e) {
    EXPECT_NE(e.error().text().find("context.backward"), std::string::npos);
  }
}

TEST_P(Contexts, AFreedGraphIsAnErrorNotAHang) {
  const at::Tensor x = leaf({1, 2});
  Context context((*this)[0]);
  const at::Tensor y = (*this)[0].rpc_sync<&square>("worker1", x);
  const at::Tensor root = y.sum();
  context.backward(root);
  const auto again = context.try_backward({root});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Errc::backward_failed) << again.error().message();
  EXPECT_NE(again.error().text().find("{.retain_graph = true}"), std::string::npos) << again.error().message();
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{2, 4}));
}

TEST_P(Contexts, CALL3_EachRequestMeetsOneEndBesideRecording) {
  std::vector<std::shared_ptr<CountingHook>> hooks;
  testing::Cluster cluster(GetParam(), {"worker0", "worker1"}, make_autograd_registry, [&](WorkerOptions& options) {
    hooks.push_back(std::make_shared<CountingHook>());
    options.hook = hooks.back();
  });
  testing::Network& net = cluster.network();
  const at::Tensor x = leaf({1, 2});
  {
    Context context(cluster[0]);
    const at::Tensor y = cluster[0].rpc_sync<&square>("worker1", x);
    RRef<at::Tensor> r = cluster[0].remote<&square>("worker1", x);
    context.backward({y.sum() + r.to_here().sum()});
    net.link("worker1", "worker0").hold();
    auto lost = cluster[0].rpc_async<&square>("worker1", x);
    cluster.run_until_idle();
    net.break_off("worker0", "worker1");
    EXPECT_EQ(lost.result().error().code(), Errc::peer_down);
    EXPECT_EQ(cluster[0].try_rpc_sync<&square>("worker1", x).error().code(), Errc::peer_down);
  }
  cluster.run_until_idle();
  EXPECT_EQ(hooks[0]->counts().requests, 5);
  EXPECT_EQ(hooks[0]->counts().unsent, 1);
  EXPECT_EQ(hooks[0]->counts().replies_received, 3);
  EXPECT_EQ(hooks[0]->counts().replies_dropped, 1);
  for (const auto& hook : hooks) EXPECT_TRUE(hook->all_ended_once());
  EXPECT_TRUE(cluster[0].autograd_contexts().empty());
  EXPECT_TRUE(cluster[1].autograd_contexts().empty());
}

}  // namespace
}  // namespace caftan::test::autograd_context_test
