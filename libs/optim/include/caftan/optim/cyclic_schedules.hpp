/// Learning-rate schedules that go up and down, computed as PyTorch's Python ones are. What all schedules have in
/// common says schedule.hpp. CyclicLR and OneCycleLR move the momentum against the rate: it is highest where the rate
/// is lowest. Errors of all constructors (thrown): bad_arguments (an option out of its range; the text says its value
/// and the range).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "caftan/optim/schedule.hpp"

namespace caftan::optim {

/// Options of CosineAnnealingWarmRestarts.
struct CosineAnnealingWarmRestartsOptions {
  std::int64_t t_0 = 1;     ///< epochs until the first restart, >= 1
  std::int64_t t_mult = 1;  ///< what the number of epochs is multiplied by at each restart, >= 1
  double eta_min = 0;       ///< the lowest rate
};
/// Moves the rates along half a cosine from their bases to eta_min, again and again.
/// Source: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts, in whole epochs.
class CosineAnnealingWarmRestarts final : public Schedule {
 public:
  CosineAnnealingWarmRestarts(LearningRates& optimizer, const CosineAnnealingWarmRestartsOptions& options);

 private:
  double next(std::size_t group, double lr, std::int64_t epoch) const override;
  double first(std::size_t group, double lr) const override;
  double restarted(std::size_t group, double lr) const override;
  const CosineAnnealingWarmRestartsOptions options_;
};

/// Options of CyclicLR.
struct CyclicLROptions {
  /// How the height of later cycles changes: not, by half each time, or by gamma in each epoch.
  enum class Mode : std::uint8_t { triangular, triangular2, exp_range };
  std::vector<double> base_lr = {};  ///< the lowest rate, one for all groups or one per group, >= 0
  std::vector<double> max_lr = {};   ///< the highest rate, one for all groups or one per group, >= base_lr
  std::int64_t step_size_up = 2000;  ///< epochs from the lowest to the highest, >= 1
  std::int64_t step_size_down = 0;   ///< epochs back; 0 = as up
  Mode mode = Mode::triangular;
  double gamma = 1.0;                         ///< of exp_range, > 0
  bool cycle_momentum = true;                 ///< moves the momentum down and up a line, too; each group must have one
  std::vector<double> base_momentum = {0.8};  ///< the lowest, one for all groups or one per group, in (0, 1)
  std::vector<double> max_momentum = {0.9};   ///< the highest, one for all groups or one per group, in (0, 1)
};
/// Moves the rates up and down a line between two bounds. An epoch is one step of the optimizer here.
class CyclicLR final : public Schedule {
 public:
  CyclicLR(LearningRates& optimizer, const CyclicLROptions& options);

 private:
  double next(std::size_t group, double lr, std::int64_t epoch) const override;
  double first(std::size_t group, double lr) const override;
  double restarted(std::size_t group, double lr) const override;
  std::optional<double> next_momentum(std::size_t group, std::int64_t epoch) const override;
  /// Returns the part of `range`, the highest value less the lowest, by which an epoch is above the lowest.
  double height(std::int64_t epoch, double range) const;
  const CyclicLROptions options_;
};

/// Options of OneCycleLR.
struct OneCycleLROptions {
  enum class Anneal : std::uint8_t { cos, linear };  ///< the curve between two rates
  std::vector<double> max_lr = {};                   ///< the highest rate, one for all groups or one per group, >= 0
  std::int64_t total_steps = 0;                      ///< of the whole cycle, >= 1
  double pct_start = 0.3;                            ///< the part of the cycle in which the rate rises, in [0, 1]
  Anneal anneal_strategy = Anneal::cos;
  double div_factor = 25;         ///< the first rate is max_lr / div_factor, > 0
  double final_div_factor = 1e4;  ///< the last rate is the first / final_div_factor, > 0
  bool three_phase = false;       ///< falls to the first rate as it rose, and only then to the last
  bool cycle_momentum = true;     ///< lets the momentum fall while the rate rises, and back; each group must have one
  std::vector<double> base_momentum = {0.85};  ///< at the highest rate, one for all groups or one per group, in (0, 1)
  std::vector<double> max_momentum = {0.95};   ///< at the other rates, one for all groups or one per group, in (0, 1)
};
/// Raises the rates once and lets them fall far below where they began. An epoch is one step of the optimizer here; a
/// step beyond total_steps throws bad_arguments and changes nothing.
class OneCycleLR final : public Schedule {
 public:
  OneCycleLR(LearningRates& optimizer, const OneCycleLROptions& options);

 private:
  enum class Level : std::uint8_t { first, highest, last };
  /// A part of the cycle: up to step `end`, from one rate to another.
  struct Phase {
    double end;
    Level from;
    Level to;
  };
  std::vector<Phase> phases() const;
  /// Returns what lies in `epoch` between the value of one level and that of the next.
  template <class ValueOf>
  double between(std::int64_t epoch, ValueOf value_of) const;
  double next(std::size_t group, double lr, std::int64_t epoch) const override;
  double first(std::size_t group, double lr) const override;
  double restarted(std::size_t group, double lr) const override;
  std::optional<double> next_momentum(std::size_t group, std::int64_t epoch) const override;
  const OneCycleLROptions options_;
};

}  // namespace caftan::optim
