// What waits for a pass or a context: objects whose turn is kept meanwhile, calls of a context whose handle has ended,
// passes that are given up or come too late.
#include <gmock/gmock.h>

#include <optional>
#include <vector>

#include "autograd_roles.hpp"
#include "caftan/testing/cluster.hpp"
#include "caftan/transport/stepped_executor.hpp"

namespace caftan::test::autograd_waits_test {
namespace {

using autograd::Context;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

at::Tensor open_loss;
int run_backward(Worker& worker) {
  Context::current(worker).backward({open_loss});
  return 5;
}

/// The promise of the value that a called function waits for; the test completes it.
std::optional<Promise<int>> gate;

/// A module with an exclusive method that waits for a pass through its own graph.
class Holder {
 public:
  at::Tensor forward(const at::Tensor& x) const { return (weight_ * x).sum(); }
  int hold(Worker& worker) { return worker.rpc_sync<&run_backward>("worker1"); }
  int wait_for_gate() { return gate->future().get(); }
  int wait_then_ask(const RRef<Holder>& other) {
    return wait_for_gate() + other.with({.timeout = 5s}).rpc_sync<&Holder::answer>();
  }
  int answer() { return 7; }

 private:
  at::Tensor weight_ = leaf({3});
};

int add(int a, int b) { return a + b; }
int add_at_2(Worker& worker) { return worker.rpc_sync<&add>("worker2", 1, 2); }
int through_0(Worker& worker) { return worker.rpc_sync<&add_at_2>("worker0"); }

Registry make_registry() {
  Registry registry = make_autograd_registry();
  registry.add<&run_backward>("run_backward");
  registry.add<&add>("add_numbers");
  registry.add<&add_at_2>("add_at_2");
  registry.add<&through_0>("through_0");
  registry.add<Holder>("holder")
      .constructor<>()
      .method<&Holder::forward>("forward")
      .exclusive<&Holder::hold>("hold")
      .method<&Holder::answer>("answer")
      .exclusive<&Holder::wait_then_ask>("wait_then_ask")
      .exclusive<&Holder::wait_for_gate>("wait_for_gate");
  return registry;
}

class Waits : public AutogradCluster {
 protected:
  Waits() : AutogradCluster({"worker0", "worker1", "worker2"}, make_registry) {}
  ~Waits() override { open_loss = at::Tensor(); }
  base::TimePoint now() { return cluster_.executor().clock().now(); }
};
INSTANTIATE_TEST_SUITE_P(Seeds, Waits, ::testing::Range<std::uint64_t>(1, 11));

TEST_P(Waits, B3_DA22_APassThroughAnObjectThatIsHeldMeanwhileIsRefusedAtOnce) {
  const RRef<Holder> holder = (*this)[1].remote<Holder>("worker0");
  Context context((*this)[1]);
  open_loss = holder.rpc_sync<&Holder::forward>(leaf({2}));
  const base::TimePoint start = now();
  const auto held = holder.try_rpc_sync<&Holder::hold>();
  ASSERT_FALSE(held);
  EXPECT_EQ(now(), start);
  EXPECT_THAT(held.error().message(), HasSubstr("would_deadlock"));
  EXPECT_THAT(held.error().message(), HasSubstr("whose turn is kept by an exclusive method that waits for the pass"));
}

TEST_P(Waits, B3_DA23_APassThroughTwoObjectsLetsGoOfOneThatAnExclusiveMethodOfTheOtherAsks) {
  const RRef<Holder> first = (*this)[1].remote<Holder>("worker0");
  const RRef<Holder> second = (*this)[1].remote<Holder>("worker0");
  gate.emplace();
  Context context((*this)[1]);
  const at::Tensor loss = first.rpc_sync<&Holder::forward>(leaf({1})) + second.rpc_sync<&Holder::forward>(leaf({2}));
  const base::TimePoint start = now();
  Future<int> asked = second.rpc_async<&Holder::wait_then_ask>(first);
  run_until_idle();
  Future<void> pass = context.backward_async({loss});
  run_until_idle();
  gate->set(1);
  const Result<int> answer = asked.result();
  EXPECT_EQ(answer ? *answer : -1, 8) << answer.error().message();
  const Result<void> done = pass.result();
  EXPECT_TRUE(done) << done.error().message();
  EXPECT_EQ(now(), start);
  gate.reset();
}

TEST_P(Waits, B3_DA23_PassesThroughTwoObjectsInOppositeOrderDoNotWaitForEachOther) {
  const std::vector<RRef<Holder>> parts{(*this)[1].remote<Holder>("worker0"), (*this)[1].remote<Holder>("worker0")};
  const base::TimePoint start = now();
  std::vector<Context> open;
  std::vector<Future<void>> passes;
  for (const auto& [first, second] : {std::pair(0U, 1U), std::pair(1U, 0U)}) {
    open.emplace_back((*this)[1]);
    const at::Tensor loss =
        parts[first].rpc_sync<&Holder::forward>(leaf({1})) + parts[second].rpc_sync<&Holder::forward>(leaf({2}));
    passes.push_back(open.back().backward_async({loss}));
    Ambient::of_thread().autograd_context.reset();  // contexts do not nest
  }
  for (Future<void>& pass : passes) EXPECT_TRUE(pass.result());
  EXPECT_EQ(now(), start);
}

TEST_P(Waits, B5_DA19_ACallThatTheContextWaitsForGoesOnAfterTheHandlesEnd) {
  Future<int> sum;
  {
    Context context((*this)[0]);
    sum = (*this)[0].rpc_async<&through_0>("worker1");
  }
  EXPECT_EQ(sum.get(), 3);
  expect_no_contexts();
}

TEST_P(Waits, H1_BackwardRightAfterTheHandlesEndIsContextReleased) {
  const at::Tensor x = leaf({1, 2});
  std::optional<autograd::ContextView> view;
  at::Tensor y;
  {
    Context context((*this)[0]);
    y = (*this)[0].rpc_sync<&square>("worker1", x);
    view = Context::current((*this)[0]);
  }
  // The mailbox of the context's actor has the release, and behind it the request for the pass.
  const auto done = view->backward_async({y.sum()}).result();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Errc::context_released) << done.error().message();
}

TEST_P(Waits, DA10_CancellingTheFutureEndsThePassEverywhere) {
  const at::Tensor x = leaf({1, 2});
  Context context((*this)[0]);
  const at::Tensor y = (*this)[0].rpc_sync<&square>("worker1", x);
  net_.link("worker1", "worker0").hold();
  auto pass = context.backward_async({y.sum()}, {.retain_graph = true});
  run_until_idle();
  EXPECT_TRUE(pass.cancel());
  run_until_idle();
  EXPECT_EQ(pass.result().error().code(), Errc::cancelled);
  EXPECT_EQ((*this)[0].autograd_contexts()[0].passes, 1U) << "the pass is decided, the next one may begin";
  net_.link("worker1", "worker0").release();
  EXPECT_TRUE(context.gradients().empty());
  context.backward({y.sum()});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{2, 4}));
}

TEST_P(Waits, B8_ACallThatTheLaneRefusesMovesNoOrderKey) {
  testing::Cluster narrow(GetParam(), {"worker0", "worker1"}, make_registry,
                          [](WorkerOptions& options) { options.limits.pending_calls = 1; });
  const auto order_after = [&narrow](bool refused) {
    Context context(narrow[0]);
    auto first = narrow[0].rpc_async<&square>("worker1", leaf({1}));
    if (refused) {
      const auto second = narrow[0].with({.timeout = {}, .fail_when_full = true});
      EXPECT_EQ(second.try_rpc_sync<&square>("worker1", leaf({2})).error().code(), Errc::overloaded);
    }
    (void)first.get();
    return Ambient::current()->order.ordinal;
  };
  EXPECT_EQ(order_after(false), order_after(true));
}

TEST_P(Waits, K3_ReleasesOfManyOpenContextsStaySmall) {
  constexpr int kContexts = 300;
  const auto released = [this] {
    std::uint64_t bytes = 0;
    for (const auto& sent : (*this)[0].traffic()) bytes += sent.kind == "autograd.pass" ? sent.bytes : 0;
    return bytes;
  };
  std::vector<Context> open;
  Ambient& ambient = Ambient::of_thread();
  for (int i = 0; i < kContexts; ++i) {
    open.emplace_back((*this)[0]);
    (*this)[0].rpc_sync<&square>("worker1", leaf({1}));
    // Keeps this context open beside the next one: in one Ambient contexts do not nest.
    ambient.autograd_context.reset();
  }
  run_until_idle();
  const std::uint64_t before = released();
  open.clear();
  expect_no_contexts();
  EXPECT_LE(released() - before, kContexts * 400U);
}

TEST_P(Waits, K3_H8_AStopEndsThoughAPassWaitsForATurnAndSaysSo) {
  const RRef<Holder> holder = (*this)[1].remote<Holder>("worker0");
  gate.emplace();
  std::vector<Context> open;
  Ambient& ambient = Ambient::of_thread();
  constexpr std::size_t kContexts = 100;
  at::Tensor loss;
  for (std::size_t i = 0; i < kContexts; ++i) {
    open.emplace_back((*this)[1]);
    loss = holder.rpc_sync<&Holder::forward>(leaf({1}));
    // Keeps this context open beside the next one: in one Ambient contexts do not nest.
    ambient.autograd_context.reset();
  }
  const Future<int> kept = holder.rpc_async<&Holder::wait_for_gate>();
  const Future<void> pass = open.back().backward_async({loss});
  run_until_idle();
  const base::TimePoint begun = now();
  const StopReport given_up = (*this)[0].stop();
  EXPECT_LE(now() - begun, WorkerOptions().stop_timeout + 1s);
  EXPECT_EQ(given_up.contexts, kContexts);
  EXPECT_EQ(given_up.served_calls, 1U);
  EXPECT_EQ(given_up.in_use, 1U) << "the graph of the pass, which waits for the turn";
  EXPECT_EQ((*this)[0].stop().in_use, 0U) << "the first one said it";
  gate->set(1);
  run_until_idle();
  gate.reset();
  open.clear();
}

}  // namespace
}  // namespace caftan::test::autograd_waits_test
