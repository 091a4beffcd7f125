/// Schedules made of others: one after the other, or all at once.
///     optim::Schedules parts;
///     parts.push_back(std::make_unique<optim::LinearLR>(optimizer, optim::LinearLROptions{}));
///     parts.push_back(std::make_unique<optim::ExponentialLR>(optimizer, optim::ExponentialLROptions{.gamma = 0.9}));
///     optim::SequentialLR schedule(optimizer, std::move(parts), {5});
/// What all schedules have in common says schedule.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "caftan/optim/schedule.hpp"

namespace caftan::optim {

/// The parts of a combined schedule, made in this order over its optimizer. Each may be a combined one.
using Schedules = std::vector<std::unique_ptr<AnySchedule>>;

/// What combined schedules have in common. Start with SequentialLR.
class CombinedSchedule : public AnySchedule {
 public:
  ScheduleState state() const override;

 protected:
  /// Errors (thrown): bad_arguments (no part, an empty one, one over another optimizer).
  CombinedSchedule(const char* name, LearningRates& optimizer, Schedules parts);
  std::size_t parts() const noexcept { return parts_.size(); }
  void step_part(std::size_t part) { parts_[part]->step(); }
  void begin_part(std::size_t part) { parts_[part]->begin(); }
  void restart_part(std::size_t part) { parts_[part]->restart(); }

 private:
  Result<void> check(const ScheduleState& state) const final;
  void take(const ScheduleState& state) final;

  Schedules parts_;
};

/// Follows one schedule after the other: the next one begins, with the base rates, at its milestone.
class SequentialLR final : public CombinedSchedule {
 public:
  /// @param milestones  the epoch in which each part but the first begins
  /// Errors (thrown): bad_arguments (of the parts; another number of milestones; one that is not above the one before).
  SequentialLR(LearningRates& optimizer, Schedules parts, std::vector<std::int64_t> milestones);
  void step() override;

 private:
  void begin() override;
  void restart() override;
  const std::vector<std::int64_t> milestones_;
};

/// In each of its steps all parts take a step. Their factors multiply, so they must be ones that change the rate of the
/// epoch before: not LambdaLR, CosineAnnealingWarmRestarts, CyclicLR or OneCycleLR behind another one.
class ChainedScheduler final : public CombinedSchedule {
 public:
  /// Errors (thrown): bad_arguments (of the parts).
  ChainedScheduler(LearningRates& optimizer, Schedules parts);
  void step() override;

 private:
  void begin() override;
  void restart() override;
};

}  // namespace caftan::optim
