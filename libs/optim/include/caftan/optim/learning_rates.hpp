/// `LearningRates`: what a schedule (schedules.hpp) changes of an optimizer: one learning rate for each of its
/// parameter groups.
#pragma once

#include <cstddef>

namespace caftan::optim {

class LearningRates {
 public:
  virtual ~LearningRates() = default;
  virtual std::size_t groups() const noexcept = 0;
  /// Precondition of both: group < groups().
  virtual double lr(std::size_t group) const = 0;
  /// Holds from the next step on. @param lr  finite, >= 0: else that step is refused
  virtual void set_lr(std::size_t group, double lr) = 0;
};

}  // namespace caftan::optim
