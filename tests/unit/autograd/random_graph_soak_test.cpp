// The long form of random_graph_test.cpp: run it before closing a change of the engine or of the order of summation.
#include <gtest/gtest.h>

#include "random_graph_suites.hpp"

namespace caftan::autograd::test::random_graph_soak_test {
namespace {

TEST(RandomGraphsSoak, BitEqualInTenThousandGraphsWhereArithmeticIsExact) {
  EXPECT_EQ(run_suite(Numbers::small_integers, 100'000, 10'000).first_failure, "");
}

TEST(RandomGraphsSoak, BitEqualInFloat32InTenThousandGraphs) {
  EXPECT_EQ(run_suite(Numbers::floats, 100'000, 10'000).first_failure, "");
}

}  // namespace
}  // namespace caftan::autograd::test::random_graph_soak_test
