#include "group_rates.hpp"

namespace caftan::optim {

std::size_t GroupRates::groups() const noexcept {
  const base::LockGuard lock(mutex_);
  return algorithms_.size();
}

bool GroupRates::need_closure() const noexcept {
  const base::LockGuard lock(mutex_);
  return needs_closure(algorithms_[0]);
}

double GroupRates::lr(std::size_t group) const {
  const base::LockGuard lock(mutex_);
  return learning_rate(algorithms_[group]);
}

void GroupRates::set_lr(std::size_t group, double lr) {
  const base::LockGuard lock(mutex_);
  set_learning_rate(algorithms_[group], lr);
}

std::optional<double> GroupRates::momentum(std::size_t group) const {
  const base::LockGuard lock(mutex_);
  return optim::momentum(algorithms_[group]);
}

void GroupRates::set_momentum(std::size_t group, double momentum) {
  const base::LockGuard lock(mutex_);
  optim::set_momentum(algorithms_[group], momentum);
  momenta_set_ = true;
}

std::vector<double> GroupRates::initial_lrs() {
  const base::LockGuard lock(mutex_);
  if (initial_lrs_.empty()) {
    for (const Algorithm& algorithm : algorithms_) initial_lrs_.push_back(learning_rate(algorithm));
  }
  return initial_lrs_;
}

void GroupRates::add(const Algorithm& algorithm) {
  const base::LockGuard lock(mutex_);
  if (!initial_lrs_.empty()) initial_lrs_.push_back(learning_rate(algorithm));
  algorithms_.push_back(algorithm);
  made_with_.push_back(algorithm);
}

std::vector<double> GroupRates::lrs_of(std::span<const std::uint32_t> groups) const {
  std::vector<double> lrs;
  const base::LockGuard lock(mutex_);
  for (const std::uint32_t group : groups) lrs.push_back(learning_rate(algorithms_[group]));
  return lrs;
}

Momenta GroupRates::momenta_of(std::span<const std::uint32_t> groups) const {
  Momenta momenta;
  const base::LockGuard lock(mutex_);
  if (!momenta_set_) return momenta;
  for (const std::uint32_t group : groups) momenta.push_back(optim::momentum(algorithms_[group]));
  return momenta;
}

void GroupRates::write_to(SavedState& saved) const {
  const base::LockGuard lock(mutex_);
  saved.initial_lrs = initial_lrs_;
  for (const Algorithm& algorithm : algorithms_) {
    saved.lrs.push_back(learning_rate(algorithm));
    if (momenta_set_) saved.momenta.push_back(optim::momentum(algorithm));
  }
}

void GroupRates::take(const SavedState& saved) {
  const base::LockGuard lock(mutex_);
  initial_lrs_ = saved.initial_lrs;
  // Owners have the momenta in their own state, so that none has to be sent where none was ever set.
  momenta_set_ = !saved.momenta.empty();
  for (std::size_t group = 0; group < algorithms_.size(); ++group) {
    set_learning_rate(algorithms_[group], saved.lrs[group]);
    const std::optional<double> momentum = momenta_set_ ? saved.momenta[group] : optim::momentum(made_with_[group]);
    if (momentum) optim::set_momentum(algorithms_[group], *momentum);
  }
}

}  // namespace caftan::optim
