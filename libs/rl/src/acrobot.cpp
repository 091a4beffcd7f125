#include "caftan/rl/acrobot.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace caftan::rl {
namespace {

constexpr double kLinkPi = std::numbers::pi;
constexpr double kLinkTimeStep = 0.2;
constexpr double kLinkLength = 1.0;
constexpr double kLinkMass = 1.0;
constexpr double kLinkCentre = 0.5;  // distance of a link's centre of mass from its joint
constexpr double kLinkInertia = 1.0;
constexpr double kLinkGravity = 9.8;
constexpr std::array kLinkMostSpeed = {4 * kLinkPi, 9 * kLinkPi};

/// Returns the velocities and accelerations of a state under a torque.
AcrobotState derivatives(const AcrobotState& state, double torque) noexcept {
  const auto& [theta1, theta2, speed1, speed2] = state;
  const double sine2 = std::sin(theta2);
  const double cosine2 = std::cos(theta2);
  const double d1 =
      kLinkMass * (kLinkCentre * kLinkCentre) +
      kLinkMass * (kLinkLength * kLinkLength + kLinkCentre * kLinkCentre + 2 * kLinkLength * kLinkCentre * cosine2) +
      kLinkInertia + kLinkInertia;
  const double d2 = kLinkMass * (kLinkCentre * kLinkCentre + kLinkLength * kLinkCentre * cosine2) + kLinkInertia;
  const double phi2 = kLinkMass * kLinkCentre * kLinkGravity * std::cos(theta1 + theta2 - kLinkPi / 2.0);
  const double phi1 =
      -kLinkMass * kLinkLength * kLinkCentre * (speed2 * speed2) * sine2 -
      2 * kLinkMass * kLinkLength * kLinkCentre * speed2 * speed1 * sine2 +
      (kLinkMass * kLinkCentre + kLinkMass * kLinkLength) * kLinkGravity * std::cos(theta1 - kLinkPi / 2) + phi2;
  const double acceleration2 =
      (torque + d2 / d1 * phi1 - kLinkMass * kLinkLength * kLinkCentre * (speed1 * speed1) * sine2 - phi2) /
      (kLinkMass * (kLinkCentre * kLinkCentre) + kLinkInertia - d2 * d2 / d1);
  return {speed1, speed2, -(d2 * acceleration2 + phi1) / d1, acceleration2};
}

AcrobotState moved(const AcrobotState& state, double time, const AcrobotState& by) noexcept {
  AcrobotState result;
  for (std::size_t i = 0; i < state.size(); ++i) result[i] = state[i] + time * by[i];
  return result;
}

/// One step of Runge and Kutta's fourth-order rule, with a constant torque.
AcrobotState integrated(const AcrobotState& state, double torque) noexcept {
  const AcrobotState k1 = derivatives(state, torque);
  const AcrobotState k2 = derivatives(moved(state, kLinkTimeStep / 2.0, k1), torque);
  const AcrobotState k3 = derivatives(moved(state, kLinkTimeStep / 2.0, k2), torque);
  const AcrobotState k4 = derivatives(moved(state, kLinkTimeStep, k3), torque);
  AcrobotState sum;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i];
  return moved(state, kLinkTimeStep / 6.0, sum);
}

double wrapped(double angle) noexcept {
  while (angle > kLinkPi) angle -= 2 * kLinkPi;
  while (angle < -kLinkPi) angle += 2 * kLinkPi;
  return angle;
}

}  // namespace

Acrobot::Acrobot() : spec_{.id = "Acrobot", .observation_size = 6, .actions = 3, .solved_at = -100.0} {}

FirstObservation Acrobot::reset(std::uint64_t seed) {
  random_ = Pcg64(seed);
  return reset();
}

FirstObservation Acrobot::reset() {
  for (double& value : state_) value = static_cast<float>(random_.uniform(-0.1, 0.1));
  ended_ = false;
  return observe();
}

Result<Transition> Acrobot::step(int action) {
  if (ended_) return step_after_end(spec_);
  if (auto fits = check_action(spec_, action); !fits) return fits.error();
  state_ = integrated(state_, action - 1);
  for (std::size_t i = 0; i < 2; ++i) {
    state_[i] = wrapped(state_[i]);
    state_[2 + i] = std::clamp(state_[2 + i], -kLinkMostSpeed[i], kLinkMostSpeed[i]);
  }
  ended_ = -std::cos(state_[0]) - std::cos(state_[1] + state_[0]) > 1.0;
  return Transition{.observation = observe(), .reward = ended_ ? 0.0 : -1.0, .terminated = ended_};
}

std::span<const float> Acrobot::observe() noexcept {
  for (std::size_t i = 0; i < 2; ++i) {
    observation_[2 * i] = static_cast<float>(std::cos(state_[i]));
    observation_[2 * i + 1] = static_cast<float>(std::sin(state_[i]));
    observation_[4 + i] = static_cast<float>(state_[2 + i]);
  }
  return observation_;
}

}  // namespace caftan::rl
