// Schedules against what PyTorch 2.11's own torch.optim.lr_scheduler computes in double, bit for bit, or against the
// closed formulas of its documentation.
#include "caftan/optim/schedules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <optional>
#include <utility>

#include "caftan/optim/combined_schedules.hpp"
#include "caftan/optim/cyclic_schedules.hpp"
#include "caftan/wire/archive.hpp"

namespace caftan::optim::schedules_test {
namespace {

using ::testing::HasSubstr;

class Rates final : public LearningRates {
 public:
  explicit Rates(std::vector<double> lrs) : lrs_(std::move(lrs)), momenta_(lrs_.size(), 0.5) {}
  std::size_t groups() const noexcept override { return lrs_.size(); }
  double lr(std::size_t group) const override { return lrs_[group]; }
  void set_lr(std::size_t group, double lr) override { lrs_[group] = lr; }
  std::vector<double> initial_lrs() override {
    if (initial_lrs_.empty()) initial_lrs_ = lrs();
    return initial_lrs_;
  }
  std::optional<double> momentum(std::size_t group) const override {
    return momenta_.empty() ? std::nullopt : std::optional(momenta_[group]);
  }
  void set_momentum(std::size_t group, double momentum) override { momenta_[group] = momentum; }
  void remove_momenta() { momenta_.clear(); }
  /// A group that comes later.
  void add(double lr) {
    momenta_.push_back(0.5);
    lrs_.push_back(lr);
    if (!initial_lrs_.empty()) initial_lrs_.push_back(lr);
  }

 private:
  std::vector<double> lrs_;
  std::vector<double> momenta_;  // empty: the algorithms have none
  std::vector<double> initial_lrs_;
};

using Curve = std::vector<double>;

/// Returns the rate before the first step and after each.
template <class Made>
Curve curve(const Rates& rates, Made& schedule, std::size_t steps) {
  Curve lrs{rates.lr(0)};
  for (std::size_t i = 0; i < steps; ++i) {
    schedule.step();
    lrs.push_back(rates.lr(0));
  }
  return lrs;
}

TEST(Schedules, B7_ALaterScheduleHasTheRatesFromBeforeTheFirstAsItsBase) {
  Rates rates({1.0, 0.5});
  LambdaLR warm_up(rates, [](std::int64_t epoch) { return epoch < 5 ? 0.1 : 1.0; });
  EXPECT_EQ(rates.lr(0), 0.1);
  const CosineAnnealingLR cosine(rates, {.t_max = 2});
  EXPECT_EQ(cosine.state().base_lrs, (std::vector<double>{1.0, 0.5}));
}

TEST(Schedules, StepLREqualsTorch) {
  const Curve expected{0x1.999999999999ap-4, 0x1.999999999999ap-4, 0x1.999999999999ap-4, 0x1.eb851eb851eb8p-6,
                       0x1.eb851eb851eb8p-6, 0x1.eb851eb851eb8p-6, 0x1.26e978d4fdf3bp-7, 0x1.26e978d4fdf3bp-7,
                       0x1.26e978d4fdf3bp-7, 0x1.61e4f765fd8adp-9, 0x1.61e4f765fd8adp-9, 0x1.61e4f765fd8adp-9,
                       0x1.a8ac5c13fd0cfp-11};
  Rates rates({0.1});
  StepLR schedule(rates, {.step_size = 3, .gamma = 0.3});
  EXPECT_EQ(curve(rates, schedule, expected.size() - 1), expected);
}

TEST(Schedules, MultiStepLREqualsTorchAlsoWithAMilestoneTwice) {
  const Curve expected{0x1.999999999999ap-4, 0x1.999999999999ap-4, 0x1.1eb851eb851ebp-4, 0x1.1eb851eb851ebp-4,
                       0x1.1eb851eb851ebp-4, 0x1.18fc504816effp-5, 0x1.18fc504816effp-5, 0x1.18fc504816effp-5,
                       0x1.18fc504816effp-5, 0x1.89613d31b9b65p-6, 0x1.89613d31b9b65p-6, 0x1.89613d31b9b65p-6,
                       0x1.89613d31b9b65p-6};
  Rates rates({0.1});
  MultiStepLR schedule(rates, {.milestones = {9, 2, 5, 5}, .gamma = 0.7});
  EXPECT_EQ(curve(rates, schedule, expected.size() - 1), expected);
}

TEST(Schedules, ExponentialLREqualsTorch) {
  const Curve expected{0x1.999999999999ap-4, 0x1.851eb851eb852p-4, 0x1.71a9fbe76c8b4p-4, 0x1.5f2e48e8a71dep-4,
                       0x1.4d9f2ba9d1f5fp-4, 0x1.3cf0cfe154434p-4, 0x1.2d17f8afa9a64p-4, 0x1.1e09f90d47912p-4,
                       0x1.0fbcac996a637p-4, 0x1.022670c4f1de7p-4, 0x1.ea7c3ca96526ap-5, 0x1.d1f6066db9b18p-5,
                       0x1.baa9b94ea39bdp-5};
  Rates rates({0.1});
  ExponentialLR schedule(rates, {.gamma = 0.95});
  EXPECT_EQ(curve(rates, schedule, expected.size() - 1), expected);
}

TEST(Schedules, CosineAnnealingLREqualsTorchBeyondItsTurningPoints) {
  const Curve expected{0x1.999999999999ap-4, 0x1.72e0b8651adafp-4,  0x1.0d8076dbe38f2p-4, 0x1.20636c64e4e9dp-5,
                       0x1.568ba549d9496p-7, 0x1.0624dd2f1a9fcp-10, 0x1.568ba549d9494p-7, 0x1.20636c64e4ea0p-5,
                       0x1.0d8076dbe38f5p-4, 0x1.72e0b8651adb3p-4,  0x1.999999999999dp-4, 0x1.72e0b8651adb5p-4,
                       0x1.0d8076dbe38f6p-4, 0x1.20636c64e4ea3p-5};
  Rates rates({0.1});
  CosineAnnealingLR schedule(rates, {.t_max = 5, .eta_min = 0.001});
  EXPECT_EQ(curve(rates, schedule, expected.size() - 1), expected);
}

TEST(Schedules, LambdaLREqualsTorchFromEpochZeroOn) {
  const Curve expected{0x1.1111111111111p-5, 0x1.999999999999ap-6, 0x1.47ae147ae147cp-6, 0x1.1111111111111p-6,
                       0x1.d41d41d41d41dp-7, 0x1.999999999999ap-7, 0x1.6c16c16c16c17p-7};
  Rates rates({0.1});
  LambdaLR schedule(rates, [](std::int64_t epoch) { return 1 / (static_cast<double>(epoch) + 3); });
  EXPECT_EQ(curve(rates, schedule, expected.size() - 1), expected);
}

const Curve kMetrics{1.0, 0.9, 0.95, 0.91, 0.8999, 0.92, 0.5, 0.5, 0.5, 0.51, 0.52, 0.5, 0.49, 0.6, 0.7, 0.8};

Curve plateau_curve(const ReduceLROnPlateauOptions& options, double sign) {
  Rates rates({0.1});
  ReduceLROnPlateau schedule(rates, options);
  Curve lrs;
  for (const double metric : kMetrics) {
    schedule.step(sign * metric);
    lrs.push_back(rates.lr(0));
  }
  return lrs;
}

TEST(Schedules, ReduceLROnPlateauEqualsTorchWithACooldown) {
  const Curve expected{0x1.999999999999ap-4, 0x1.999999999999ap-4, 0x1.999999999999ap-4, 0x1.eb851eb851eb8p-6,
                       0x1.eb851eb851eb8p-6, 0x1.eb851eb851eb8p-6, 0x1.eb851eb851eb8p-6, 0x1.eb851eb851eb8p-6,
                       0x1.26e978d4fdf3bp-7, 0x1.26e978d4fdf3bp-7, 0x1.26e978d4fdf3bp-7, 0x1.26e978d4fdf3bp-7,
                       0x1.26e978d4fdf3bp-7, 0x1.26e978d4fdf3bp-7, 0x1.61e4f765fd8adp-9, 0x1.61e4f765fd8adp-9};
  EXPECT_EQ(plateau_curve({.factor = 0.3, .patience = 1, .cooldown = 2}, 1), expected);
}

TEST(Schedules, ReduceLROnPlateauEqualsTorchWhereMoreIsBetter) {
  const Curve expected{0x1.999999999999ap-4, 0x1.999999999999ap-4, 0x1.999999999999ap-5, 0x1.999999999999ap-6,
                       0x1.999999999999ap-7, 0x1.999999999999ap-8, 0x1.999999999999ap-8, 0x1.999999999999ap-9,
                       0x1.89374bc6a7efap-9, 0x1.89374bc6a7efap-9, 0x1.89374bc6a7efap-9, 0x1.89374bc6a7efap-9,
                       0x1.89374bc6a7efap-9, 0x1.89374bc6a7efap-9, 0x1.89374bc6a7efap-9, 0x1.89374bc6a7efap-9};
  EXPECT_EQ(plateau_curve({.mode = ReduceLROnPlateauOptions::Mode::max,
                           .factor = 0.5,
                           .patience = 0,
                           .threshold = 0.01,
                           .threshold_mode = ReduceLROnPlateauOptions::Threshold::abs,
                           .min_lr = 0.003},
                          -1),
            expected);
}

TEST(Schedules, ReduceLROnPlateauEqualsTorchWhereTheChangeIsTooSmall) {
  const Curve expected{0x1.999999999999ap-4, 0x1.999999999999ap-4, 0x1.999999999999ap-4, 0x1.999999999999ap-5,
                       0x1.999999999999ap-5, 0x1.999999999999ap-5, 0x1.999999999999ap-5, 0x1.999999999999ap-5,
                       0x1.999999999999ap-5, 0x1.999999999999ap-6, 0x1.999999999999ap-6, 0x1.999999999999ap-6,
                       0x1.999999999999ap-6, 0x1.999999999999ap-6, 0x1.999999999999ap-6, 0x1.999999999999ap-6};
  EXPECT_EQ(plateau_curve({.factor = 0.5, .patience = 2, .threshold = 0.1, .eps = 0.02}, 1), expected);
}

TEST(Schedules, EachGroupKeepsItsOwnBase) {
  Rates rates({0.1, 0.01});
  LambdaLR schedule(rates, {[](std::int64_t) { return 1.0; }, [](std::int64_t epoch) { return epoch == 2 ? 0.5 : 1; }});
  schedule.step();
  schedule.step();
  EXPECT_EQ(rates.lr(0), 0.1);
  EXPECT_EQ(rates.lr(1), 0.005);
}

TEST(Schedules, GoOnFromASavedState) {
  Rates rates({0.1});
  CosineAnnealingLR whole(rates, {.t_max = 5});
  for (int i = 0; i < 4; ++i) whole.step();
  const wire::Bytes saved = wire::encode(whole.state()).value();
  Rates resumed_rates({rates.lr(0)});
  CosineAnnealingLR resumed(resumed_rates, {.t_max = 5});
  ASSERT_TRUE(resumed.load(wire::decode<ScheduleState>(saved).value()));
  for (int i = 0; i < 9; ++i) {
    whole.step();
    resumed.step();
    EXPECT_EQ(resumed_rates.lr(0), rates.lr(0));
  }
  Rates two({0.1, 0.2});
  CosineAnnealingLR other(two, {.t_max = 5});
  EXPECT_EQ(other.load(whole.state()).error().code(), Errc::bad_arguments);
}

// ---- closed formulas

/// Compares the rates with `expected(epoch)` for epochs 0 to `steps`.
template <class Made, class Expected>
void expect_rates(const Rates& rates, Made& schedule, std::int64_t steps, Expected expected) {
  for (std::int64_t epoch = 0; epoch <= steps; ++epoch) {
    if (epoch > 0) schedule.step();
    const double lr = expected(epoch);
    ASSERT_NEAR(rates.lr(0), lr, 1e-13 * std::max(1e-3, std::abs(lr))) << "epoch " << epoch;
    ASSERT_EQ(schedule.epoch(), epoch);
  }
}

TEST(Schedules, ConstantLRIsItsFormula) {
  Rates rates({0.5});
  ConstantLR schedule(rates, {.factor = 0.3, .total_iters = 4});
  expect_rates(rates, schedule, 9, [](std::int64_t epoch) { return epoch < 4 ? 0.15 : 0.5; });
}

TEST(Schedules, LinearLRIsItsFormulaUpAndDown) {
  Rates up({0.5});
  LinearLR warm_up(up, {.start_factor = 0.1, .total_iters = 8});
  expect_rates(up, warm_up, 12, [](std::int64_t epoch) {
    return 0.5 * (0.1 + 0.9 * static_cast<double>(std::min<std::int64_t>(epoch, 8)) / 8);
  });
  Rates down({2.0});
  LinearLR decay(down, {.start_factor = 1, .end_factor = 0.25, .total_iters = 3});
  expect_rates(down, decay, 6, [](std::int64_t epoch) {
    return std::vector<double>{2, 1.5, 1, 0.5}[static_cast<std::size_t>(std::min<std::int64_t>(epoch, 3))];
  });
}

TEST(Schedules, PolynomialLRIsItsFormula) {
  for (const double power : {1.0, 0.9, 2.5}) {
    Rates rates({0.2});
    PolynomialLR schedule(rates, {.total_iters = 7, .power = power});
    expect_rates(rates, schedule, 10, [power](std::int64_t epoch) {
      return 0.2 * std::pow(1 - static_cast<double>(std::min<std::int64_t>(epoch, 7)) / 7, power);
    });
  }
}

TEST(Schedules, MultiplicativeLRMultipliesByTheFactorsOfTheEpochsFromOneOn) {
  Rates rates({0.5});
  MultiplicativeLR schedule(rates, [](std::int64_t epoch) { return 1.0 / (static_cast<double>(epoch) + 1); });
  double factorial = 1;
  expect_rates(rates, schedule, 6, [&factorial](std::int64_t epoch) {
    factorial *= static_cast<double>(epoch + 1);
    return 0.5 / factorial;
  });
}

TEST(Schedules, CosineAnnealingWarmRestartsIsItsFormula) {
  const auto between = [](double at, double of) {
    return 0.01 + (0.5 - 0.01) * (1 + std::cos(std::numbers::pi * at / of)) / 2;
  };
  Rates same({0.5});
  CosineAnnealingWarmRestarts schedule(same, {.t_0 = 3, .eta_min = 0.01});
  expect_rates(same, schedule, 10, [&](std::int64_t epoch) { return between(static_cast<double>(epoch % 3), 3); });
  Rates longer({0.5});
  CosineAnnealingWarmRestarts doubling(longer, {.t_0 = 2, .t_mult = 2, .eta_min = 0.01});
  const std::vector<std::pair<double, double>> places{{0, 2}, {1, 2}, {0, 4}, {1, 4}, {2, 4}, {3, 4}, {0, 8}, {1, 8},
                                                      {2, 8}, {3, 8}, {4, 8}, {5, 8}, {6, 8}, {7, 8}, {0, 16}};
  expect_rates(longer, doubling, 14, [&](std::int64_t epoch) {
    const auto& [at, of] = places[static_cast<std::size_t>(epoch)];
    return between(at, of);
  });
}

TEST(Schedules, CyclicLRIsALineUpAndDown) {
  const std::vector<double> heights{0, 0.25, 0.5, 0.75, 1, 0.5};  // heights in a cycle of 4 steps up and 2 steps down
  const auto rate = [&heights](std::int64_t epoch, double scale) {
    return 0.1 + 0.4 * heights[static_cast<std::size_t>(epoch % 6)] * scale;
  };
  Rates rates({7.0});
  CyclicLR plain(rates, {.base_lr = {0.1}, .max_lr = {0.5}, .step_size_up = 4, .step_size_down = 2});
  expect_rates(rates, plain, 15, [&](std::int64_t epoch) { return rate(epoch, 1); });
  CyclicLR halved(rates, {.base_lr = {0.1},
                          .max_lr = {0.5},
                          .step_size_up = 4,
                          .step_size_down = 2,
                          .mode = CyclicLROptions::Mode::triangular2});
  expect_rates(rates, halved, 15, [&](std::int64_t epoch) {
    return rate(epoch, epoch < 6 ? 1 : epoch < 12 ? 0.5 : 0.25);
  });
  CyclicLR decayed(rates, {.base_lr = {0.1},
                           .max_lr = {0.5},
                           .step_size_up = 4,
                           .step_size_down = 2,
                           .mode = CyclicLROptions::Mode::exp_range,
                           .gamma = 0.9});
  expect_rates(rates, decayed, 15,
               [&](std::int64_t epoch) { return rate(epoch, std::pow(0.9, static_cast<double>(epoch))); });
  CyclicLR even(rates, {.base_lr = {0}, .max_lr = {1}, .step_size_up = 2});
  expect_rates(rates, even, 8, [](std::int64_t epoch) {
    return std::vector<double>{0, 0.5, 1, 0.5}[static_cast<std::size_t>(epoch % 4)];
  });
}

double cosine_between(double from, double to, double part) {
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * part));
}

TEST(Schedules, OneCycleLRIsItsFormula) {
  constexpr double kFirst = 0.5 / 10;
  constexpr double kLast = kFirst / 100;
  // 20 steps, 0.3 of them up: to step 5; then down to step 19.
  const auto part = [](std::int64_t epoch, double from, double to) {
    return (static_cast<double>(epoch) - from) / (to - from);
  };
  OneCycleLROptions options{
      .max_lr = {0.5}, .total_steps = 20, .pct_start = 0.3, .div_factor = 10, .final_div_factor = 100};
  Rates rates({7.0});
  OneCycleLR two(rates, options);
  expect_rates(rates, two, 19, [&](std::int64_t epoch) {
    return epoch <= 5 ? cosine_between(kFirst, 0.5, part(epoch, 0, 5)) : cosine_between(0.5, kLast, part(epoch, 5, 19));
  });
  options.anneal_strategy = OneCycleLROptions::Anneal::linear;
  OneCycleLR linear(rates, options);
  expect_rates(rates, linear, 19, [&](std::int64_t epoch) {
    return epoch <= 5 ? kFirst + (0.5 - kFirst) * part(epoch, 0, 5) : 0.5 + (kLast - 0.5) * part(epoch, 5, 19);
  });
  options.three_phase = true;
  options.anneal_strategy = OneCycleLROptions::Anneal::cos;
  OneCycleLR three(rates, options);
  expect_rates(rates, three, 19, [&](std::int64_t epoch) {
    if (epoch <= 5) return cosine_between(kFirst, 0.5, part(epoch, 0, 5));
    if (epoch <= 10) return cosine_between(0.5, kFirst, part(epoch, 5, 10));
    return cosine_between(kFirst, kLast, part(epoch, 10, 19));
  });
}

TEST(Schedules, OneCycleLRRefusesAStepBeyondItsCycle) {
  Rates rates({0.1, 0.1});
  OneCycleLR schedule(rates, {.max_lr = {0.5, 0.25}, .total_steps = 5, .pct_start = 0.5});
  EXPECT_EQ(rates.lr(0), 2 * rates.lr(1)) << "one rate per group";
  for (int step = 0; step < 5; ++step) schedule.step();
  const double last = rates.lr(0);
  EXPECT_THROW(schedule.step(), RpcException);
  EXPECT_EQ(schedule.epoch(), 5);
  EXPECT_EQ(rates.lr(0), last);
}

// ---- the momentum

/// Returns the momentum of a group before the first step and after each.
template <class Made>
Curve momenta(const Rates& rates, Made& schedule, std::size_t steps, std::size_t group = 0) {
  Curve all{*rates.momentum(group)};
  for (std::size_t i = 0; i < steps; ++i) {
    schedule.step();
    all.push_back(*rates.momentum(group));
  }
  return all;
}

CyclicLROptions cyclic(CyclicLROptions::Mode mode) {
  return {.base_lr = {0.1}, .max_lr = {0.5}, .step_size_up = 4, .step_size_down = 2, .mode = mode, .gamma = 0.9};
}

TEST(Schedules, CyclicLRMovesTheMomentumAsTorchInEachMode) {
  const Curve triangular{0x1.ccccccccccccdp-1, 0x1.c000000000000p-1, 0x1.b333333333334p-1, 0x1.a666666666667p-1,
                         0x1.999999999999ap-1, 0x1.b333333333334p-1, 0x1.ccccccccccccdp-1, 0x1.c000000000000p-1,
                         0x1.b333333333334p-1, 0x1.a666666666667p-1, 0x1.999999999999bp-1, 0x1.b333333333333p-1,
                         0x1.ccccccccccccdp-1, 0x1.c000000000000p-1};
  const Curve triangular2{0x1.ccccccccccccdp-1, 0x1.c000000000000p-1, 0x1.b333333333334p-1, 0x1.a666666666667p-1,
                          0x1.999999999999ap-1, 0x1.b333333333334p-1, 0x1.ccccccccccccdp-1, 0x1.c666666666666p-1,
                          0x1.c000000000000p-1, 0x1.b99999999999ap-1, 0x1.b333333333334p-1, 0x1.c000000000000p-1,
                          0x1.ccccccccccccdp-1, 0x1.c99999999999ap-1};
  const Curve exp_range{0x1.ccccccccccccdp-1, 0x1.c147ae147ae15p-1, 0x1.b810624dd2f1bp-1, 0x1.b0ce703afb7e9p-1,
                        0x1.ab352a8438089p-1, 0x1.bdaef6f8f0415p-1, 0x1.ccccccccccccdp-1, 0x1.c6ad8447a2d6ep-1,
                        0x1.c1c7b0a9e7abbp-1, 0x1.bdec4d374aacfp-1, 0x1.baf29a1963d9cp-1, 0x1.c4c435fc10c5dp-1,
                        0x1.ccccccccccccdp-1, 0x1.c98be1a3c8544p-1};
  Rates rates({7.0});
  CyclicLR plain(rates, cyclic(CyclicLROptions::Mode::triangular));
  EXPECT_EQ(momenta(rates, plain, 13), triangular);
  CyclicLR halved(rates, cyclic(CyclicLROptions::Mode::triangular2));
  EXPECT_EQ(momenta(rates, halved, 13), triangular2);
  CyclicLR decayed(rates, cyclic(CyclicLROptions::Mode::exp_range));
  EXPECT_EQ(momenta(rates, decayed, 13), exp_range);
}

OneCycleLROptions one_cycle() { return {.max_lr = {0.5}, .total_steps = 12, .pct_start = 0.25}; }

TEST(Schedules, OneCycleLRMovesRateAndMomentumAsTorch) {
  const Curve lrs{0x1.47ae147ae1480p-6, 0x1.0a3d70a3d70a4p-2, 0x1.0000000000000p-1, 0x1.f08fb61ea4118p-2,
                  0x1.c41b8cc9cded7p-2, 0x1.8000218def417p-2, 0x1.2c746c70b4a6fp-2, 0x1.a718338e10bdbp-3,
                  0x1.0000c9539b88ap-3, 0x1.df27cb6f78c1fp-5, 0x1.ee1a03231e868p-7, 0x1.0c6f7a0b5ed8dp-19};
  const Curve cosine{0x1.e666666666666p-1, 0x1.cccccccccccccp-1, 0x1.b333333333333p-1, 0x1.b4be6e3157dbep-1,
                     0x1.b930737dc08cap-1, 0x1.c000000000000p-1, 0x1.c85ac780641c1p-1, 0x1.d13ed219357d8p-1,
                     0x1.d999999999999p-1, 0x1.e069261bd90cfp-1, 0x1.e4db2b6841bdbp-1, 0x1.e666666666666p-1};
  const Curve linear{0x1.e666666666666p-1, 0x1.cccccccccccccp-1, 0x1.b333333333333p-1, 0x1.b8e38e38e38e3p-1,
                     0x1.be93e93e93e94p-1, 0x1.c444444444444p-1, 0x1.c9f49f49f49f4p-1, 0x1.cfa4fa4fa4fa5p-1,
                     0x1.d555555555555p-1, 0x1.db05b05b05b05p-1, 0x1.e0b60b60b60b6p-1, 0x1.e666666666666p-1};
  const Curve three{0x1.e666666666666p-1, 0x1.cccccccccccccp-1, 0x1.b333333333333p-1, 0x1.cccccccccccccp-1,
                    0x1.e666666666666p-1, 0x1.e666666666666p-1, 0x1.e666666666666p-1, 0x1.e666666666666p-1,
                    0x1.e666666666666p-1, 0x1.e666666666666p-1, 0x1.e666666666666p-1, 0x1.e666666666666p-1};
  const Curve three_lrs{0x1.47ae147ae1480p-6, 0x1.0a3d70a3d70a4p-2, 0x1.0000000000000p-1,  0x1.0a3d70a3d70a4p-2,
                        0x1.47ae147ae147bp-6, 0x1.3774d42137b06p-6, 0x1.09ffad49223ffp-6,  0x1.909f02c60f381p-7,
                        0x1.fd9bda4ea81aap-8, 0x1.edb6556c7b160p-9, 0x1.041a3d579f247p-10, 0x1.0c6f7a0b5ed8dp-19};
  Rates rates({7.0});
  OneCycleLR rate(rates, one_cycle());
  EXPECT_EQ(curve(rates, rate, 11), lrs);
  OneCycleLR by_cosine(rates, one_cycle());
  EXPECT_EQ(momenta(rates, by_cosine, 11), cosine);
  OneCycleLROptions options = one_cycle();
  options.anneal_strategy = OneCycleLROptions::Anneal::linear;
  OneCycleLR by_line(rates, options);
  EXPECT_EQ(momenta(rates, by_line, 11), linear);
  options = one_cycle();
  options.three_phase = true;
  OneCycleLR in_three(rates, options);
  EXPECT_EQ(momenta(rates, in_three, 11), three);
  OneCycleLR rate_in_three(rates, options);
  EXPECT_EQ(curve(rates, rate_in_three, 11), three_lrs);
}

TEST(Schedules, EachGroupHasItsOwnRangeOfMomenta) {
  Rates rates({0.1, 0.1});
  OneCycleLROptions options = one_cycle();
  options.base_momentum = {0.5, 0.6};
  options.max_momentum = {0.7, 0.8};
  OneCycleLR schedule(rates, options);
  EXPECT_EQ(rates.momentum(0), 0.7);
  EXPECT_EQ(rates.momentum(1), 0.8);
  schedule.step();
  schedule.step();
  EXPECT_EQ(rates.momentum(0), 0.5);
  EXPECT_EQ(rates.momentum(1), 0.6);
}

TEST(Schedules, WithoutCycleMomentumTheMomentumStays) {
  Rates rates({0.1});
  CyclicLROptions line = cyclic(CyclicLROptions::Mode::triangular);
  line.cycle_momentum = false;
  CyclicLR up_and_down(rates, line);
  OneCycleLROptions once = one_cycle();
  once.cycle_momentum = false;
  OneCycleLR schedule(rates, once);
  up_and_down.step();
  schedule.step();
  EXPECT_EQ(rates.momentum(0), 0.5);
  rates.remove_momenta();
  EXPECT_NO_THROW(OneCycleLR(rates, once));
  EXPECT_NO_THROW(CyclicLR(rates, line));
}

TEST(Schedules, AGroupWithoutAMomentumIsNamedWithTheWayOut) {
  Rates rates({0.1});
  rates.remove_momenta();
  for (const bool cyclic_one : {false, true}) {
    try {
      if (cyclic_one) {
        CyclicLR(rates, cyclic(CyclicLROptions::Mode::triangular));
      } else {
        OneCycleLR(rates, one_cycle());
      }
      ADD_FAILURE() << "it was not refused";
    } catch (const RpcException& refused) {
      EXPECT_EQ(refused.error().code(), Errc::bad_arguments);
      EXPECT_THAT(refused.error().text(), HasSubstr(cyclic_one ? "CyclicLR: group 0" : "OneCycleLR: group 0"));
      EXPECT_THAT(refused.error().text(), HasSubstr("set cycle_momentum to false"));
    }
  }
}

// ---- combined ones

/// Warms up over 4 epochs, follows half a cosine of 5, then decays.
Schedules three_parts(LearningRates& rates) {
  Schedules parts;
  parts.push_back(std::make_unique<LinearLR>(rates, LinearLROptions{.start_factor = 0.2, .total_iters = 4}));
  parts.push_back(std::make_unique<CosineAnnealingLR>(rates, CosineAnnealingLROptions{.t_max = 5, .eta_min = 0.01}));
  parts.push_back(std::make_unique<ExponentialLR>(rates, ExponentialLROptions{.gamma = 0.8}));
  return parts;
}

TEST(CombinedSchedules, SequentialLRFollowsItsPartsFromTheirMilestones) {
  Rates rates({0.5});
  SequentialLR schedule(rates, three_parts(rates), {4, 9});
  expect_rates(rates, schedule, 14, [](std::int64_t epoch) {
    const auto now = static_cast<double>(epoch);
    if (epoch < 4) return 0.5 * (0.2 + 0.8 * now / 4);
    if (epoch < 9) return 0.01 + (0.5 - 0.01) * (1 + std::cos(std::numbers::pi * (now - 4) / 5)) / 2;
    return 0.5 * std::pow(0.8, now - 9);
  });
}

TEST(CombinedSchedules, ASequentialPartThatIsByFactorsBeginsWithItsOwn) {
  Rates rates({0.5});
  Schedules parts;
  parts.push_back(std::make_unique<ExponentialLR>(rates, ExponentialLROptions{.gamma = 0.5}));
  parts.push_back(std::make_unique<ConstantLR>(rates, ConstantLROptions{.factor = 0.25, .total_iters = 2}));
  parts.push_back(std::make_unique<LambdaLR>(rates, [](std::int64_t epoch) { return epoch == 0 ? 3.0 : 4.0; }));
  SequentialLR schedule(rates, std::move(parts), {2, 5});
  const std::vector<double> expected{0.5, 0.25, 0.125, 0.125, 0.5, 1.5, 2, 2};
  expect_rates(rates, schedule, 7, [&](std::int64_t epoch) { return expected[static_cast<std::size_t>(epoch)]; });
}

TEST(CombinedSchedules, ChainedSchedulerMultipliesTheFactorsOfItsParts) {
  Rates rates({0.5});
  Schedules parts;
  parts.push_back(std::make_unique<ConstantLR>(rates, ConstantLROptions{.factor = 0.1, .total_iters = 3}));
  parts.push_back(std::make_unique<ExponentialLR>(rates, ExponentialLROptions{.gamma = 0.9}));
  ChainedScheduler schedule(rates, std::move(parts));
  expect_rates(rates, schedule, 8, [](std::int64_t epoch) {
    return 0.5 * (epoch < 3 ? 0.1 : 1) * std::pow(0.9, static_cast<double>(epoch));
  });
}

TEST(CombinedSchedules, GoOnFromASavedState) {
  Rates rates({0.5});
  SequentialLR whole(rates, three_parts(rates), {4, 9});
  for (int i = 0; i < 6; ++i) whole.step();
  const wire::Bytes saved = wire::encode(whole.state()).value();
  Rates resumed_rates({0.5});
  SequentialLR resumed(resumed_rates, three_parts(resumed_rates), {4, 9});
  ASSERT_TRUE(resumed.load(wire::decode<ScheduleState>(saved).value()));
  resumed_rates.set_lr(0, rates.lr(0));  // the rate is part of the optimizer's saved state, not of the schedule's
  for (int i = 0; i < 8; ++i) {
    whole.step();
    resumed.step();
    EXPECT_EQ(resumed_rates.lr(0), rates.lr(0)) << i;
  }
  ScheduleState state = whole.state();
  state.parts[1].epoch = -1;
  EXPECT_EQ(resumed.load(state).error().code(), Errc::bad_arguments);
  state.parts.pop_back();
  EXPECT_THAT(resumed.load(state).error().text(), HasSubstr("has 2 parts, here are 3"));
  EXPECT_EQ(resumed.epoch(), 14) << "a refused state changes nothing";
}

template <class Make>
std::string refusal(Make make) {
  try {
    make();
  } catch (const RpcException& refused) {
    EXPECT_EQ(refused.error().code(), Errc::bad_arguments);
    return refused.error().text();
  }
  return "it was not refused";
}

TEST(CombinedSchedules, WhatCannotBePartsIsNamed) {
  Rates rates({0.5});
  Rates others({0.5});
  EXPECT_THAT(refusal([&] { ChainedScheduler(rates, {}); }), HasSubstr("ChainedScheduler: it has no schedule"));
  EXPECT_THAT(refusal([&] {
                SequentialLR(rates, three_parts(others), {4, 9});
              }),
              HasSubstr("schedule 0 is over another optimizer"));
  EXPECT_THAT(refusal([&] {
                Schedules parts = three_parts(rates);
                parts[2].reset();
                SequentialLR(rates, std::move(parts), {4, 9});
              }),
              HasSubstr("schedule 2 is empty"));
  EXPECT_THAT(refusal([&] { SequentialLR(rates, three_parts(rates), {4}); }),
              HasSubstr("the number of milestones is 1, it must be one less than that of the schedules, 3"));
  EXPECT_THAT(refusal([&] {
                SequentialLR(rates, three_parts(rates), {4, 4});
              }),
              HasSubstr("a milestone is 4, it must be > 4"));
  EXPECT_THAT(refusal([&] {
                SequentialLR(rates, three_parts(rates), {0, 4});
              }),
              HasSubstr("a milestone is 0, it must be > 0"));
}

TEST(Schedules, LeaveAGroupThatCameLaterAlone) {
  Rates rates({1.0});
  ExponentialLR before(rates, {.gamma = 0.5});
  rates.add(3.0);
  before.step();
  EXPECT_EQ(rates.lr(0), 0.5);
  EXPECT_EQ(rates.lr(1), 3.0);
  ExponentialLR after(rates, {.gamma = 0.5});
  after.step();
  EXPECT_EQ(rates.lr(0), 0.25);
  EXPECT_EQ(rates.lr(1), 1.5);
}

TEST(Schedules, OptionsOutOfRangeAreNamedWithTheirValueAndRange) {
  Rates rates({0.1, 0.2});
  EXPECT_THAT(refusal([&] { StepLR(rates, {.step_size = 0}); }), HasSubstr("StepLR: step_size is 0, it must be >= 1"));
  EXPECT_THAT(refusal([&] { CosineAnnealingLR(rates, {.t_max = -3}); }),
              HasSubstr("CosineAnnealingLR: t_max is -3, it must be >= 1"));
  EXPECT_THAT(refusal([&] { ConstantLR(rates, {.factor = 0}); }), HasSubstr("factor is 0, it must be in (0, 1]"));
  EXPECT_THAT(refusal([&] { ConstantLR(rates, {.total_iters = 0}); }), HasSubstr("total_iters is 0, it must be >= 1"));
  EXPECT_THAT(refusal([&] { LinearLR(rates, {.start_factor = 1.5}); }),
              HasSubstr("start_factor is 1.5, it must be in (0, 1]"));
  EXPECT_THAT(refusal([&] { LinearLR(rates, {.end_factor = -0.5}); }),
              HasSubstr("end_factor is -0.5, it must be in [0, 1]"));
  EXPECT_THAT(refusal([&] { PolynomialLR(rates, {.power = 0}); }), HasSubstr("power is 0, it must be > 0"));
  EXPECT_THAT(refusal([&] { MultiplicativeLR(rates, std::vector<MultiplicativeLR::Factor>(3)); }),
              HasSubstr("the number of factors is 3, it must be that of the parameter groups, 2"));
  EXPECT_THAT(refusal([&] { CosineAnnealingWarmRestarts(rates, {.t_0 = 0}); }), HasSubstr("t_0 is 0, it must be >= 1"));
  EXPECT_THAT(refusal([&] { CosineAnnealingWarmRestarts(rates, {.t_mult = 0}); }), HasSubstr("t_mult is 0"));
  EXPECT_THAT(refusal([&] {
                CyclicLR(rates, {.base_lr = {0.1}, .max_lr = {1, 0.05}});
              }),
              HasSubstr("max_lr is 0.05, it must be >= base_lr, which is 0.1"));
  EXPECT_THAT(refusal([&] { CyclicLR(rates, {.base_lr = {0.1}, .max_lr = {1}, .step_size_up = 0}); }),
              HasSubstr("step_size_up is 0, it must be >= 1"));
  EXPECT_THAT(refusal([&] { OneCycleLR(rates, {.max_lr = {}, .total_steps = 10}); }),
              HasSubstr("the number of values of max_lr is 0, it must be 1 or that of the parameter groups, 2"));
  EXPECT_THAT(refusal([&] { CyclicLR(rates, {.base_lr = {0.1}, .max_lr = {1}, .max_momentum = {1}}); }),
              HasSubstr("max_momentum is 1, it must be in (0, 1)"));
  EXPECT_THAT(refusal([&] { OneCycleLR(rates, {.max_lr = {1}, .total_steps = 10, .base_momentum = {0}}); }),
              HasSubstr("base_momentum is 0, it must be in (0, 1)"));
  EXPECT_THAT(refusal([&] { OneCycleLR(rates, {.max_lr = {1}, .total_steps = 10, .base_momentum = {}}); }),
              HasSubstr("the number of values of base_momentum is 0"));
  EXPECT_THAT(refusal([&] { OneCycleLR(rates, {.max_lr = {1}}); }), HasSubstr("total_steps is 0, it must be >= 1"));
  EXPECT_THAT(refusal([&] { OneCycleLR(rates, {.max_lr = {1}, .total_steps = 10, .pct_start = 2}); }),
              HasSubstr("pct_start is 2, it must be in [0, 1]"));
  EXPECT_THAT(refusal([&] { OneCycleLR(rates, {.max_lr = {1}, .total_steps = 10, .pct_start = 0.1}); }),
              HasSubstr("pct_start is 0.1, it must be such that each phase of the 10 steps has some"));
}

TEST(Schedules, OptionsOutOfRangeAreRefused) {
  Rates rates({0.1, 0.2});
  EXPECT_THROW(StepLR(rates, {.step_size = 0}), RpcException);
  EXPECT_THROW(CosineAnnealingLR(rates, {.t_max = 0}), RpcException);
  EXPECT_THROW(LambdaLR(rates, std::vector<LambdaLR::Factor>(1, [](std::int64_t) { return 1.0; })), RpcException);
  EXPECT_THROW(ReduceLROnPlateau(rates, {.factor = 1}), RpcException);
  EXPECT_THROW(ReduceLROnPlateau(rates, {.patience = -1}), RpcException);
}

}  // namespace
}  // namespace caftan::optim::schedules_test
