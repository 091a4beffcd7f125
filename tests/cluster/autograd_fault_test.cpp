// Workers that die in the middle of a pass: typed errors everywhere, no hang, nothing half applied, nothing left over.
#include <ATen/ops/stack.h>

#include "autograd_roles.hpp"
#include "caftan/testing/network.hpp"
#include "caftan/transport/stepped_executor.hpp"

namespace caftan::test::autograd_fault_test {
namespace {

using autograd::Context;
using autograd::Mode;

/// A worker dies after the n-th message of the pass, counted over all workers. The seed chooses n, so that the worker
/// dies after a mark, before a gradient or after a Done.
class KilledPass : public AutogradCluster {
 protected:
  std::size_t messages() const { return net_.count(wire::FrameKind::actor_message); }

  struct Outcome {
    Result<void> pass;
    std::vector<double> gradient;  // of x, at the initiator
  };
  /// Returns how many messages a pass as in `run` takes, with those that announce its end.
  std::size_t messages_of_a_pass(Mode mode) {
    const at::Tensor x = leaf({1, 2, 3});
    Context context((*this)[0]);
    const at::Tensor y = (*this)[0].rpc_sync<&relay>("worker1", std::vector<std::string>{"worker2"}, x);
    run_until_idle();
    const std::size_t before = messages();
    context.backward({y.sum()}, {.mode = mode});
    run_until_idle();
    return messages() - before;
  }
  /// worker0 -> worker1 -> worker2 and back; `victim` is lost once `after` messages of the pass were written.
  Outcome run(const std::string& victim, std::size_t after, Mode mode) {
    const at::Tensor x = leaf({1, 2, 3});
    Context context((*this)[0]);
    const at::Tensor y = (*this)[0].rpc_sync<&relay>("worker1", std::vector<std::string>{"worker2"}, x);
    run_until_idle();
    const std::size_t before = messages();
    Future<void> pass = context.backward_async({y.sum()}, {.mode = mode});
    Outcome outcome;
    while (messages() < before + after && cluster_.executor().step()) {
    }
    EXPECT_GE(messages(), before + after) << "the pass has no message " << after;
    net_.kill(victim);
    run_until_idle();
    EXPECT_TRUE(pass.ready()) << "hangs after message " << after << " without " << victim;
    if (!pass.ready()) return outcome;
    outcome.pass = std::move(pass).result();
    if (const auto gradients = context.try_gradients()) outcome.gradient = values(gradients->of(x));
    return outcome;
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, KilledPass, ::testing::Range<std::uint64_t>(1, 31));

class KilledParticipant : public KilledPass {};
INSTANTIATE_TEST_SUITE_P(Seeds, KilledParticipant, ::testing::Range<std::uint64_t>(1, 31));

TEST_P(KilledParticipant, DA10_ThePassEndsOnceAndAppliesAllOrNothing) {
  const std::string victim = GetParam() % 2 == 0 ? "worker1" : "worker2";
  const Mode mode = GetParam() % 4 < 2 ? Mode::smart : Mode::fast;
  const std::size_t all = messages_of_a_pass(mode);
  const std::size_t after = 1 + GetParam() / 4 % all;
  const Outcome outcome = run(victim, after, mode);
  if (after == 1) {
    EXPECT_FALSE(outcome.pass) << "a pass was whole without " << victim;
  }
  if (outcome.pass) {
    EXPECT_EQ(outcome.gradient, (std::vector<double>{6, 12, 18}));
  } else {
    EXPECT_EQ(outcome.pass.error().code(), Errc::peer_down) << outcome.pass.error().message();
    EXPECT_TRUE(outcome.gradient.empty());
  }
  expect_no_contexts();
}

TEST_P(KilledPass, TheHomesLossReleasesItAtAllOthers) {
  const Mode mode = GetParam() % 2 == 0 ? Mode::smart : Mode::fast;
  const std::size_t all = messages_of_a_pass(mode);
  (void)run("worker0", 1 + GetParam() / 2 % all, mode);
  run_until_idle();
  EXPECT_TRUE((*this)[1].autograd_contexts().empty());
  EXPECT_TRUE((*this)[2].autograd_contexts().empty());
}

class KilledInitiator : public KilledPass {};
INSTANTIATE_TEST_SUITE_P(Seeds, KilledInitiator, ::testing::Range<std::uint64_t>(1, 21));

TEST_P(KilledInitiator, TheHomeDecidesAndTheContextGoesOn) {
  const at::Tensor x = leaf({1, 2, 3});
  {
    Context context((*this)[0]);
    const at::Tensor y = (*this)[0].rpc_sync<&square>("worker1", x);
    const std::size_t before = messages();
    auto call = (*this)[0].rpc_async<&backward_there>("worker2", y);
    while (!call.ready() && messages() < before + 1 + GetParam() && cluster_.executor().step()) {
    }
    net_.kill("worker2");
    run_until_idle();
    EXPECT_TRUE(call.ready());
    (void)std::move(call).result();
    const auto first = values(context.gradients().of(x));
    EXPECT_TRUE(first.empty() || first == (std::vector<double>{2, 4, 6}));
    // The context can run another pass over the workers that are left, and its gradients are right.
    const at::Tensor again = (*this)[0].rpc_sync<&square>("worker1", x);
    context.backward({again.sum()});
    std::vector<double> expected{2, 4, 6};
    for (std::size_t i = 0; i < first.size(); ++i) expected[i] += first[i];
    EXPECT_EQ(values(context.gradients().of(x)), expected);
  }
  expect_no_contexts();
}

class LeavingWorker : public KilledPass {};
INSTANTIATE_TEST_SUITE_P(Seeds, LeavingWorker, ::testing::Range<std::uint64_t>(1, 17));

TEST_P(LeavingWorker, EndsInTheMiddleOfAPass) {
  const at::Tensor x = leaf({1, 2, 3});
  Context context((*this)[0]);
  const at::Tensor y = (*this)[0].rpc_sync<&relay>("worker1", std::vector<std::string>{"worker2"}, x);
  const std::size_t before = messages();
  Future<void> pass = context.backward_async({y.sum()});
  while (!pass.ready() && messages() < before + GetParam() && cluster_.executor().step()) {
  }
  const std::size_t leaver = GetParam() % 3;
  (*this)[leaver].stop();  // comes back
  run_until_idle();
  ASSERT_TRUE(pass.ready());
  const auto outcome = std::move(pass).result();
  if (!outcome) {
    EXPECT_EQ(outcome.error().code(), leaver == 0 ? Errc::shut_down : Errc::peer_down) << outcome.error().message();
  }
  if (leaver == 0) return;  // the gradients at the home end with its worker
  const auto gradients = context.try_gradients();
  ASSERT_TRUE(gradients);
  EXPECT_EQ(values(gradients->of(x)), outcome ? (std::vector<double>{6, 12, 18}) : std::vector<double>{});
}

/// A hop under so many local nodes that their walk begins in the actor's handler and goes on in jobs.
class LongWalk : public AutogradCluster {
 protected:
  Future<void> start(const Context& context, const at::Tensor& x, int nodes) {
    at::Tensor y = (*this)[0].rpc_sync<&square>("worker1", x);
    for (int i = 0; i < nodes; ++i) y = y + 1;
    return context.backward_async({y.sum()});
  }
  /// Runs at most `steps` tasks of the executor: the whole pass needs more.
  void step(std::uint64_t steps) {
    while (steps-- > 0 && cluster_.executor().step()) {
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Steps, LongWalk, ::testing::Range<std::uint64_t>(1, 25));

TEST_P(LongWalk, DA11_TheGradientIsThatOfAShortOne) {
  const at::Tensor x = leaf({1, 2, 3});
  for (const int nodes : {124, 125, 126, 127, 128, 129, 3000}) {
    const Context context((*this)[0]);
    Future<void> pass = start(context, x, nodes);
    std::move(pass).get();
    EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{2, 4, 6})) << nodes;
  }
}

TEST_P(LongWalk, DA10_ALossInTheMiddleEndsIt) {
  const at::Tensor x = leaf({1, 2, 3});
  {
    const Context context((*this)[0]);
    Future<void> pass = start(context, x, 3000);
    step(GetParam());
    net_.kill("worker1");
    run_until_idle();
    ASSERT_TRUE(pass.ready());
    const auto outcome = std::move(pass).result();
    if (!outcome) {
      EXPECT_EQ(outcome.error().code(), Errc::peer_down) << outcome.error().message();
    }
    EXPECT_EQ(context.gradients().empty(), !outcome);
  }
  expect_no_contexts();
}

TEST_P(LongWalk, ItsContextIsReleasedInTheMiddle) {
  const at::Tensor x = leaf({1, 2, 3});
  Future<void> pass;
  {
    const Context context((*this)[0]);
    pass = start(context, x, 3000);
    step(GetParam());
  }
  expect_no_contexts();
  ASSERT_TRUE(pass.ready());
  pass.forget();
}

/// A pass that marks many messages of one peer at once.
class ManyMarks : public AutogradCluster {
 protected:
  /// Returns how many tasks run from the frame with the marks to the first message that worker1 sends about them.
  std::size_t tasks_of_the_walk(int marks) {
    const at::Tensor x = leaf({1});
    const Context context((*this)[0]);
    std::vector<at::Tensor> results;
    for (int i = 0; i < marks; ++i) results.push_back((*this)[0].rpc_sync<&square>("worker1", x));
    run_until_idle();
    testing::Link& there = net_.link("worker0", "worker1");
    const testing::Link& back = net_.link("worker1", "worker0");
    there.hold();
    Future<void> pass = context.backward_async({at::stack(results).sum()});
    run_until_idle();
    const std::size_t before = back.count(wire::FrameKind::actor_message);
    there.release();
    std::size_t tasks = 0;
    while (back.count(wire::FrameKind::actor_message) == before && cluster_.executor().step()) ++tasks;
    std::move(pass).get();
    EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{2.0 * marks}));
    return tasks;
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, ManyMarks, ::testing::Range<std::uint64_t>(1, 4));

TEST_P(ManyMarks, DA11_AreWalkedByARunnersJob) {
  const std::size_t in_place = tasks_of_the_walk(1);
  EXPECT_EQ(tasks_of_the_walk(128), in_place);
  EXPECT_GT(tasks_of_the_walk(129), in_place) << "the job, and the actor that gets its end, are tasks of their own";
}

class TimedPass : public AutogradCluster {};
INSTANTIATE_TEST_SUITE_P(Seeds, TimedPass, ::testing::Range<std::uint64_t>(1, 6));

TEST_P(TimedPass, ATimeoutEndsItEverywhereAndTheNextOneWorks) {
  const at::Tensor x = leaf({1, 2, 3});
  Context context((*this)[0]);
  const at::Tensor y = (*this)[0].rpc_sync<&square>("worker1", x);
  net_.link("worker1", "worker0").hold();
  Future<void> pass =
      context.backward_async({y.sum()}, {.retain_graph = true, .timeout = std::chrono::milliseconds(100)});
  run_until_idle();
  EXPECT_FALSE(pass.ready());
  cluster_.executor().advance(std::chrono::milliseconds(101));
  run_until_idle();
  ASSERT_TRUE(pass.ready());
  EXPECT_EQ(pass.result().error().code(), Errc::timeout);
  net_.link("worker1", "worker0").release();
  run_until_idle();
  EXPECT_TRUE(context.gradients().empty());
  context.backward({y.sum()});
  EXPECT_EQ(values(context.gradients().of(x)), (std::vector<double>{2, 4, 6}));
}

}  // namespace
}  // namespace caftan::test::autograd_fault_test
