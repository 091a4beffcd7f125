/// MountainCar: an engine too weak for the hill swings a car up, with three actions or a continuous force. Without a
/// time limit: `make_environment` adds the registered one.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "caftan/rl/environment.hpp"
#include "caftan/rl/random.hpp"

namespace caftan::rl {

/// Position, velocity (per step).
using MountainCarState = std::array<double, 2>;

/// Actions push left (0), not (1), right (2); each step costs 1. Observations are the state as float32, [2].
/// Source: gymnasium.envs.classic_control.MountainCarEnv; Moore 1990.
class MountainCar final : public Environment {
 public:
  MountainCar();

  const EnvironmentSpec& spec() const noexcept override { return spec_; }
  FirstObservation reset(std::uint64_t seed) override;
  FirstObservation reset() override;
  Result<Transition> step(int action) override;

  /// Returns the state in double precision; observations round it.
  const MountainCarState& state() const noexcept { return state_; }

 private:
  std::span<const float> observe() noexcept;

  EnvironmentSpec spec_;
  Pcg64 random_{0};
  MountainCarState state_{};
  std::array<float, 2> observation_{};
  bool ended_ = true;
};

/// An action is a force in -1 .. 1; its square costs, the goal gives 100. Observations are the state, [2].
/// Source: gymnasium.envs.classic_control.Continuous_MountainCarEnv. It keeps the state in float32 between steps, as
/// here; with NumPy 2 a step within computes in float32, too: here, as with NumPy 1, in double.
class MountainCarContinuous final : public Environment {
 public:
  MountainCarContinuous();

  const EnvironmentSpec& spec() const noexcept override { return spec_; }
  FirstObservation reset(std::uint64_t seed) override;
  FirstObservation reset() override;
  Result<Transition> step_continuous(std::span<const float> action) override;

  /// Returns the state: double precision after a reset, rounded to float32 after a step.
  const MountainCarState& state() const noexcept { return state_; }

 private:
  std::span<const float> observe() noexcept;

  EnvironmentSpec spec_;
  Pcg64 random_{0};
  MountainCarState state_{};
  std::array<float, 2> observation_{};
  bool ended_ = true;
};

}  // namespace caftan::rl
