// Random graphs over 2 to 4 Workers, recorded by real calls and differentiated by real passes, against one local graph
// (autograd-protocol, "Tests that cannot be fooled"). tests/unit/autograd/random_graph_test.cpp does the same with the
// engine alone.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <functional>
#include <iostream>

#include "graph_cluster.hpp"
#include "soak_size.hpp"

namespace caftan::test::autograd_graphs_test {
namespace {

using autograd::test::Case;
using autograd::test::first_difference;
using autograd::test::Histogram;
using autograd::test::LeafGradients;
using autograd::test::LocalRun;
using autograd::test::Numbers;
using autograd::test::to_dense;

/// How many graphs the suite with exact arithmetic runs; the two other suites run half as many each.
const std::size_t kGraphs = soak_size("CAFTAN_GRAPHS", 500);

/// What adding a gradient to itself gives.
LeafGradients doubled(LeafGradients gradients) {
  for (auto& leaves : gradients) {
    for (at::Tensor& gradient : leaves) {
      if (gradient.defined()) gradient = gradient + gradient;
    }
  }
  return gradients;
}

class Graphs : public ::testing::Test {
 protected:
  /// @param check  compares one graph
  void run_suite(Numbers numbers, std::size_t wanted, const std::function<void(const Case&, const LocalRun&)>& check) {
    std::size_t graphs = 0;
    // The soak test runs this code with a larger kGraphs: its seeds begin at kGraphs, so that its graphs are not those
    // of the short test.
    for (std::uint64_t seed = kGraphs; graphs < wanted && !HasFailure(); ++seed) {
      const Case one{seed, numbers};
      const auto local = run_locally(one);
      if (!local) continue;
      SCOPED_TRACE("seed " + std::to_string(seed));
      ++graphs;
      operations_.add(local->operations);
      workers_.add(one.workers);
      check(one, *local);
    }
    for (const Histogram* each : {&workers_, &operations_, &marked_, &unused_, &returned_, &messages_}) each->print();
    std::cout << other_orders_ << " passes again in another order, " << fast_ << " also in FAST mode\n";
    EXPECT_GE(operations_.median(), 40U);
    EXPECT_GE(marked_.median(), 6U);
    EXPECT_GT(unused_.above_zero(), graphs / 2);
    EXPECT_GT(returned_.above_zero(), graphs / 2);
    EXPECT_GT(other_orders_, graphs / 2);
    EXPECT_GT(fast_, graphs / 8);
  }

  /// Runs the case twice, with two seeds for the order of all events: both runs must give the same bits. Returns the
  /// gradients of the first.
  LeafGradients run_twice(const Case& one, Spans spans) {
    const GraphRun run = run_over_cluster(one, spans, 2 * one.seed);
    const GraphRun other = run_over_cluster(one, spans, 2 * one.seed + 1);
    EXPECT_EQ(first_difference(run.gradients, other.gradients), "");
    EXPECT_EQ(first_difference(run.both, other.both), "");
    other_orders_ += run.trace == other.trace ? 0 : 1;
    marked_.add(run.marked);
    unused_.add(run.recorded - run.marked);
    returned_.add(run.returned);
    messages_.add(run.trace.size());
    expect_fast(run);
    EXPECT_EQ(run.left + other.left, 0U);
    return run.gradients;
  }

  /// A second pass, in mode FAST, adds the same gradients once more. Where a branch is unused the pass is refused and
  /// adds nothing. Messages of a worker that the pass does not reach do not count as unused branches.
  void expect_fast(const GraphRun& run) {
    if (run.marked < run.awaited) {
      ASSERT_FALSE(run.fast);
      EXPECT_EQ(run.fast.error().code(), Errc::unused_branch) << run.fast.error().message();
    } else {
      EXPECT_TRUE(run.fast) << run.fast.error().message();
      ++fast_;
    }
    EXPECT_EQ(first_difference(to_dense(run.fast ? doubled(run.gradients) : run.gradients), to_dense(run.both)), "");
  }

 private:
  Histogram workers_{"workers", 1};
  Histogram operations_{"operations", 20};
  Histogram marked_{"marked messages (hops)"};
  Histogram unused_{"unused messages"};
  Histogram returned_{"gradients that came back to the initiator"};
  Histogram messages_{"messages of a pass", 20};
  std::size_t other_orders_ = 0;
  std::size_t fast_ = 0;
};

TEST_F(Graphs, BitEqualToTheLocalGraphWhereArithmeticIsExact) {
  run_suite(Numbers::small_integers, kGraphs, [this](const Case& one, const LocalRun& local) {
    // The order of a sparse gradient's entries is that of the spans, which the local graph has not.
    EXPECT_EQ(first_difference(to_dense(local.gradients), to_dense(run_twice(one, Spans::calls))), "");
  });
}

TEST_F(Graphs, BitEqualInFloat32WhereEachWorkerRunsOneSpan) {
  run_suite(Numbers::floats, kGraphs / 2, [this](const Case& one, const LocalRun& local) {
    EXPECT_EQ(first_difference(local.gradients, run_twice(one, Spans::one_each)), "");
  });
}

TEST_F(Graphs, BitEqualInFloat32InEveryOrderWhereEachSpanIsACall) {
  run_suite(Numbers::floats, kGraphs / 2, [this](const Case& one, const LocalRun&) { run_twice(one, Spans::calls); });
}

}  // namespace
}  // namespace caftan::test::autograd_graphs_test
