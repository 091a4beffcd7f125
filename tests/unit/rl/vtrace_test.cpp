#include "caftan/rl/vtrace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "caftan/rl/random.hpp"

namespace caftan::rl::vtrace_test {
namespace {

/// Steps with the memory that VtraceSteps shows.
struct Made {
  std::size_t steps = 0;
  std::size_t environments = 1;
  std::vector<float> log_ratios{};
  std::vector<float> rewards{};
  std::vector<float> values{};
  std::vector<float> next_values{};
  std::vector<std::uint8_t> ends{};

  VtraceSteps view() const { return {steps, environments, log_ratios, rewards, values, next_values, ends}; }
};

/// Random steps of some environments, with ends at random places.
Made random_steps(std::uint64_t seed, std::size_t steps, std::size_t environments) {
  Pcg64 random(seed);
  Made made{.steps = steps, .environments = environments};
  for (std::size_t at = 0; at < steps * environments; ++at) {
    made.log_ratios.push_back(static_cast<float>(random.uniform(-1, 1)));
    made.rewards.push_back(static_cast<float>(random.uniform(-2, 2)));
    made.values.push_back(static_cast<float>(random.uniform(-3, 3)));
    made.ends.push_back(random.uniform() < 0.2 ? 1 : 0);
  }
  for (std::size_t at = 0; at < steps * environments; ++at) {
    const bool is_last = at + environments >= steps * environments;
    const bool follows = made.ends[at] == 0 && !is_last;
    made.next_values.push_back(follows ? made.values[at + environments] : static_cast<float>(random.uniform(-3, 3)));
  }
  return made;
}

/// The definition of the paper, remark 1 aside: v_s = V(x_s) + sum over t of gamma^(t-s) (product of c) delta_t.
double target_of(const Made& made, const VtraceOptions& options, std::size_t step, std::size_t i) {
  const auto at = [&](std::size_t t) { return t * made.environments + i; };
  double target = static_cast<double>(made.values[at(step)]);
  double factor = 1;
  for (std::size_t t = step; t < made.steps; ++t) {
    const double ratio = std::exp(static_cast<double>(made.log_ratios[at(t)]));
    target +=
        factor * std::min(options.ratio_limit, ratio) *
        (static_cast<double>(made.rewards[at(t)]) + options.discount * static_cast<double>(made.next_values[at(t)]) -
         static_cast<double>(made.values[at(t)]));
    if (made.ends[at(t)] != 0) break;
    factor *= options.discount * options.lambda * std::min(options.trace_limit, ratio);
  }
  return target;
}

TEST(Vtrace, IsTheSumOfThePaper) {
  for (const VtraceOptions& options :
       {VtraceOptions{}, VtraceOptions{.discount = 0.9, .lambda = 0.8, .ratio_limit = 1.3, .trace_limit = 0.7},
        VtraceOptions{.discount = 1, .lambda = 0}}) {
    const Made made = random_steps(7, 23, 5);
    const auto targets = vtrace(made.view(), options);
    ASSERT_TRUE(targets) << targets.error().text();
    for (std::size_t step = 0; step < made.steps; ++step) {
      for (std::size_t i = 0; i < made.environments; ++i) {
        const std::size_t at = step * made.environments + i;
        EXPECT_NEAR(targets->values[at], target_of(made, options, step, i), 1e-4) << step << ' ' << i;
        const bool follows = made.ends[at] == 0 && step + 1 < made.steps;
        const double next = follows ? target_of(made, options, step + 1, i) : static_cast<double>(made.next_values[at]);
        const double weight = std::min(options.ratio_limit, std::exp(static_cast<double>(made.log_ratios[at])));
        EXPECT_NEAR(targets->advantages[at],
                    weight * (static_cast<double>(made.rewards[at]) + options.discount * next -
                              static_cast<double>(made.values[at])),
                    1e-4)
            << step << ' ' << i;
      }
    }
  }
}

TEST(Vtrace, OfEqualPoliciesIsTheDiscountedReturn) {
  const Made made{.steps = 3,
                  .log_ratios = {0, 0, 0},
                  .rewards = {1, 2, 4},
                  .values = {10, 20, 30},
                  .next_values = {20, 30, 40},
                  .ends = {0, 0, 0}};
  const auto targets = vtrace(made.view(), {.discount = 0.5});
  ASSERT_TRUE(targets);
  EXPECT_EQ(targets->values, (std::vector<float>{1 + 1 + 1 + 5, 2 + 2 + 10, 4 + 20}));
  EXPECT_EQ(targets->advantages, (std::vector<float>{8 - 10, 14 - 20, 24 - 30}));
}

TEST(Vtrace, AnEndCutsTheTraceAndKeepsWhatFollows) {
  const Made made{
      .steps = 2, .log_ratios = {0, 0}, .rewards = {1, 100}, .values = {0, 7}, .next_values = {6, 0}, .ends = {1, 1}};
  const auto targets = vtrace(made.view(), {.discount = 0.5});
  ASSERT_TRUE(targets);
  EXPECT_EQ(targets->values, (std::vector<float>{1 + 3, 100})) << "6 is the value of a truncated episode's last state";
}

TEST(Vtrace, LimitsTheWeightsOfActionsThatHaveBecomeMoreProbable) {
  const float log_2 = std::numbers::ln2_v<float>;
  const Made made{.steps = 2,
                  .log_ratios = {log_2, log_2},
                  .rewards = {1, 1},
                  .values = {0, 0},
                  .next_values = {0, 0},
                  .ends = {0, 0}};
  EXPECT_EQ(vtrace(made.view(), {.discount = 1}).value().values, (std::vector<float>{2, 1}));
  auto wide = vtrace(made.view(), {.discount = 1, .ratio_limit = 2, .trace_limit = 1});
  EXPECT_FLOAT_EQ(wide.value().values[0], 4);
  auto narrow = vtrace(made.view(), {.discount = 1, .ratio_limit = 1, .trace_limit = 0.5});
  EXPECT_FLOAT_EQ(narrow.value().values[0], 1.5F);
}

TEST(Vtrace, RefusesArraysThatDoNotFit) {
  Made made = random_steps(1, 2, 2);
  made.rewards.pop_back();
  const auto refused = vtrace(made.view(), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::bad_arguments);
  EXPECT_NE(refused.error().text().find("3 values for 2 steps of 2 environments"), std::string::npos);
  EXPECT_FALSE(vtrace(VtraceSteps{}, {}));
}

}  // namespace
}  // namespace caftan::rl::vtrace_test
