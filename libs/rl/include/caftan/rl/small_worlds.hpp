/// Two environments for tests, in which a policy that learns is seen to learn within a second: GridWorld and Catch.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "caftan/rl/environment.hpp"
#include "caftan/rl/random.hpp"

namespace caftan::rl {

/// A field of 5 x 5 cells with a goal. Actions move right (0), up (1), left (2), down (3); each step costs 1, and the
/// episode ends at the goal. Observations are x and y of the walker and of the goal, each -1 .. 1, [4]. The shortest
/// way has 1 to 8 steps.
class GridWorld final : public Environment {
 public:
  GridWorld();

  const EnvironmentSpec& spec() const noexcept override { return spec_; }
  FirstObservation reset(std::uint64_t seed) override;
  FirstObservation reset() override;
  Result<Transition> step(int action) override;

 private:
  bool is_at_goal() const noexcept { return places_[0] == places_[2] && places_[1] == places_[3]; }
  std::span<const float> observe() noexcept;

  EnvironmentSpec spec_;
  Pcg64 random_{0};
  std::array<int, 4> places_{};  // before the first reset the walker is at the goal: the episode has ended
  std::array<float, 4> observation_{};
};

/// A ball falls through 10 rows of 5 columns; the paddle in the last row moves left (0), not (1), right (2). After 9
/// steps the reward is 1 if the paddle is where the ball is, else -1; 0 before. Observations are the cells, row by row:
/// 1 for ball and paddle, [50]. Source: bsuite's catch (Osband et al. 2019).
class Catch final : public Environment {
 public:
  Catch();

  const EnvironmentSpec& spec() const noexcept override { return spec_; }
  FirstObservation reset(std::uint64_t seed) override;
  FirstObservation reset() override;
  Result<Transition> step(int action) override;

 private:
  static constexpr int kRows = 10;
  static constexpr int kColumns = 5;

  std::span<const float> observe() noexcept;

  EnvironmentSpec spec_;
  Pcg64 random_{0};
  int row_ = kRows - 1;
  int column_ = 0;
  int paddle_ = kColumns / 2;
  std::array<float, kRows * kColumns> observation_{};
};

}  // namespace caftan::rl
