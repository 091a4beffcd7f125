// Random graphs over several workers against one local graph (autograd-protocol, "Tests that cannot be fooled"). The
// long form is random_graph_soak_test.cpp.
#include <gtest/gtest.h>

#include "random_graph_suites.hpp"

namespace caftan::autograd::test::random_graph_test {
namespace {

void expect_hard_graphs(const SuiteResult& result) {
  EXPECT_GE(result.median_operations, 40u);
  EXPECT_GE(result.median_hops, 6u);
  EXPECT_GT(result.unused_graphs, result.graphs / 2);
  EXPECT_GT(result.reentrant_graphs, result.graphs / 2);
  EXPECT_GT(result.reordered, result.graphs);
}

TEST(RandomGraphs, BitEqualToTheLocalGraphWhereArithmeticIsExact) {
  const SuiteResult result = run_suite(Numbers::small_integers, 1, 500);
  EXPECT_EQ(result.first_failure, "");
  expect_hard_graphs(result);
}

TEST(RandomGraphs, BitEqualInFloat32ToTheLocalGraphAndForEveryOrderOfDelivery) {
  const SuiteResult result = run_suite(Numbers::floats, 1, 500);
  EXPECT_EQ(result.first_failure, "");
  expect_hard_graphs(result);
}

}  // namespace
}  // namespace caftan::autograd::test::random_graph_test
