#include "rl_bench/dummy_policy.hpp"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <set>

namespace caftan::rl_bench::dummy_policy_test {
namespace {

TEST(DummyPolicy, ChoosesAnActionForEachState) {
  DummyPolicy policy({2, 3}, 2, 4, 1);
  std::set<int> seen;
  for (int i = 0; i < 50; ++i) {
    const auto chosen = policy.choose({at::ones({2, 3}), at::zeros({2, 3}), at::ones({2, 3})});
    ASSERT_EQ(chosen.size(), 3U);
    seen.insert(chosen.begin(), chosen.end());
  }
  EXPECT_GE(*seen.begin(), 0);
  EXPECT_LT(*seen.rbegin(), 4);
  EXPECT_GT(seen.size(), 1U);
}

TEST(DummyPolicy, RefusesAStateOfAnotherSizeOrType) {
  const DummyPolicy policy({2, 3}, 0, 4, 1);
  EXPECT_TRUE(policy.check(at::ones({2, 3})));
  for (const at::Tensor& wrong : {at::ones({3, 2}), at::ones({6}), at::ones({2, 3}, at::kDouble), at::Tensor()}) {
    const auto checked = policy.check(wrong);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code(), Errc::bad_arguments);
    EXPECT_NE(checked.error().message().find("[2, 3]"), std::string::npos) << checked.error().text();
  }
}

}  // namespace
}  // namespace caftan::rl_bench::dummy_policy_test
