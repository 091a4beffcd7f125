/// `Schedule`: what all learning-rate schedules have in common; the schedules are in schedules.hpp (one formula each),
/// cyclic_schedules.hpp and combined_schedules.hpp.
///     optim::StepLR schedule(optimizer, {.step_size = 10, .gamma = 0.5});
///     for (...) { ...; optimizer.step(context); schedule.step(); }
/// They change the learning rates of any optimizer here, local or distributed, which must outlive them; CyclicLR and
/// OneCycleLR change its momenta, too. The base of each group is the rate that it had when the first schedule over the
/// optimizer was made, also for later ones and for those made after the optimizer's saved state was loaded. A group
/// that is added later is changed only by schedules that are made after it. Threads: one at a time. Source:
/// torch.optim.lr_scheduler.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/optim/learning_rates.hpp"

namespace caftan::optim {

/// Where a schedule stands, to go on after a restart: save it with the optimizer's state, which has the rates.
struct ScheduleState {
  std::int64_t epoch = 0;
  std::vector<double> base_lrs;
  std::vector<ScheduleState> parts;  ///< of a SequentialLR or ChainedScheduler, in order
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& epoch& base_lrs& parts;
  }
};

/// A schedule that depends on the number of its steps alone: by one formula (`Schedule`), or made of others.
class AnySchedule {
 public:
  virtual ~AnySchedule() = default;

  /// Sets every group's rate for the next epoch. Call it after the optimizer's step.
  virtual void step() = 0;
  /// Returns the number of steps so far.
  std::int64_t epoch() const noexcept { return epoch_; }

  /// Returns where it stands.
  virtual ScheduleState state() const { return {epoch_, base_lrs_, {}}; }
  /// Goes on from `state`. The rates are not part of it: the optimizer loads them with its own state.
  /// Errors: bad_arguments (of an optimizer with another number of groups, of other parts, or a negative epoch);
  /// nothing
  ///   has changed then.
  Result<void> load(const ScheduleState& state);

  /// Returns the optimizer whose rates this schedule sets.
  const LearningRates& optimizer() const noexcept { return optimizer_; }

 protected:
  /// @param optimizer  outlives the schedule
  explicit AnySchedule(LearningRates& optimizer) : optimizer_(optimizer), base_lrs_(optimizer.initial_lrs()) {}

  LearningRates& rates() const noexcept { return optimizer_; }
  double base_lr(std::size_t group) const noexcept { return base_lrs_[group]; }
  std::size_t groups() const noexcept { return base_lrs_.size(); }
  void set_epoch(std::int64_t epoch) noexcept { epoch_ = epoch; }

 private:
  friend class CombinedSchedule;
  /// Sets the rates of epoch 0, computed from the present rates, and counts from there.
  virtual void begin() = 0;
  /// Sets the rates of epoch 0, computed from the base rates, and counts from there.
  virtual void restart() = 0;
  virtual Result<void> check(const ScheduleState& state) const;
  /// Precondition: checked.
  virtual void take(const ScheduleState& state);

  LearningRates& optimizer_;
  std::int64_t epoch_ = 0;
  std::vector<double> base_lrs_;
};

/// A schedule by one formula.
class Schedule : public AnySchedule {
 public:
  void step() override;

 protected:
  /// @param optimizer  outlives the schedule
  explicit Schedule(LearningRates& optimizer) : AnySchedule(optimizer) {}
  /// Returns the rate of `group` in epoch >= 1. @param lr  the group's rate in the epoch before
  virtual double next(std::size_t group, double lr, std::int64_t epoch) const = 0;
  /// Returns the rate of `group` in epoch 0. @param lr  the group's rate before. A class that changes the rate calls
  /// `begin` at the end of its constructor.
  virtual double first(std::size_t group, double lr) const;
  /// As first, where a SequentialLR has come to this schedule.
  virtual double restarted(std::size_t group, double lr) const;
  /// Returns the momentum of `group` in epoch >= 0; none leaves it as it is.
  virtual std::optional<double> next_momentum(std::size_t group, std::int64_t epoch) const;
  void begin() final;

 private:
  void restart() final;
  void set_momenta(std::int64_t epoch);
};

}  // namespace caftan::optim
