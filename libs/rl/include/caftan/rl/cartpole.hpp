/// CartPole: a pole on a cart that is pushed left (action 0) or right (1). The same bits as Gymnasium's with the C
/// library's sine and cosine. Without a time limit: `make_environment` adds the registered one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "caftan/rl/environment.hpp"
#include "caftan/rl/random.hpp"
#include "caftan/rl/vector_environment.hpp"

namespace caftan::rl {

/// What distinguishes the variants of CartPole.
struct CartPoleOptions {
  std::string id = "CartPole";
  std::optional<double> solved_at{};
  /// Whether velocities are integrated before positions; false: explicit Euler, as registered.
  bool semi_implicit = false;
  /// Whether the reward is 0 on each step and -1 on the last; false: 1 on each step with the last.
  bool sutton_barto_reward = false;
};

/// Cart position (m), cart velocity (m/s), pole angle (rad, 0 = upright), angular velocity of the pole (rad/s).
using CartPoleState = std::array<double, 4>;

/// Observations are the state as float32, [4].
/// Source: gymnasium.envs.classic_control.CartPoleEnv; Barto, Sutton and Anderson 1983.
class CartPole final : public Environment {
 public:
  CartPole() : CartPole(CartPoleOptions()) {}
  explicit CartPole(CartPoleOptions options);

  const EnvironmentSpec& spec() const noexcept override { return spec_; }
  FirstObservation reset(std::uint64_t seed) override;
  FirstObservation reset() override;
  Result<Transition> step(int action) override;

  /// Returns the state in double precision; observations round it.
  const CartPoleState& state() const noexcept { return state_; }

  /// Writes or reads the episode and the random numbers, not the options: a CartPole of the same options goes on with
  /// the same bits.
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    std::array<std::uint64_t, 4> random = random_.state();
    archive& state_& random& ended_;
    random_.restore(random);
  }

 private:
  EnvironmentSpec spec_;
  bool semi_implicit_;
  bool sutton_barto_reward_;
  Pcg64 random_{0};
  CartPoleState state_{};
  std::array<float, 4> observation_{};
  bool ended_ = true;
};

/// n CartPoles that are stepped in one loop without virtual calls; each has the bits of a CartPole of its own.
class CartPoles final : public VectorEnvironment {
 public:
  /// @param n          environments, at least 1
  /// @param max_steps  an episode is truncated at this step, at least 1
  CartPoles(CartPoleOptions options, std::size_t n, int max_steps);

  const EnvironmentSpec& spec() const noexcept override { return spec_; }
  std::size_t size() const noexcept override { return states_.size(); }
  Result<std::span<const float>> reset(std::uint64_t seed) override;
  Result<VectorStep> step(std::span<const std::int32_t> actions) override;
  Result<VectorStep> step_continuous(std::span<const float> actions) override;

 private:
  void begin_episode(std::size_t i);

  EnvironmentSpec spec_;
  bool semi_implicit_;
  bool sutton_barto_reward_;
  std::vector<CartPoleState> states_;
  std::vector<int> steps_;
  std::vector<Pcg64> random_;
  VectorBuffers buffers_;
  bool started_ = false;
};

}  // namespace caftan::rl
