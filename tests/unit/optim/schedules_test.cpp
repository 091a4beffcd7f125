// Schedules against what PyTorch 2.11's own torch.optim.lr_scheduler computes in double, bit for bit.
#include "caftan/optim/schedules.hpp"

#include <gtest/gtest.h>

#include "caftan/wire/archive.hpp"

namespace caftan::optim {
namespace {

class Rates final : public LearningRates {
 public:
  explicit Rates(std::vector<double> lrs) : lrs_(std::move(lrs)) {}
  std::size_t groups() const noexcept override { return lrs_.size(); }
  double lr(std::size_t group) const override { return lrs_[group]; }
  void set_lr(std::size_t group, double lr) override { lrs_[group] = lr; }
  std::vector<double> initial_lrs() override {
    if (initial_lrs_.empty()) initial_lrs_ = lrs();
    return initial_lrs_;
  }

 private:
  std::vector<double> lrs_;
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

TEST(Schedules, OptionsOutOfRangeAreRefused) {
  Rates rates({0.1, 0.2});
  EXPECT_THROW(StepLR(rates, {.step_size = 0}), RpcException);
  EXPECT_THROW(CosineAnnealingLR(rates, {.t_max = 0}), RpcException);
  EXPECT_THROW(LambdaLR(rates, std::vector<LambdaLR::Factor>(1, [](std::int64_t) { return 1.0; })), RpcException);
  EXPECT_THROW(ReduceLROnPlateau(rates, {.factor = 1}), RpcException);
  EXPECT_THROW(ReduceLROnPlateau(rates, {.patience = -1}), RpcException);
}

}  // namespace
}  // namespace caftan::optim
