/// `LearningRates`: what a schedule (schedules.hpp) changes of an optimizer: the learning rate of each of its parameter
/// groups, and the momentum of those that have one.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace caftan::optim {

/// The learning rates and momenta of an optimizer, by group of parameters.
class LearningRates {
 public:
  virtual ~LearningRates() = default;
  /// Returns the number of groups of parameters.
  virtual std::size_t groups() const noexcept = 0;
  /// Precondition of all methods with a group: group < groups().
  virtual double lr(std::size_t group) const = 0;
  /// Sets the rate of a group from the next step on. @param lr  finite, >= 0: else that step is refused
  virtual void set_lr(std::size_t group, double lr) = 0;

  /// Returns the momentum of a group: its option `momentum`, or the first of its `betas`; none if its algorithm has
  /// neither.
  virtual std::optional<double> momentum(std::size_t group) const = 0;
  /// Sets the momentum of a group from the next step on. Means and buffers stay.
  /// Precondition: the group has a momentum.
  /// @param momentum  in the range of that option: else that step is refused
  virtual void set_momentum(std::size_t group, double momentum) = 0;

  /// Returns the rate that each group had at the first call of this method, which the first schedule over this
  /// optimizer makes. These rates are part of saved states: after a load they are those of the saved optimizer. Source:
  /// "initial_lr" of PyTorch's parameter groups.
  virtual std::vector<double> initial_lrs() = 0;

 protected:
  /// Returns the rates of all groups now.
  std::vector<double> lrs() const {
    std::vector<double> all;
    for (std::size_t group = 0; group < groups(); ++group) all.push_back(lr(group));
    return all;
  }
};

}  // namespace caftan::optim
