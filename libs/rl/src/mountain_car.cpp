#include "caftan/rl/mountain_car.hpp"

#include <algorithm>
#include <cmath>

namespace caftan::rl {
namespace {

constexpr double kCarForce = 0.001;
constexpr double kCarPower = 0.0015;
constexpr double kCarHillGravity = 0.0025;
constexpr double kCarMostSpeed = 0.07;
constexpr double kCarLeftEnd = -1.2;
constexpr double kCarRightEnd = 0.6;
constexpr double kCarGoal = 0.5;
constexpr double kCarContinuousGoal = 0.45;

void draw_start(MountainCarState& state, Pcg64& random) noexcept { state = {random.uniform(-0.6, -0.4), 0.0}; }

/// Moves the car by its velocity; the left end stops it.
void move(MountainCarState& state) noexcept {
  auto& [position, velocity] = state;
  velocity = std::clamp(velocity, -kCarMostSpeed, kCarMostSpeed);
  position = std::clamp(position + velocity, kCarLeftEnd, kCarRightEnd);
  if (position == kCarLeftEnd && velocity < 0) velocity = 0;
}

std::array<float, 2> rounded(const MountainCarState& state) noexcept {
  return {static_cast<float>(state[0]), static_cast<float>(state[1])};
}

}  // namespace

MountainCar::MountainCar() : spec_{.id = "MountainCar", .observation_size = 2, .actions = 3, .solved_at = -110.0} {}

FirstObservation MountainCar::reset(std::uint64_t seed) {
  random_ = Pcg64(seed);
  return reset();
}

FirstObservation MountainCar::reset() {
  draw_start(state_, random_);
  ended_ = false;
  return observe();
}

Result<Transition> MountainCar::step(int action) {
  if (ended_) return step_after_end(spec_);
  if (auto fits = check_action(spec_, action); !fits) return fits.error();
  state_[1] += (action - 1) * kCarForce + std::cos(3 * state_[0]) * -kCarHillGravity;
  move(state_);
  ended_ = state_[0] >= kCarGoal && state_[1] >= 0;
  return Transition{.observation = observe(), .reward = -1.0, .terminated = ended_};
}

std::span<const float> MountainCar::observe() noexcept { return observation_ = rounded(state_); }

MountainCarContinuous::MountainCarContinuous()
    : spec_{.id = "MountainCarContinuous",
            .observation_size = 2,
            .solved_at = 90.0,
            .action_low = {-1.0F},
            .action_high = {1.0F}} {}

FirstObservation MountainCarContinuous::reset(std::uint64_t seed) {
  random_ = Pcg64(seed);
  return reset();
}

FirstObservation MountainCarContinuous::reset() {
  draw_start(state_, random_);
  ended_ = false;
  return observe();
}

Result<Transition> MountainCarContinuous::step_continuous(std::span<const float> action) {
  if (ended_) return step_after_end(spec_);
  if (auto fits = check_action(spec_, action); !fits) return fits.error();
  const double asked = action[0];
  const double force = std::clamp(asked, -1.0, 1.0);
  state_[1] += force * kCarPower - kCarHillGravity * std::cos(3 * state_[0]);
  move(state_);
  ended_ = state_[0] >= kCarContinuousGoal && state_[1] >= 0;
  const double reward = (ended_ ? 100.0 : 0.0) - asked * asked * 0.1;  // what was asked for costs, not what was given
  const std::span<const float> observation = observe();
  state_ = {observation[0], observation[1]};
  return Transition{.observation = observation, .reward = reward, .terminated = ended_};
}

std::span<const float> MountainCarContinuous::observe() noexcept { return observation_ = rounded(state_); }

}  // namespace caftan::rl
