#include "caftan/optim/schedules.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>

#include "option_check.hpp"

namespace caftan::optim {
namespace {

void check_factors(const char* schedule, std::size_t factors, std::size_t groups) {
  OptionCheck(schedule)
      .require(factors == groups, "the number of factors", static_cast<double>(factors),
               "that of the parameter groups, " + std::to_string(groups))
      .or_throw();
}

}  // namespace

// ---- what all have in common

Result<void> AnySchedule::load(const ScheduleState& state) {
  if (Result<void> fits = check(state); !fits) return fits;
  take(state);
  return {};
}

Result<void> AnySchedule::check(const ScheduleState& state) const {
  if (state.base_lrs.size() == groups() && state.epoch >= 0) return {};
  return Error(Errc::bad_arguments, "the saved schedule is of an optimizer with " +
                                        std::to_string(state.base_lrs.size()) + " groups, here are " +
                                        std::to_string(groups()) + "; or its epoch is negative, it is " +
                                        std::to_string(state.epoch));
}

void AnySchedule::take(const ScheduleState& state) {
  epoch_ = state.epoch;
  base_lrs_ = state.base_lrs;
}

void Schedule::step() {
  // All rates are computed before any is set: a step that is refused changes nothing.
  std::vector<double> lrs;
  for (std::size_t group = 0; group < groups(); ++group) lrs.push_back(next(group, rates().lr(group), epoch() + 1));
  set_epoch(epoch() + 1);
  for (std::size_t group = 0; group < groups(); ++group) rates().set_lr(group, lrs[group]);
  set_momenta(epoch());
}

void Schedule::set_momenta(std::int64_t epoch) {
  for (std::size_t group = 0; group < groups(); ++group) {
    if (const auto momentum = next_momentum(group, epoch)) rates().set_momentum(group, *momentum);
  }
}

double Schedule::first(std::size_t, double lr) const { return lr; }
double Schedule::restarted(std::size_t group, double) const { return base_lr(group); }
std::optional<double> Schedule::next_momentum(std::size_t, std::int64_t) const { return std::nullopt; }

void Schedule::begin() {
  set_epoch(0);
  for (std::size_t group = 0; group < groups(); ++group) rates().set_lr(group, first(group, rates().lr(group)));
  set_momenta(0);
}

void Schedule::restart() {
  set_epoch(0);
  for (std::size_t group = 0; group < groups(); ++group) rates().set_lr(group, restarted(group, rates().lr(group)));
  set_momenta(0);
}

// ---- decay by steps

StepLR::StepLR(LearningRates& optimizer, const StepLROptions& options) : Schedule(optimizer), options_(options) {
  OptionCheck("StepLR")
      .require(options.step_size >= 1, "step_size", static_cast<double>(options.step_size), ">= 1")
      .or_throw();
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
  OptionCheck("CosineAnnealingLR")
      .require(options.t_max >= 1, "t_max", static_cast<double>(options.t_max), ">= 1")
      .or_throw();
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

double CosineAnnealingLR::restarted(std::size_t group, double) const {
  return options_.eta_min + (base_lr(group) - options_.eta_min);
}

// ---- by a factor

ConstantLR::ConstantLR(LearningRates& optimizer, const ConstantLROptions& options)
    : Schedule(optimizer), options_(options) {
  OptionCheck("ConstantLR")
      .require(options.factor > 0 && options.factor <= 1, "factor", options.factor, "in (0, 1]")
      .require(options.total_iters >= 1, "total_iters", static_cast<double>(options.total_iters), ">= 1")
      .or_throw();
  begin();
}

double ConstantLR::first(std::size_t, double lr) const { return lr * options_.factor; }
double ConstantLR::restarted(std::size_t group, double) const { return base_lr(group) * options_.factor; }

double ConstantLR::next(std::size_t, double lr, std::int64_t epoch) const {
  return epoch == options_.total_iters ? lr * (1.0 / options_.factor) : lr;
}

LinearLR::LinearLR(LearningRates& optimizer, const LinearLROptions& options) : Schedule(optimizer), options_(options) {
  OptionCheck("LinearLR")
      .require(options.start_factor > 0 && options.start_factor <= 1, "start_factor", options.start_factor, "in (0, 1]")
      .within_one("end_factor", options.end_factor)
      .require(options.total_iters >= 1, "total_iters", static_cast<double>(options.total_iters), ">= 1")
      .or_throw();
  begin();
}

double LinearLR::first(std::size_t, double lr) const { return lr * options_.start_factor; }
double LinearLR::restarted(std::size_t group, double) const { return base_lr(group) * options_.start_factor; }

double LinearLR::next(std::size_t, double lr, std::int64_t epoch) const {
  if (epoch > options_.total_iters) return lr;
  const double distance = options_.end_factor - options_.start_factor;
  const auto total = static_cast<double>(options_.total_iters);
  return lr * (1.0 + distance / (total * options_.start_factor + static_cast<double>(epoch - 1) * distance));
}

PolynomialLR::PolynomialLR(LearningRates& optimizer, const PolynomialLROptions& options)
    : Schedule(optimizer), options_(options) {
  OptionCheck("PolynomialLR")
      .require(options.total_iters >= 1, "total_iters", static_cast<double>(options.total_iters), ">= 1")
      .require(std::isfinite(options.power) && options.power > 0, "power", options.power, "> 0")
      .or_throw();
}

double PolynomialLR::next(std::size_t, double lr, std::int64_t epoch) const {
  if (epoch > options_.total_iters) return lr;
  const auto total = static_cast<double>(options_.total_iters);
  const double left = 1.0 - static_cast<double>(epoch) / total;
  const double left_before = 1.0 - static_cast<double>(epoch - 1) / total;
  return lr * std::pow(left / left_before, options_.power);
}

MultiplicativeLR::MultiplicativeLR(LearningRates& optimizer, Factor factor)
    : MultiplicativeLR(optimizer, std::vector<Factor>(optimizer.groups(), std::move(factor))) {}

MultiplicativeLR::MultiplicativeLR(LearningRates& optimizer, std::vector<Factor> factors)
    : Schedule(optimizer), factors_(std::move(factors)) {
  check_factors("MultiplicativeLR", factors_.size(), groups());
}

double MultiplicativeLR::next(std::size_t group, double lr, std::int64_t epoch) const {
  return lr * factors_[group](epoch);
}
double MultiplicativeLR::restarted(std::size_t group, double lr) const { return next(group, lr, 0); }

LambdaLR::LambdaLR(LearningRates& optimizer, Factor factor)
    : LambdaLR(optimizer, std::vector<Factor>(optimizer.groups(), std::move(factor))) {}

LambdaLR::LambdaLR(LearningRates& optimizer, std::vector<Factor> factors)
    : Schedule(optimizer), factors_(std::move(factors)) {
  check_factors("LambdaLR", factors_.size(), groups());
  begin();
}

double LambdaLR::first(std::size_t group, double) const { return base_lr(group) * factors_[group](0); }
double LambdaLR::restarted(std::size_t group, double lr) const { return first(group, lr); }

double LambdaLR::next(std::size_t group, double, std::int64_t epoch) const {
  return base_lr(group) * factors_[group](epoch);
}

// ---- by a metric

ReduceLROnPlateau::ReduceLROnPlateau(LearningRates& optimizer, const ReduceLROnPlateauOptions& options)
    : optimizer_(optimizer), options_(options) {
  OptionCheck("ReduceLROnPlateau")
      .require(options.factor < 1, "factor", options.factor, "< 1")
      .require(options.patience >= 0, "patience", static_cast<double>(options.patience), ">= 0")
      .require(options.cooldown >= 0, "cooldown", static_cast<double>(options.cooldown), ">= 0")
      .or_throw();
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
