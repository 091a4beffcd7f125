/// Acrobot: two links swing up by a torque at the joint between them. Without a time limit: `make_environment` adds the
/// registered one.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "caftan/rl/environment.hpp"
#include "caftan/rl/random.hpp"

namespace caftan::rl {

/// Angle of the first link (rad, 0 = hanging), angle of the second relative to the first, and both angular velocities.
using AcrobotState = std::array<double, 4>;

/// Actions are the torques -1 (0), 0 (1), 1 (2). Observations are cosine and sine of the first angle, of the second,
/// and both velocities, [6]. Each step costs 1 but the last. Source: gymnasium.envs.classic_control.AcrobotEnv with the
/// dynamics of the book (Sutton and Barto 2018).
class Acrobot final : public Environment {
 public:
  Acrobot();

  const EnvironmentSpec& spec() const noexcept override { return spec_; }
  FirstObservation reset(std::uint64_t seed) override;
  FirstObservation reset() override;
  Result<Transition> step(int action) override;

  /// Returns the state in double precision; after a reset rounded to float32, as Gymnasium's.
  const AcrobotState& state() const noexcept { return state_; }

 private:
  std::span<const float> observe() noexcept;

  EnvironmentSpec spec_;
  Pcg64 random_{0};
  AcrobotState state_{};
  std::array<float, 6> observation_{};
  bool ended_ = true;
};

}  // namespace caftan::rl
