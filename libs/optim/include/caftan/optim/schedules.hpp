/// Learning-rate schedules of one formula, computed as PyTorch's Python ones are: bit for bit in double. What all
/// schedules have in common says schedule.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <vector>

#include "caftan/optim/schedule.hpp"

namespace caftan::optim {

// Errors of all constructors (thrown): bad_arguments (an option out of its range; the text says its value and the
// range).

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
  double restarted(std::size_t group, double lr) const override;
  const CosineAnnealingLROptions options_;
};

/// Options of ConstantLR.
struct ConstantLROptions {
  double factor = 1.0 / 3;       ///< of the rate, in (0, 1]
  std::int64_t total_iters = 5;  ///< epochs for which it holds, >= 1
};
/// Multiplies the rates by a factor for the first epochs.
class ConstantLR final : public Schedule {
 public:
  ConstantLR(LearningRates& optimizer, const ConstantLROptions& options);

 private:
  double next(std::size_t group, double lr, std::int64_t epoch) const override;
  double first(std::size_t group, double lr) const override;
  double restarted(std::size_t group, double lr) const override;
  const ConstantLROptions options_;
};

/// Options of LinearLR.
struct LinearLROptions {
  double start_factor = 1.0 / 3;  ///< of the rate in epoch 0, in (0, 1]
  double end_factor = 1.0;        ///< of the rate from epoch total_iters on, in [0, 1]
  std::int64_t total_iters = 5;   ///< epochs from one factor to the other, >= 1
};
/// Moves the factor of the rates along a line: a warm-up, for example.
class LinearLR final : public Schedule {
 public:
  LinearLR(LearningRates& optimizer, const LinearLROptions& options);

 private:
  double next(std::size_t group, double lr, std::int64_t epoch) const override;
  double first(std::size_t group, double lr) const override;
  double restarted(std::size_t group, double lr) const override;
  const LinearLROptions options_;
};

/// Options of PolynomialLR.
struct PolynomialLROptions {
  std::int64_t total_iters = 5;  ///< epochs until the rate is 0, >= 1
  double power = 1.0;            ///< > 0
};
/// Multiplies the base rates by (1 - epoch / total_iters) to a power, until they are 0.
class PolynomialLR final : public Schedule {
 public:
  PolynomialLR(LearningRates& optimizer, const PolynomialLROptions& options);

 private:
  double next(std::size_t group, double lr, std::int64_t epoch) const override;
  const PolynomialLROptions options_;
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
  double first(std::size_t group, double lr) const override;
  double restarted(std::size_t group, double lr) const override;
  const std::vector<Factor> factors_;
};

/// Multiplies the rates in each epoch from 1 on by a function of the epoch.
class MultiplicativeLR final : public Schedule {
 public:
  /// Returns what the rate of the epoch before is multiplied by.
  using Factor = std::function<double(std::int64_t epoch)>;
  MultiplicativeLR(LearningRates& optimizer, Factor factor);
  /// @param factors  one per group
  MultiplicativeLR(LearningRates& optimizer, std::vector<Factor> factors);

 private:
  double next(std::size_t group, double lr, std::int64_t epoch) const override;
  double restarted(std::size_t group, double lr) const override;
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
