#include "caftan/rl/pendulum.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace caftan::rl {
namespace {

constexpr double kPendulumPi = std::numbers::pi;
constexpr double kPendulumGravity = 10.0;
constexpr double kPendulumMass = 1.0;
constexpr double kPendulumLength = 1.0;
constexpr double kPendulumTimeStep = 0.05;
constexpr double kPendulumMostTorque = 2.0;
constexpr double kPendulumMostSpeed = 8.0;

/// Returns the angle in [-pi, pi), with the remainder that Python has.
double normalize_angle(double angle) noexcept {
  double rest = std::fmod(angle + kPendulumPi, 2 * kPendulumPi);
  if (rest < 0) rest += 2 * kPendulumPi;
  return rest - kPendulumPi;
}

}  // namespace

Pendulum::Pendulum()
    : spec_{.id = "Pendulum",
            .observation_size = 3,
            .action_low = {-kPendulumMostTorque},
            .action_high = {kPendulumMostTorque}} {}

FirstObservation Pendulum::reset(std::uint64_t seed) {
  random_ = Pcg64(seed);
  return reset();
}

FirstObservation Pendulum::reset() {
  state_[0] = random_.uniform(-kPendulumPi, kPendulumPi);
  state_[1] = random_.uniform(-1.0, 1.0);
  started_ = true;
  return observe();
}

Result<Transition> Pendulum::step_continuous(std::span<const float> action) {
  if (!started_) return step_after_end(spec_);
  if (auto fits = check_action(spec_, action); !fits) return fits.error();
  auto& [angle, speed] = state_;
  const double torque = std::clamp(static_cast<double>(action[0]), -kPendulumMostTorque, kPendulumMostTorque);
  const double normal = normalize_angle(angle);
  const double cost = normal * normal + 0.1 * (speed * speed) + 0.001 * (torque * torque);
  const double next = speed + (3 * kPendulumGravity / (2 * kPendulumLength) * std::sin(angle) +
                               3.0 / (kPendulumMass * (kPendulumLength * kPendulumLength)) * torque) *
                                  kPendulumTimeStep;
  speed = std::clamp(next, -kPendulumMostSpeed, kPendulumMostSpeed);
  angle += speed * kPendulumTimeStep;
  return Transition{.observation = observe(), .reward = -cost};
}

std::span<const float> Pendulum::observe() noexcept {
  observation_ = {static_cast<float>(std::cos(state_[0])), static_cast<float>(std::sin(state_[0])),
                  static_cast<float>(state_[1])};
  return observation_;
}

}  // namespace caftan::rl
