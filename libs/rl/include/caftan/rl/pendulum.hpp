/// Pendulum: a torque swings a pendulum up and holds it there. Without a time limit: `make_environment` adds the
/// registered one.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "caftan/rl/environment.hpp"
#include "caftan/rl/random.hpp"

namespace caftan::rl {

/// Angle (rad, 0 = upright), angular velocity (rad/s).
using PendulumState = std::array<double, 2>;

/// Observations are cosine and sine of the angle, and the angular velocity, [3]; an action is a torque in -2 .. 2.
/// Never terminates. Source: gymnasium.envs.classic_control.PendulumEnv. NumPy 2 rounds the cost of a torque to
/// float32; here, as with NumPy 1, all is double.
class Pendulum final : public Environment {
 public:
  Pendulum();

  const EnvironmentSpec& spec() const noexcept override { return spec_; }
  FirstObservation reset(std::uint64_t seed) override;
  FirstObservation reset() override;
  Result<Transition> step_continuous(std::span<const float> action) override;

  /// Returns the state in double precision.
  const PendulumState& state() const noexcept { return state_; }

 private:
  std::span<const float> observe() noexcept;

  EnvironmentSpec spec_;
  Pcg64 random_{0};
  PendulumState state_{};
  std::array<float, 3> observation_{};
  bool started_ = false;
};

}  // namespace caftan::rl
