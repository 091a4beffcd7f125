#include "caftan/rl/small_worlds.hpp"

#include <algorithm>
#include <cstddef>

namespace caftan::rl {
namespace {

constexpr int kSide = 5;

int draw_below(int limit, Pcg64& random) noexcept { return static_cast<int>(random.uniform() * limit); }

}  // namespace

GridWorld::GridWorld() : spec_{.id = "GridWorld", .observation_size = 4, .actions = 4, .solved_at = -4.0} {}

FirstObservation GridWorld::reset(std::uint64_t seed) {
  random_ = Pcg64(seed);
  return reset();
}

FirstObservation GridWorld::reset() {
  do {
    for (int& place : places_) place = draw_below(kSide, random_);
  } while (is_at_goal());
  return observe();
}

Result<Transition> GridWorld::step(int action) {
  if (is_at_goal()) return step_after_end(spec_);
  if (auto fits = check_action(spec_, action); !fits) return fits.error();
  int& moved = places_[action % 2 == 0 ? 0 : 1];
  moved = std::clamp(moved + (action < 2 ? 1 : -1), 0, kSide - 1);
  return Transition{.observation = observe(), .reward = -1.0, .terminated = is_at_goal()};
}

std::span<const float> GridWorld::observe() noexcept {
  constexpr float kHalf = (kSide - 1) / 2.0F;
  for (std::size_t i = 0; i < places_.size(); ++i) observation_[i] = (static_cast<float>(places_[i]) - kHalf) / kHalf;
  return observation_;
}

Catch::Catch() : spec_{.id = "Catch", .observation_size = kRows * kColumns, .actions = 3, .solved_at = 0.9} {}

FirstObservation Catch::reset(std::uint64_t seed) {
  random_ = Pcg64(seed);
  return reset();
}

FirstObservation Catch::reset() {
  row_ = 0;
  column_ = draw_below(kColumns, random_);
  paddle_ = kColumns / 2;
  return observe();
}

Result<Transition> Catch::step(int action) {
  if (row_ == kRows - 1) return step_after_end(spec_);
  if (auto fits = check_action(spec_, action); !fits) return fits.error();
  paddle_ = std::clamp(paddle_ + action - 1, 0, kColumns - 1);
  ++row_;
  const bool ended = row_ == kRows - 1;
  const double reward = !ended ? 0.0 : paddle_ == column_ ? 1.0 : -1.0;
  return Transition{.observation = observe(), .reward = reward, .terminated = ended};
}

std::span<const float> Catch::observe() noexcept {
  observation_.fill(0);
  observation_[static_cast<std::size_t>(row_ * kColumns + column_)] = 1;
  observation_[static_cast<std::size_t>((kRows - 1) * kColumns + paddle_)] = 1;
  return observation_;
}

}  // namespace caftan::rl
