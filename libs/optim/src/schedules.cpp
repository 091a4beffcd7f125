#include "caftan/optim/schedules.hpp"

#include <cmath>
#include <numbers>
#include <string>
#include <utility>

namespace caftan::optim {
namespace {

void check(bool fits, const char* option) {
  if (!fits) throw RpcException(Error(Errc::bad_arguments, option));
}

}  // namespace

Schedule::Schedule(LearningRates& optimizer) : optimizer_(optimizer), state_{0, optimizer.initial_lrs()} {}

void Schedule::step() {
  ++state_.epoch;
  for (std::size_t group = 0; group < groups(); ++group) {
    optimizer_.set_lr(group, next(group, optimizer_.lr(group), state_.epoch));
  }
}

Result<void> Schedule::load(ScheduleState state) {
  if (state.base_lrs.size() != groups() || state.epoch < 0) {
    return Error(Errc::bad_arguments, "the saved schedule is of an optimizer with " +
                                          std::to_string(state.base_lrs.size()) + " groups, here are " +
                                          std::to_string(groups()));
  }
  state_ = std::move(state);
  return {};
}

StepLR::StepLR(LearningRates& optimizer, const StepLROptions& options) : Schedule(optimizer), options_(options) {
  check(options.step_size >= 1, "StepLR: step_size must be >= 1");
}

double StepLR::next(std::size_t, double lr, std::int64_t epoch) const {
  return epoch % options_.step_size != 0 ? lr : lr * options_.gamma;
}

MultiStepLR::MultiStepLR(LearningRates& optimizer, const MultiStepLROptions& options)
    : Schedule(optimizer), gamma_(options.gamma) {
  for (const std::int64_t milestone : options.milestones) ++milestones_[milestone];
}

double MultiStepLR::next(std::size_t, double lr, std::int64_t epoch) const {
  const auto milestone = milestones_.find(epoch);
  return milestone == milestones_.end() ? lr : lr * std::pow(gamma_, milestone->second);
}

ExponentialLR::ExponentialLR(LearningRates& optimizer, const ExponentialLROptions& options)
    : Schedule(optimizer), gamma_(options.gamma) {}

double ExponentialLR::next(std::size_t, double lr, std::int64_t) const { return lr * gamma_; }

CosineAnnealingLR::CosineAnnealingLR(LearningRates& optimizer, const CosineAnnealingLROptions& options)
    : Schedule(optimizer), options_(options) {
  check(options.t_max >= 1, "CosineAnnealingLR: t_max must be >= 1");
}

double CosineAnnealingLR::next(std::size_t group, double lr, std::int64_t epoch) const {
  constexpr double kPi = std::numbers::pi;
  const auto t_max = static_cast<double>(options_.t_max);
  const auto now = static_cast<double>(epoch);
  const double eta_min = options_.eta_min;
  // At the turning point the quotient below would divide by zero.
  if ((epoch - 1 - options_.t_max) % (2 * options_.t_max) == 0) {
    return lr + (base_lr(group) - eta_min) * (1 - std::cos(kPi / t_max)) / 2;
  }
  return (1 + std::cos(kPi * now / t_max)) / (1 + std::cos(kPi * (now - 1) / t_max)) * (lr - eta_min) + eta_min;
}

LambdaLR::LambdaLR(LearningRates& optimizer, Factor factor)
    : LambdaLR(optimizer, std::vector<Factor>(optimizer.groups(), std::move(factor))) {}

LambdaLR::LambdaLR(LearningRates& optimizer, std::vector<Factor> factors)
    : Schedule(optimizer), factors_(std::move(factors)) {
  check(factors_.size() == groups(), "LambdaLR: there must be one factor per parameter group");
  for (std::size_t group = 0; group < groups(); ++group) optimizer.set_lr(group, base_lr(group) * factors_[group](0));
}

double LambdaLR::next(std::size_t group, double, std::int64_t epoch) const {
  return base_lr(group) * factors_[group](epoch);
}

ReduceLROnPlateau::ReduceLROnPlateau(LearningRates& optimizer, const ReduceLROnPlateauOptions& options)
    : optimizer_(optimizer), options_(options) {
  check(options.factor < 1, "ReduceLROnPlateau: factor must be < 1");
  check(options.patience >= 0 && options.cooldown >= 0, "ReduceLROnPlateau: patience and cooldown must be >= 0");
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  state_.best = options.mode == ReduceLROnPlateauOptions::Mode::min ? kInfinite : -kInfinite;
}

bool ReduceLROnPlateau::is_better(double metric) const noexcept {
  using Mode = ReduceLROnPlateauOptions::Mode;
  const bool relative = options_.threshold_mode == ReduceLROnPlateauOptions::Threshold::rel;
  if (options_.mode == Mode::min) {
    return metric < (relative ? state_.best * (1.0 - options_.threshold) : state_.best - options_.threshold);
  }
  return metric > (relative ? state_.best * (options_.threshold + 1.0) : state_.best + options_.threshold);
}

void ReduceLROnPlateau::step(double metric) {
  if (is_better(metric)) {
    state_.best = metric;
    state_.bad_epochs = 0;
  } else {
    ++state_.bad_epochs;
  }
  if (state_.cooldown > 0) {
    --state_.cooldown;
    state_.bad_epochs = 0;
  }
  if (state_.bad_epochs <= options_.patience) return;
  for (std::size_t group = 0; group < optimizer_.groups(); ++group) {
    const double lr = optimizer_.lr(group);
    const double reduced = std::max(lr * options_.factor, options_.min_lr);
    if (lr - reduced > options_.eps) optimizer_.set_lr(group, reduced);
  }
  state_.cooldown = options_.cooldown;
  state_.bad_epochs = 0;
}

}  // namespace caftan::optim
