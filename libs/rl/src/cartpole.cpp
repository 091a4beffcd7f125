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

EnvironmentSpec make_spec(CartPoleOptions options, int max_steps) {
  return {.id = std::move(options.id),
          .observation_size = 4,
          .actions = 2,
          .max_steps = max_steps,
          .solved_at = options.solved_at};
}

/// The order of operations is Gymnasium's: with another order the last digits would differ, and after some hundred
/// steps the episodes.
inline void integrate(CartPoleState& state, double force, bool semi_implicit) noexcept {
  auto& [x, x_dot, theta, theta_dot] = state;
  const double cosine = std::cos(theta);
  const double sine = std::sin(theta);
  const double temp = (force + kPoleMassLength * (theta_dot * theta_dot) * sine) / kTotalMass;
  const double theta_acc =
      (kGravity * sine - cosine * temp) / (kHalfLength * (4.0 / 3.0 - kPoleMass * (cosine * cosine) / kTotalMass));
  const double x_acc = temp - kPoleMassLength * theta_acc * cosine / kTotalMass;
  if (semi_implicit) {
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

inline bool has_ended(const CartPoleState& state) noexcept {
  return state[0] < -kPositionLimit || state[0] > kPositionLimit || state[2] < -kAngleLimit || state[2] > kAngleLimit;
}

inline double reward_of(bool ended, bool sutton_barto) noexcept { return sutton_barto ? (ended ? -1.0 : 0.0) : 1.0; }

void draw_start(CartPoleState& state, Pcg64& random) noexcept {
  for (double& value : state) value = random.uniform(-kStartRange, kStartRange);
}

inline void observe(const CartPoleState& state, float* out) noexcept {
  for (std::size_t i = 0; i < state.size(); ++i) out[i] = static_cast<float>(state[i]);
}

}  // namespace

CartPole::CartPole(CartPoleOptions options)
    : spec_(make_spec(options, 0)),
      semi_implicit_(options.semi_implicit),
      sutton_barto_reward_(options.sutton_barto_reward) {}

FirstObservation CartPole::reset(std::uint64_t seed) {
  random_ = Pcg64(seed);
  return reset();
}

FirstObservation CartPole::reset() {
  draw_start(state_, random_);
  ended_ = false;
  observe(state_, observation_.data());
  return std::span<const float>(observation_);
}

Result<Transition> CartPole::step(int action) {
  if (ended_) return step_after_end(spec_);
  if (auto fits = check_action(spec_, action); !fits) return fits.error();
  integrate(state_, action == 1 ? kForce : -kForce, semi_implicit_);
  ended_ = has_ended(state_);
  observe(state_, observation_.data());
  return Transition{
      .observation = observation_, .reward = reward_of(ended_, sutton_barto_reward_), .terminated = ended_};
}

CartPoles::CartPoles(CartPoleOptions options, std::size_t n, int max_steps)
    : spec_(make_spec(options, max_steps)),
      semi_implicit_(options.semi_implicit),
      sutton_barto_reward_(options.sutton_barto_reward),
      states_(n),
      steps_(n),
      random_(n, Pcg64(0)),
      buffers_(n, 4) {}

void CartPoles::begin_episode(std::size_t i) {
  draw_start(states_[i], random_[i]);
  steps_[i] = 0;
  observe(states_[i], &buffers_.observations[4 * i]);
}

Result<std::span<const float>> CartPoles::reset(std::uint64_t seed) {
  for (std::size_t i = 0; i < size(); ++i) {
    random_[i] = Pcg64(seed + i);
    begin_episode(i);
  }
  started_ = true;
  return std::span<const float>(buffers_.observations);
}

Result<VectorStep> CartPoles::step(std::span<const std::int32_t> actions) {
  if (auto fit = check_actions(spec_, size(), actions); !fit) return fit.error();
  if (!started_) return step_after_end(spec_);
  for (std::size_t i = 0; i < size(); ++i) {
    CartPoleState& state = states_[i];
    integrate(state, actions[i] == 1 ? kForce : -kForce, semi_implicit_);
    const bool terminated = has_ended(state);
    const bool truncated = ++steps_[i] >= spec_.max_steps;
    buffers_.rewards[i] = reward_of(terminated, sutton_barto_reward_);
    buffers_.terminated[i] = terminated ? 1 : 0;
    buffers_.truncated[i] = truncated ? 1 : 0;
    if (terminated || truncated) {
      observe(state, &buffers_.last_observations[4 * i]);
      begin_episode(i);
    } else {
      observe(state, &buffers_.observations[4 * i]);
    }
  }
  return buffers_.view();
}

Result<VectorStep> CartPoles::step_continuous(std::span<const float> actions) {
  return check_actions(spec_, size(), actions).error();  // actions are discrete
}

}  // namespace caftan::rl
