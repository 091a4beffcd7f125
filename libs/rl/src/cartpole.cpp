#include "caftan/rl/cartpole.hpp"

#include <cmath>
#include <numbers>
#include <utility>

namespace caftan::rl {
namespace {

constexpr double kGravity = 9.8;
constexpr double kCartMass = 1.0;
constexpr double kPoleMass = 0.1;
constexpr double kTotalMass = kPoleMass + kCartMass;
constexpr double kHalfLength = 0.5;
constexpr double kPoleMassLength = kPoleMass * kHalfLength;
constexpr double kForce = 10.0;
constexpr double kTimeStep = 0.02;
constexpr double kAngleLimit = 12 * 2 * std::numbers::pi / 360;
constexpr double kPositionLimit = 2.4;
constexpr double kStartRange = 0.05;

}  // namespace

CartPole::CartPole(CartPoleOptions options)
    : spec_{.id = std::move(options.id),
            .observation_size = 4,
            .actions = 2,
            .max_steps = 0,
            .solved_at = options.solved_at},
      semi_implicit_(options.semi_implicit),
      sutton_barto_reward_(options.sutton_barto_reward) {}

std::span<const float> CartPole::reset(std::uint64_t seed) {
  random_ = Pcg64(seed);
  return reset();
}

std::span<const float> CartPole::reset() {
  for (double& value : state_) value = random_.uniform(-kStartRange, kStartRange);
  ended_ = false;
  return observe();
}

Result<Transition> CartPole::step(int action) {
  if (ended_) return Error(Errc::bad_arguments, spec_.id + ": a step after the episode's end; reset first");
  if (action < 0 || action >= spec_.actions) {
    return Error(Errc::bad_arguments, spec_.id + ": action " + std::to_string(action) + " is not 0 or 1");
  }
  integrate(action == 1 ? kForce : -kForce);
  ended_ =
      state_[0] < -kPositionLimit || state_[0] > kPositionLimit || state_[2] < -kAngleLimit || state_[2] > kAngleLimit;
  const double reward = sutton_barto_reward_ ? (ended_ ? -1.0 : 0.0) : 1.0;
  return Transition{.observation = observe(), .reward = reward, .terminated = ended_, .truncated = false};
}

/// The order of operations is Gymnasium's: with another order the last digits would differ, and after some hundred
/// steps the episodes.
void CartPole::integrate(double force) noexcept {
  auto& [x, x_dot, theta, theta_dot] = state_;
  const double cosine = std::cos(theta);
  const double sine = std::sin(theta);
  const double temp = (force + kPoleMassLength * (theta_dot * theta_dot) * sine) / kTotalMass;
  const double theta_acc =
      (kGravity * sine - cosine * temp) / (kHalfLength * (4.0 / 3.0 - kPoleMass * (cosine * cosine) / kTotalMass));
  const double x_acc = temp - kPoleMassLength * theta_acc * cosine / kTotalMass;
  if (semi_implicit_) {
    x_dot += kTimeStep * x_acc;
    x += kTimeStep * x_dot;
    theta_dot += kTimeStep * theta_acc;
    theta += kTimeStep * theta_dot;
  } else {
    x += kTimeStep * x_dot;
    x_dot += kTimeStep * x_acc;
    theta += kTimeStep * theta_dot;
    theta_dot += kTimeStep * theta_acc;
  }
}

std::span<const float> CartPole::observe() noexcept {
  for (std::size_t i = 0; i < state_.size(); ++i) observation_[i] = static_cast<float>(state_[i]);
  return observation_;
}

}  // namespace caftan::rl
