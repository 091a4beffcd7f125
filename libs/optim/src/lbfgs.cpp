#include "lbfgs.hpp"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace caftan::optim {
namespace {

/// A change whose product with that of the gradient is not above this is not remembered.
constexpr double kLeastCurvature = 1e-10;

double value_of(const at::Tensor& scalar) { return scalar.item<double>(); }

}  // namespace

Lbfgs::Lbfgs(std::vector<at::Tensor> parameters) : parameters_(std::move(parameters)) {
  std::int64_t offset = 0;
  for (const at::Tensor& parameter : parameters_) {
    offsets_.push_back(offset);
    offset += parameter.numel();
  }
}

void Lbfgs::begin(const LBFGS& options) {
  options_ = options;
  before_ = memory_;
  phase_ = Phase::first;
  start_.assign(parameters_.size(), at::Tensor());
  marked_.assign(parameters_.size(), at::Tensor());
  iteration_ = 0;
  evaluations_ = 0;
}

at::Tensor Lbfgs::flatten(std::span<const at::Tensor> gradients) const {
  std::vector<at::Tensor> flat;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!gradients[i].defined()) {
      flat.push_back(at::zeros({parameters_[i].numel()}, parameters_[i].options().requires_grad(false)));
    } else {
      flat.push_back((gradients[i].is_sparse() ? gradients[i].to_dense() : gradients[i]).reshape({-1}));
    }
  }
  return at::cat(flat, 0);
}

bool Lbfgs::is_optimal() const { return value_of(gradient_.abs().max()) <= options_.tolerance_grad; }

bool Lbfgs::advance(double loss, std::span<const at::Tensor> gradients) {
  const at::NoGradGuard no_grad;
  moves_.clear();
  const at::Tensor gradient = flatten(gradients);
  if (phase_ == Phase::search) {
    if (search_->evaluated(loss, gradient)) {
      moves_.push_back({Move::From::marked, search_->next(), memory_.direction});
      return true;
    }
    const LinePoint& best = search_->best();
    moves_.push_back({Move::From::marked, best.t, memory_.direction});
    memory_.t = best.t;
    loss_ = best.loss;
    gradient_ = best.gradient;
  } else {
    loss_ = loss;
    gradient_ = gradient;
  }
  optimal_ = is_optimal();
  if (phase_ == Phase::first) {
    evaluations_ = 1;
    ++memory_.evaluations;
    return optimal_ ? finish() : iterate();
  }
  return conclude(phase_ == Phase::search ? search_->evaluations() : 1) ? finish() : iterate();
}

bool Lbfgs::finish() noexcept {
  phase_ = Phase::done;
  return false;
}

/// Begins an iteration. Returns whether an evaluation is wanted.
bool Lbfgs::iterate() {
  ++iteration_;
  ++memory_.iterations;
  choose_direction();
  memory_.previous_gradient = gradient_;
  memory_.previous_loss = loss_;
  memory_.t = options_.lr;
  if (memory_.iterations == 1) memory_.t *= std::min(1., 1. / value_of(gradient_.abs().sum()));
  const double slope = value_of(gradient_.dot(memory_.direction));
  if (slope > -options_.tolerance_change) return finish();
  if (options_.line_search == LBFGS::LineSearch::strong_wolfe) {
    search_.emplace(memory_.direction, memory_.t, LinePoint{0, loss_, gradient_, slope});
    moves_.push_back({Move::From::mark, memory_.t, memory_.direction});
    phase_ = Phase::search;
    return true;
  }
  moves_.push_back({Move::From::here, memory_.t, memory_.direction});
  // The function where the last iteration ends is not needed.
  if (iteration_ == options_.max_iter) return finish();
  phase_ = Phase::fixed;
  return true;
}

void Lbfgs::choose_direction() {
  if (memory_.iterations == 1) {
    memory_.direction = gradient_.neg();
    memory_.scale = at::ones({}, gradient_.options());
    memory_.history.clear();
    return;
  }
  const at::Tensor change = gradient_.sub(memory_.previous_gradient);
  const at::Tensor moved = memory_.direction.mul(memory_.t);
  if (const at::Tensor curvature = change.dot(moved); value_of(curvature) > kLeastCurvature) {
    if (static_cast<std::int64_t>(memory_.history.size()) == options_.history_size) memory_.history.pop_front();
    memory_.history.push_back({change, moved, curvature.reciprocal()});
    memory_.scale = curvature.div(change.dot(change));
  }
  // The two loops of L-BFGS, from the newest change to the oldest and back.
  const std::size_t count = memory_.history.size();
  std::vector<at::Tensor> factors(count);
  at::Tensor direction = gradient_.neg();
  for (std::size_t i = count; i-- > 0;) {
    const LbfgsMemory::Change& old = memory_.history[i];
    factors[i] = old.parameter.dot(direction).mul(old.inverse);
    direction.add_(old.gradient, -value_of(factors[i]));
  }
  direction = direction.mul(memory_.scale);
  for (std::size_t i = 0; i < count; ++i) {
    const LbfgsMemory::Change& old = memory_.history[i];
    direction.add_(old.parameter, value_of(factors[i].sub(old.gradient.dot(direction).mul(old.inverse))));
  }
  memory_.direction = direction;
}

/// Ends an iteration. Returns whether the step has ended with it.
bool Lbfgs::conclude(std::int64_t evaluations) {
  evaluations_ += evaluations;
  memory_.evaluations += static_cast<std::uint64_t>(evaluations);
  if (iteration_ == options_.max_iter) return true;
  if (evaluations_ >= options_.max_eval.value_or(options_.max_iter * 5 / 4)) return true;
  if (optimal_) return true;
  if (value_of(memory_.direction.mul(memory_.t).abs().max()) <= options_.tolerance_change) return true;
  return std::abs(loss_ - memory_.previous_loss) < options_.tolerance_change;
}

void Lbfgs::move(std::span<const std::size_t> which) {
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below;  // the caller raises the version counters
  for (const std::size_t i : which) {
    const at::Tensor& parameter = parameters_[i];
    if (!moves_.empty() && !start_[i].defined()) start_[i] = parameter.clone();
    for (const Move& move : moves_) {
      if (move.from == Move::From::mark) marked_[i] = parameter.clone();
      if (move.from == Move::From::marked) parameter.copy_(marked_[i]);
      const at::Tensor part = move.direction.narrow(0, offsets_[i], parameter.numel());
      parameter.add_(part.view_as(parameter), move.t);
    }
  }
}

void Lbfgs::roll_back(std::span<const std::size_t> which) {
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below;
  for (const std::size_t i : which) {
    if (start_[i].defined()) parameters_[i].copy_(start_[i]);
  }
}

void Lbfgs::end() noexcept {
  phase_ = Phase::closed;
  start_.clear();
  marked_.clear();
  moves_.clear();
  search_.reset();
  gradient_.reset();
  before_ = {};
}

void Lbfgs::forget() noexcept {
  memory_ = std::move(before_);
  end();
}

}  // namespace caftan::optim
