#include "caftan/optim/cyclic_schedules.hpp"

#include <cmath>
#include <numbers>
#include <string>

#include "option_check.hpp"

namespace caftan::optim {
namespace {

constexpr double kPi = std::numbers::pi;

/// Returns the option of a group, given one for all or one per group.
double of_group(const std::vector<double>& values, std::size_t group) {
  return values.size() == 1 ? values[0] : values[group];
}

void check_rates(OptionCheck& check, const char* option, const std::vector<double>& values, std::size_t groups) {
  check.require(values.size() == 1 || values.size() == groups, std::string("the number of values of ") + option,
                static_cast<double>(values.size()), "1 or that of the parameter groups, " + std::to_string(groups));
  for (const double value : values) check.not_negative(option, value);
}

void check_momenta(OptionCheck& check, const char* option, const std::vector<double>& values, std::size_t groups) {
  check.require(values.size() == 1 || values.size() == groups, std::string("the number of values of ") + option,
                static_cast<double>(values.size()), "1 or that of the parameter groups, " + std::to_string(groups));
  for (const double value : values) check.require(value > 0 && value < 1, option, value, "in (0, 1)");
}

/// Throws if a group has no momentum that `schedule` could change.
void require_momentum(const char* schedule, const LearningRates& rates) {
  for (std::size_t group = 0; group < rates.groups(); ++group) {
    if (rates.momentum(group)) continue;
    throw RpcException(Error(Errc::bad_arguments, std::string(schedule) + ": group " + std::to_string(group) +
                                                      " has no momentum and no betas: set cycle_momentum to false"));
  }
}

}  // namespace

// ---- CosineAnnealingWarmRestarts

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(LearningRates& optimizer,
                                                         const CosineAnnealingWarmRestartsOptions& options)
    : Schedule(optimizer), options_(options) {
  OptionCheck("CosineAnnealingWarmRestarts")
      .require(options.t_0 >= 1, "t_0", static_cast<double>(options.t_0), ">= 1")
      .require(options.t_mult >= 1, "t_mult", static_cast<double>(options.t_mult), ">= 1")
      .finite("eta_min", options.eta_min)
      .or_throw();
  begin();
}

double CosineAnnealingWarmRestarts::next(std::size_t group, double, std::int64_t epoch) const {
  std::int64_t length = options_.t_0;
  if (options_.t_mult == 1) {
    epoch %= length;
  } else {
    for (; epoch >= length; length *= options_.t_mult) epoch -= length;
  }
  const double angle = kPi * static_cast<double>(epoch) / static_cast<double>(length);
  return options_.eta_min + (base_lr(group) - options_.eta_min) * (1 + std::cos(angle)) / 2;
}
double CosineAnnealingWarmRestarts::first(std::size_t group, double lr) const { return next(group, lr, 0); }
double CosineAnnealingWarmRestarts::restarted(std::size_t group, double lr) const { return next(group, lr, 0); }

// ---- CyclicLR

CyclicLR::CyclicLR(LearningRates& optimizer, const CyclicLROptions& options) : Schedule(optimizer), options_(options) {
  OptionCheck check("CyclicLR");
  check_rates(check, "base_lr", options.base_lr, groups());
  check_rates(check, "max_lr", options.max_lr, groups());
  check.require(options.step_size_up >= 1, "step_size_up", static_cast<double>(options.step_size_up), ">= 1")
      .require(options.step_size_down >= 0, "step_size_down", static_cast<double>(options.step_size_down), ">= 0")
      .require(std::isfinite(options.gamma) && options.gamma > 0, "gamma", options.gamma, "> 0");
  check_momenta(check, "base_momentum", options.base_momentum, groups());
  check_momenta(check, "max_momentum", options.max_momentum, groups());
  check.or_throw();
  for (std::size_t group = 0; group < groups(); ++group) {
    const double lowest = of_group(options.base_lr, group);
    const double highest = of_group(options.max_lr, group);
    check.require(highest >= lowest, "max_lr", highest, ">= base_lr, which is " + text_of(lowest));
  }
  check.or_throw();
  if (options.cycle_momentum) require_momentum("CyclicLR", optimizer);
  begin();
}

double CyclicLR::height(std::int64_t epoch, double range) const {
  const auto up = static_cast<double>(options_.step_size_up);
  const double total = up + (options_.step_size_down > 0 ? static_cast<double>(options_.step_size_down) : up);
  const double ratio = up / total;
  const auto now = static_cast<double>(epoch);
  const double cycle = std::floor(1 + now / total);
  const double x = 1.0 + now / total - cycle;
  const double part = x <= ratio ? x / ratio : (x - 1) / (ratio - 1);
  double scale = 1.0;
  if (options_.mode == CyclicLROptions::Mode::triangular2) scale = 1 / std::pow(2.0, cycle - 1);
  if (options_.mode == CyclicLROptions::Mode::exp_range) scale = std::pow(options_.gamma, now);
  return range * part * scale;
}

double CyclicLR::next(std::size_t group, double, std::int64_t epoch) const {
  const double lowest = of_group(options_.base_lr, group);
  return lowest + height(epoch, of_group(options_.max_lr, group) - lowest);
}
std::optional<double> CyclicLR::next_momentum(std::size_t group, std::int64_t epoch) const {
  if (!options_.cycle_momentum) return std::nullopt;
  const double highest = of_group(options_.max_momentum, group);
  return highest - height(epoch, highest - of_group(options_.base_momentum, group));
}
double CyclicLR::first(std::size_t group, double lr) const { return next(group, lr, 0); }
double CyclicLR::restarted(std::size_t group, double lr) const { return next(group, lr, 0); }

// ---- OneCycleLR

OneCycleLR::OneCycleLR(LearningRates& optimizer, const OneCycleLROptions& options)
    : Schedule(optimizer), options_(options) {
  OptionCheck check("OneCycleLR");
  check_rates(check, "max_lr", options.max_lr, groups());
  check.require(options.total_steps >= 1, "total_steps", static_cast<double>(options.total_steps), ">= 1")
      .within_one("pct_start", options.pct_start)
      .require(std::isfinite(options.div_factor) && options.div_factor > 0, "div_factor", options.div_factor, "> 0")
      .require(std::isfinite(options.final_div_factor) && options.final_div_factor > 0, "final_div_factor",
               options.final_div_factor, "> 0");
  check_momenta(check, "base_momentum", options.base_momentum, groups());
  check_momenta(check, "max_momentum", options.max_momentum, groups());
  check.or_throw();
  double begin_of_phase = 0;
  for (const Phase& phase : phases()) {
    check.require(phase.end > begin_of_phase || phase.end < 0, "pct_start", options.pct_start,
                  "such that each phase of the " + std::to_string(options.total_steps) + " steps has some");
    begin_of_phase = phase.end;
  }
  check.or_throw();
  if (options.cycle_momentum) require_momentum("OneCycleLR", optimizer);
  begin();
}

std::vector<OneCycleLR::Phase> OneCycleLR::phases() const {
  const auto total = static_cast<double>(options_.total_steps);
  const Phase up{options_.pct_start * total - 1, Level::first, Level::highest};
  if (!options_.three_phase) return {up, {total - 1, Level::highest, Level::last}};
  return {
      up, {2 * options_.pct_start * total - 2, Level::highest, Level::first}, {total - 1, Level::first, Level::last}};
}

template <class ValueOf>
double OneCycleLR::between(std::int64_t epoch, ValueOf value_of) const {
  const auto now = static_cast<double>(epoch);
  const std::vector<Phase> all = phases();
  std::size_t at = 0;
  double begin_of_phase = 0;
  for (; at + 1 < all.size() && now > all[at].end; ++at) begin_of_phase = all[at].end;
  const double from = value_of(all[at].from);
  const double to = value_of(all[at].to);
  const double part = (now - begin_of_phase) / (all[at].end - begin_of_phase);
  if (options_.anneal_strategy == OneCycleLROptions::Anneal::linear) return (to - from) * part + from;
  return to + (from - to) / 2.0 * (std::cos(kPi * part) + 1);
}

double OneCycleLR::next(std::size_t group, double, std::int64_t epoch) const {
  OptionCheck("OneCycleLR")
      .require(epoch <= options_.total_steps, "this step", static_cast<double>(epoch),
               "<= total_steps, which is " + std::to_string(options_.total_steps))
      .or_throw();
  const double highest = of_group(options_.max_lr, group);
  const double first_lr = highest / options_.div_factor;
  return between(epoch, [&](Level level) {
    if (level == Level::highest) return highest;
    return level == Level::first ? first_lr : first_lr / options_.final_div_factor;
  });
}
std::optional<double> OneCycleLR::next_momentum(std::size_t group, std::int64_t epoch) const {
  if (!options_.cycle_momentum) return std::nullopt;
  return between(epoch, [&](Level level) {
    return of_group(level == Level::highest ? options_.base_momentum : options_.max_momentum, group);
  });
}
double OneCycleLR::first(std::size_t group, double lr) const { return next(group, lr, 0); }
double OneCycleLR::restarted(std::size_t group, double lr) const { return next(group, lr, 0); }

}  // namespace caftan::optim
