/// `LearningRates`: what a schedule (schedules.hpp) changes of an optimizer: one learning rate for each of its
/// parameter groups.
#pragma once

#include <cstddef>
#include <vector>

namespace caftan::optim {

class LearningRates {
 public:
  virtual ~LearningRates() = default;
  virtual std::size_t groups() const noexcept = 0;
  /// Precondition of both: group < groups().
  virtual double lr(std::size_t group) const = 0;
  /// Holds from the next step on. @param lr  finite, >= 0: else that step is refused
  virtual void set_lr(std::size_t group, double lr) = 0;

  /// Returns the rate that each group had when the first schedule over this optimizer was made, which is when this is
  /// called first. Source: "initial_lr" of PyTorch's parameter groups. Threads: one at a time, as schedules.
  const std::vector<double>& initial_lrs() {
    if (initial_lrs_.empty()) {
      for (std::size_t group = 0; group < groups(); ++group) initial_lrs_.push_back(lr(group));
    }
    return initial_lrs_;
  }

 private:
  std::vector<double> initial_lrs_;
};

}  // namespace caftan::optim
