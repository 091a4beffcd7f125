/// `TrainerRates`: the learning rate and the momentum of one trainer's steps, which its schedules change.
#pragma once

#include <optional>
#include <vector>

#include "caftan/base/mutex.hpp"
#include "caftan/nn/shared_module.hpp"
#include "caftan/optim/learning_rates.hpp"

namespace caftan::nn {

/// Threads: any, all methods.
class TrainerRates final : public optim::LearningRates {
 public:
  explicit TrainerRates(const SharedRates& at_owner) : rates_(at_owner) {}

  std::size_t groups() const noexcept override { return 1; }
  double lr(std::size_t /*group*/) const override {
    const base::LockGuard lock(mutex_);
    return rates_.lr;
  }
  void set_lr(std::size_t /*group*/, double lr) override {
    const base::LockGuard lock(mutex_);
    rates_.lr = lr;
  }
  std::optional<double> momentum(std::size_t /*group*/) const override {
    const base::LockGuard lock(mutex_);
    return rates_.momentum;
  }
  void set_momentum(std::size_t /*group*/, double momentum) override {
    const base::LockGuard lock(mutex_);
    rates_.momentum = momentum;
    sets_momentum_ = true;
  }
  std::vector<double> initial_lrs() override {
    const base::LockGuard lock(mutex_);
    return {rates_.initial_lr};
  }

  /// Returns what the next step brings.
  StepRates of_next_step() const {
    const base::LockGuard lock(mutex_);
    return {rates_.lr, sets_momentum_ ? rates_.momentum : std::nullopt};
  }

 private:
  mutable base::Mutex mutex_;
  SharedRates rates_ CAFTAN_GUARDED_BY(mutex_);
  bool sets_momentum_ CAFTAN_GUARDED_BY(mutex_) = false;
};

}  // namespace caftan::nn
