/// Learning-rate schedules, computed as PyTorch's Python ones are: bit for bit in double.
///     optim::StepLR schedule(optimizer, {.step_size = 10, .gamma = 0.5});
///     for (...) { ...; optimizer.step(context); schedule.step(); }
/// They change the learning rates of any optimizer here, local or distributed, which must outlive them. The base of
/// each group is the rate that it had when the first schedule over the optimizer was made, also for later ones and for
/// those made after the optimizer's saved state was loaded.
/// Threads: one at a time. Source: torch.optim.lr_scheduler.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/optim/learning_rates.hpp"

namespace caftan::optim {

/// Where a schedule stands, to go on after a restart: save it with the optimizer's state, which has the rates.
struct ScheduleState {
  std::int64_t epoch = 0;
  std::vector<double> base_lrs;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& epoch& base_lrs;
  }
};

/// A schedule that depends on the number of its steps alone.
class Schedule {
 public:
  virtual ~Schedule() = default;

  /// Sets every group's rate for the next epoch. Call it after the optimizer's step.
  void step();
  /// Returns the number of steps so far.
  std::int64_t epoch() const noexcept { return state_.epoch; }

  const ScheduleState& state() const noexcept { return state_; }
  /// Goes on from `state`. The optimizer loads its rates itself. Errors: bad_arguments (the state is of an optimizer
  /// with another number of groups, or has a negative epoch).
  Result<void> load(ScheduleState state);

 protected:
  /// @param optimizer  outlives the schedule
  explicit Schedule(LearningRates& optimizer);
  /// Returns the rate of `group` in epoch >= 1. @param lr  its rate in the epoch before
  virtual double next(std::size_t group, double lr, std::int64_t epoch) const = 0;
  double base_lr(std::size_t group) const noexcept { return state_.base_lrs[group]; }
  std::size_t groups() const noexcept { return state_.base_lrs.size(); }

 private:
  LearningRates& optimizer_;
  ScheduleState state_;
};

// Errors of all constructors (thrown): bad_arguments (an option out of its range).

/// Options of StepLR.
struct StepLROptions {
  std::int64_t step_size = 1;  ///< epochs between two decays, >= 1
  double gamma = 0.1;          ///< what the rate is multiplied by
};
/// Multiplies the rates by gamma every step_size epochs.
class StepLR final : public Schedule {
 public:
  StepLR(LearningRates& optimizer, const StepLROptions& options);

 private:
  double next(std::size_t group, double lr, std::int64_t epoch) const override;
  const StepLROptions options_;
};

/// Options of MultiStepLR.
struct MultiStepLROptions {
  std::vector<std::int64_t> milestones;  ///< epochs at which the rate decays, in any order; twice = decays twice
  double gamma = 0.1;
};
/// Multiplies the rates by gamma at each milestone.
class MultiStepLR final : public Schedule {
 public:
  MultiStepLR(LearningRates& optimizer, const MultiStepLROptions& options);

 private:
  double next(std::size_t group, double lr, std::int64_t epoch) const override;
  std::map<std::int64_t, int> milestones_;  // how often each is there
  const double gamma_;
};

/// Options of ExponentialLR.
struct ExponentialLROptions {
  double gamma = 0.9;
};
/// Multiplies the rates by gamma every epoch.
class ExponentialLR final : public Schedule {
 public:
  ExponentialLR(LearningRates& optimizer, const ExponentialLROptions& options);

 private:
  double next(std::size_t group, double lr, std::int64_t epoch) const override;
  const double gamma_;
};

/// Options of CosineAnnealingLR.
struct CosineAnnealingLROptions {
  std::int64_t t_max = 1;  ///< epochs from the highest to the lowest rate, >= 1
  double eta_min = 0;      ///< the lowest rate
};
/// Moves the rates along a cosine: in t_max epochs from the rates at the beginning to eta_min, in the next t_max epochs
/// back, and so on.
class CosineAnnealingLR final : public Schedule {
 public:
  CosineAnnealingLR(LearningRates& optimizer, const CosineAnnealingLROptions& options);

 private:
  double next(std::size_t group, double lr, std::int64_t epoch) const override;
  const CosineAnnealingLROptions options_;
};

/// The rate each group begins with, times a function of the epoch. As in PyTorch the factor of epoch 0 holds from the
/// construction on.
class LambdaLR final : public Schedule {
 public:
  /// Returns the factor of the base rate in an epoch.
  using Factor = std::function<double(std::int64_t epoch)>;
  LambdaLR(LearningRates& optimizer, Factor factor);
  /// @param factors  one per group
  LambdaLR(LearningRates& optimizer, std::vector<Factor> factors);

 private:
  double next(std::size_t group, double lr, std::int64_t epoch) const override;
  const std::vector<Factor> factors_;
};

/// Options of ReduceLROnPlateau.
struct ReduceLROnPlateauOptions {
  enum class Mode : std::uint8_t { min, max };       ///< whether less or more is better
  enum class Threshold : std::uint8_t { rel, abs };  ///< whether `threshold` is a part of the best or a distance
  Mode mode = Mode::min;
  double factor = 0.1;         ///< < 1
  std::int64_t patience = 10;  ///< epochs without improvement that change nothing, >= 0
  double threshold = 1e-4;     ///< what counts as improvement
  Threshold threshold_mode = Threshold::rel;
  std::int64_t cooldown = 0;  ///< epochs after a reduction in which none counts as bad, >= 0
  double min_lr = 0;
  double eps = 1e-8;  ///< a smaller change of the rate is not made
};

/// Reduces the rates when a metric has stopped improving.
class ReduceLROnPlateau {
 public:
  /// Where the schedule stands, to go on after a restart.
  struct State {
    double best = 0;
    std::int64_t bad_epochs = 0;
    std::int64_t cooldown = 0;
    template <class Archive>
    void serialize(Archive& archive, unsigned) {
      archive& best& bad_epochs& cooldown;
    }
  };

  ReduceLROnPlateau(LearningRates& optimizer, const ReduceLROnPlateauOptions& options);
  /// @param metric  of this epoch, the validation loss for example
  void step(double metric);
  const State& state() const noexcept { return state_; }
  /// Goes on from `state`. The optimizer loads its rates itself.
  void load(const State& state) noexcept { state_ = state; }

 private:
  bool is_better(double metric) const noexcept;

  LearningRates& optimizer_;
  const ReduceLROnPlateauOptions options_;
  State state_;
};

}  // namespace caftan::optim
