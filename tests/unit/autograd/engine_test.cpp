#include "caftan/autograd/internal/engine.hpp"

#include <ATen/SequenceNumber.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gmock/gmock.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <stdexcept>
#include <string>
#include <thread>

#include "graph_program.hpp"
#include "local_pass.hpp"

namespace caftan::autograd::test::engine_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using torch::autograd::Node;

at::Tensor leaf(double value) { return at::full({3}, value).set_requires_grad(true); }

/// Puts `run` behind the node of `tensor` as a hook of the node.
void add_node_hook(const at::Tensor& tensor, std::function<void()> run) {
  torch::autograd::impl::gradient_edge(tensor).function->add_pre_hook(
      std::make_unique<PreHook>([run = std::move(run)](const variable_list& gradients) {
        run();
        return gradients;
      }));
}

Program local_program(std::uint64_t seed) {
  IdentityHops identity;
  return run_program(seed, Numbers::floats, 2, 10, Roots::a_few, identity);
}

TEST(Engine, BitEqualToTorchOn300RandomGraphsInSlicesOfAnyLength) {
  NoPeers none;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Program program = local_program(seed);
    const std::unique_ptr<Engine> engine = make_engine(program.roots, /*keep_graph=*/true);
    for (std::uint64_t i = seed;; ++i) {
      const Result<Engine::RunSlice> ran = engine->run(1 + i % 17, none);
      ASSERT_TRUE(ran) << ran.error().message();
      if (ran->drained) break;
      ASSERT_FALSE(ran->idle);
    }
    const GradientBook book = engine->take_staged();
    torch::autograd::backward(program.roots, {});
    for (const auto& leaves : program.leaves) {
      for (const at::Tensor& leaf : leaves) ASSERT_EQ(bit_difference(leaf.grad(), book.of(leaf)), "") << seed;
    }
  }
}

TEST(Engine, Row16_05_LeavesGradAlone) {
  const at::Tensor x = leaf(2);
  (x * x).sum().backward();
  const at::Tensor before = x.grad().clone();
  const Result<GradientBook> book = backward({(x * x * x).sum()});
  EXPECT_TRUE(at::equal(x.grad(), before));
  EXPECT_TRUE(at::equal(book->of(x), at::full({3}, 12.0)));
}

/// Hooks of every kind on x -> y -> z -> sum.
struct HookedGraph {
  explicit HookedGraph(std::vector<std::string>& log) : x(leaf(1)) {
    const auto note = [&log](std::string what) { return [&log, what = std::move(what)] { log.push_back(what); }; };
    const at::Tensor y = x * 2;
    at::Tensor z = y * 3;
    root = z.sum();
    z.register_hook([&log](const at::Tensor& gradient) {
      log.push_back("hook of z");
      return gradient * 2;
    });
    z.retain_grad();
    retained = z;
    add_node_hook(y, note("pre-hook of y's node"));
    y.grad_fn()->add_post_hook(std::make_unique<PostHook>(note("post-hook of y's node")));
    z.grad_fn()->add_post_hook(std::make_unique<PostHook>(note("post-hook of z's node")));
    x.register_hook([&log](const at::Tensor&) { log.push_back("hook of x"); });
    add_node_hook(x, note("pre-hook of x's accumulator"));
    accumulator = torch::autograd::impl::grad_accumulator(x);
    accumulator->add_post_hook(std::make_unique<PostHook>(note("post-hook of x's accumulator")));
  }
  at::Tensor x;
  at::Tensor retained;
  at::Tensor root;
  std::shared_ptr<Node> accumulator;
};

TEST(Engine, Row19_01_Row19_02_HooksRunInTorchsOrderAndChangeGradients) {
  std::vector<std::string> stock_log;
  const HookedGraph stock(stock_log);
  stock.root.backward();
  std::vector<std::string> log;
  const HookedGraph ours(log);
  const Result<GradientBook> book = backward({ours.root});
  EXPECT_EQ(log, stock_log);
  EXPECT_EQ(log.size(), 7u);
  EXPECT_EQ(bit_difference(stock.x.grad(), book->of(ours.x)), "");
  EXPECT_EQ(bit_difference(stock.retained.grad(), ours.retained.grad()), "") << "retain_grad sees earlier hooks";
  EXPECT_EQ(book->entries().size(), 1u);
}

TEST(Engine, LeafHooksRunAlsoWithoutAGradient) {
  int runs = 0;
  const at::Tensor x = leaf(1);
  const at::Tensor unused = leaf(2);
  // The node gives its second input an undefined gradient; the node of `unused` has to wait for that one, too.
  class Drops final : public Node {
    variable_list apply(variable_list&& gradients) override { return {gradients[0], at::Tensor()}; }
  };
  const std::shared_ptr<Node> node(new Drops, torch::autograd::deleteNode);
  node->set_next_edges(torch::autograd::collect_next_edges(x, unused));
  at::Tensor y = x.detach().clone();
  torch::autograd::create_gradient_edge(y, node);
  add_node_hook(unused, [&runs] { ++runs; });
  const Result<GradientBook> book = backward({y.sum()});
  EXPECT_EQ(runs, 1);
  EXPECT_FALSE(book->of(unused).defined()) << "no gradient, not a zero one";
  EXPECT_TRUE(book->of(x).defined());
}

TEST(Engine, Row17_01_TwoPassesOverAKeptGraphAddUp) {
  const at::Tensor x = leaf(2);
  const at::Tensor root = (x * x).sum();
  GradientBook book;
  book.merge(*backward({root}, /*keep_graph=*/true));
  book.merge(*backward({root}));
  EXPECT_TRUE(at::equal(book.of(x), at::full({3}, 8.0)));
}

TEST(Engine, AFreedGraphAndAChangedTensorAreTorchsErrors) {
  const at::Tensor x = leaf(2);
  const at::Tensor root = (x * x).sum();
  ASSERT_TRUE(backward({root}));
  const Result<GradientBook> second = backward({root});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Errc::backward_failed);
  EXPECT_THAT(second.error().text(),
              HasSubstr("node MulBackward0: Trying to backward through the graph a second time"));

  at::Tensor y = x * 2;
  const at::Tensor squared = (y * y).sum();
  y.add_(1);
  const Result<GradientBook> changed = backward({squared});
  ASSERT_FALSE(changed);
  EXPECT_THAT(changed.error().text(), HasSubstr("modified by an inplace operation"));
}

TEST(Engine, WhatANodeThrowsEndsThePassWithItsName) {
  const at::Tensor x = leaf(2);
  const at::Tensor y = x * 3;
  NoPeers none;
  add_node_hook(y, [] { throw std::runtime_error("a fault of the user's"); });
  const std::unique_ptr<Engine> engine = make_engine({y.sum()});
  const Result<Engine::RunSlice> ran = engine->run(kAll, none);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().message(), "backward_failed: node MulBackward1: a fault of the user's");
  EXPECT_EQ(engine->failed_node(), "MulBackward1");
  EXPECT_EQ(engine->run(kAll, none).error().message(), ran.error().message()) << "and stays failed";
}

TEST(Engine, AnRpcExceptionOfANodeIsTheCause) {
  const at::Tensor x = leaf(2);
  const at::Tensor y = x * 3;
  add_node_hook(y, [] { throw RpcException(Error(Errc::peer_down, "worker1", "gone")); });
  const Result<GradientBook> book = backward({y.sum()});
  ASSERT_FALSE(book);
  EXPECT_EQ(book.error().code(), Errc::backward_failed);
  ASSERT_TRUE(book.error().cause());
  EXPECT_EQ(book.error().cause()->code(), Errc::peer_down);
}

TEST(Engine, AnomalyModeFindsTheNodeThatGaveNan) {
  const torch::autograd::DetectAnomalyGuard anomaly;
  const at::Tensor x = leaf(0);
  ::testing::internal::CaptureStderr();
  const Result<GradientBook> book = backward({(at::sqrt(x) * 0).sum()});
  const std::string warned = ::testing::internal::GetCapturedStderr();
  ASSERT_FALSE(book);
  EXPECT_THAT(book.error().text(), HasSubstr("Function 'SqrtBackward0' returned nan values in its 0th output."));
  EXPECT_THAT(warned, HasSubstr("SqrtBackward0")) << "where the forward pass made the node";
}

TEST(Engine, AStockBackwardInsideANodeWorks) {
  const at::Tensor x = leaf(2);
  const at::Tensor inner = leaf(3);
  const at::Tensor y = x * 3;
  add_node_hook(y, [&inner] {
    const c10::AutoGradMode with_graph(true);
    (inner * inner).sum().backward();
  });
  const Result<GradientBook> book = backward({y.sum()});
  ASSERT_TRUE(book) << book.error().message();
  EXPECT_TRUE(at::equal(inner.grad(), at::full({3}, 6.0)));
  EXPECT_FALSE(book->of(inner).defined());
  EXPECT_TRUE(at::equal(book->of(x), at::full({3}, 3.0)));
}

TEST(Engine, SlicesMayRunOnDifferentThreads) {
  const Program program = local_program(7);
  NoPeers none;
  const std::unique_ptr<Engine> engine = make_engine(program.roots, /*keep_graph=*/true);
  bool drained = false;
  while (!drained) {
    std::thread([&] {
      const c10::AutoGradMode on(true);  // switches grad mode of the thread, not of the pass
      const Result<Engine::RunSlice> ran = engine->run(3, none);
      ASSERT_TRUE(ran);
      drained = ran->drained;
      EXPECT_TRUE(c10::GradMode::is_enabled());
    }).join();
  }
  const GradientBook book = engine->take_staged();
  torch::autograd::backward(program.roots, {});
  for (const at::Tensor& each : program.leaves[0]) EXPECT_EQ(bit_difference(each.grad(), book.of(each)), "");
}

TEST(Engine, DA11_AnAbortIsSeenBetweenTwoNodes) {
  const at::Tensor x = leaf(2);
  const at::Tensor y = x * 3;
  const at::Tensor z = y * 4;
  std::unique_ptr<Engine> engine;
  int ran_after = 0;
  add_node_hook(y, [&ran_after] { ++ran_after; });
  add_node_hook(z, [&engine] { std::thread([&engine] { engine->abort(); }).join(); });
  engine = make_engine({z.sum()});
  NoPeers none;
  const Result<Engine::RunSlice> ran = engine->run(kAll, none);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code(), Errc::cancelled);
  EXPECT_EQ(ran_after, 0);
  EXPECT_EQ(engine->run(kAll, none).error().code(), Errc::cancelled);
}

TEST(Engine, DA14_KnowsWhichPassesThisThreadIsInside) {
  const ContextId outer{{}, {1}, 1};
  const ContextId inner{{}, {1}, 2};
  const at::Tensor x = leaf(2);
  const at::Tensor y = x * 3;
  const at::Tensor u = leaf(2);
  const at::Tensor v = u * 3;
  const at::Tensor inner_root = v.sum();
  NoPeers none;
  std::vector<bool> seen;
  add_node_hook(v, [&] {
    seen.push_back(Engine::is_inside_pass_of(outer));
    seen.push_back(Engine::is_inside_pass_of(inner));
    std::thread([&] { seen.push_back(Engine::is_inside_pass_of(outer)); }).join();
  });
  add_node_hook(y, [&] {
    seen.push_back(Engine::is_inside_pass_of(inner));
    EXPECT_TRUE(make_engine({inner_root}, false, inner)->run(kAll, none));
    seen.push_back(Engine::is_inside_pass_of(inner));
  });
  const at::Tensor root = y.sum();
  EXPECT_TRUE(make_engine({root}, false, outer)->run(kAll, none));
  EXPECT_THAT(seen, ElementsAre(false, true, true, false, false));
  EXPECT_FALSE(Engine::is_inside_pass_of(outer));
}

TEST(Engine, Row18_04_BadRootsAreTypedErrorsThatNameThem) {
  const Result<std::unique_ptr<Engine>> engine = Engine::begin({});
  const at::Tensor x = leaf(2);
  const auto error_of = [&](const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& gradients = {}) {
    const Result<void> added = (*engine)->add_roots(roots, gradients);
    EXPECT_FALSE(added);
    if (added) return std::string();
    EXPECT_EQ(added.error().code(), Errc::bad_arguments);
    return added.error().text();
  };
  EXPECT_THAT(error_of({}), HasSubstr("at least one root"));
  EXPECT_THAT(error_of({x.sum(), at::Tensor()}), HasSubstr("root 1 is undefined"));
  EXPECT_THAT(error_of({x.sum(), at::ones({1})}), HasSubstr("root 1 requires no grad"));
  EXPECT_THAT(error_of({x * 2}), HasSubstr("root 0 has sizes [3]: backward needs its gradient"));
  EXPECT_THAT(error_of({x * 2}, {at::ones({2})}), HasSubstr("gradient of root 0 has sizes [2]"));
  EXPECT_THAT(error_of({x * 2}, {at::ones({3}, at::kDouble)}), HasSubstr("dtype Double"));
  const at::Tensor elsewhere = at::ones({3}, at::TensorOptions(at::kMeta));
  EXPECT_THAT(error_of({x * 2}, {elsewhere}), HasSubstr("gradient of root 0 has device meta, its tensor has cpu"));
  EXPECT_THAT(error_of({x * 2}, {at::ones({3}), at::ones({3})}), HasSubstr("2 gradients for 1 roots"));
  EXPECT_TRUE((*engine)->add_roots(std::vector<at::Tensor>{x * 2}, std::vector<at::Tensor>{at::ones({3})}));
}

/// Returns the gradient of a leaf that is used three times, twice of them on a thread that has recorded `before` nodes.
/// In float the sum differs with the order in which the three contributions are added.
float gradient_recorded_after(std::uint64_t before) {
  const at::Tensor x = at::ones({1}).set_requires_grad(true);
  at::Tensor large;
  at::Tensor opposite;
  std::thread([&] {
    for (; before > 0; --before) at::sequence_number::get_and_increment();
    large = x * 1e8;
    opposite = x * -1e8;
  }).join();
  return backward({(large + opposite + x * 1).sum()})->of(x).item<float>();
}

TEST(Engine, WhatAThreadHasRecordedBeforeDoesNotDecideTheOrderOfSummation) {
  // Moves this thread's sequence numbers between those of the two threads that gradient_recorded_after starts.
  for (int i = 0; i < 10; ++i) at::sequence_number::get_and_increment();
  EXPECT_EQ(gradient_recorded_after(0), gradient_recorded_after(at::sequence_number::peek() + 1000));
}

/// What the thread that begins a pass has set.
class Marker final : public c10::DebugInfoBase {};

/// Returns what the hook of a leaf sees of the marker, in a pass that began with it and runs on another thread.
std::vector<bool> marker_seen_by_hook(const std::function<at::Tensor(const at::Tensor&)>& make_root) {
  std::vector<bool> seen;
  const at::Tensor x = at::ones({}).set_requires_grad(true);
  x.register_hook([&seen](const at::Tensor&) {
    seen.push_back(c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::TEST_INFO) != nullptr);
  });
  std::unique_ptr<Engine> engine;
  {
    const c10::DebugInfoGuard marked(c10::DebugInfoKind::TEST_INFO, std::make_shared<Marker>());
    engine = make_engine({make_root(x)});
  }
  std::thread([&] {
    NoPeers none;
    EXPECT_TRUE(engine->run(kAll, none)->drained);
    EXPECT_EQ(c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::TEST_INFO), nullptr);
  }).join();
  return seen;
}

TEST(Engine, CodeOfAPassFindsTheStateOfTheThreadThatBeganIt) {
  EXPECT_THAT(marker_seen_by_hook([](const at::Tensor& x) { return x * 2; }), ElementsAre(true));
  EXPECT_THAT(marker_seen_by_hook([](const at::Tensor& x) { return x; }), ElementsAre(true)) << "a hook alone";
}

TEST(Engine, RefusesToBeginInInferenceMode) {
  const c10::InferenceMode guard;
  const Result<std::unique_ptr<Engine>> engine = Engine::begin({});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code(), Errc::bad_arguments);
}

TEST(Engine, DA4_NothingRunsBeforeTheWalkHasEnded) {
  const at::Tensor x = leaf(2);
  Result<std::unique_ptr<Engine>> engine = Engine::begin({});
  ASSERT_TRUE((*engine)->add_roots(std::vector<at::Tensor>{((x * 2) * 3).sum()}));
  EXPECT_FALSE((*engine)->walk(1).done);
  NoPeers none;
  EXPECT_EQ((*engine)->run(kAll, none).error().code(), Errc::backward_failed);
  EXPECT_TRUE((*engine)->walk(kAll).done);
  EXPECT_TRUE((*engine)->run(kAll, none)->drained);
}

TEST(Engine, ADeepGraphIsNoRecursion) {
  const at::Tensor x = leaf(1);
  at::Tensor y = x;
  for (int i = 0; i < 50'000; ++i) y = y + 1;
  const Result<GradientBook> book = backward({y.sum()});
  ASSERT_TRUE(book);
  EXPECT_TRUE(at::equal(book->of(x), at::ones({3})));
}

}  // namespace
}  // namespace caftan::autograd::test::engine_test
