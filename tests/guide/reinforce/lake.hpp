// The environment: a boat on a lake of 5 x 5 cells rows to a buoy. The wind carries it to the east now and then.
#pragma once

#include <algorithm>
#include <array>
#include <caftan/rl/environment.hpp>
#include <caftan/rl/random.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

class Lake final : public caftan::rl::Environment {
 public:
  static constexpr int kSize = 5;
  static constexpr int kActions = 4;       // east, north, west, south
  static constexpr int kObservations = 4;  // x and y of the boat, x and y of the buoy, each -1..1

  explicit Lake(double wind) : wind_(wind) {}  // the probability that the wind moves the boat, and not the action

  const caftan::rl::EnvironmentSpec& spec() const noexcept override { return spec_; }

  caftan::rl::FirstObservation reset(std::uint64_t seed) override {
    random_ = caftan::rl::Pcg64(seed);
    return reset();
  }
  caftan::rl::FirstObservation reset() override {
    do {
      for (int& place : places_) place = static_cast<int>(random_.uniform() * kSize);
    } while (is_at_buoy());
    return observe();
  }

  caftan::Result<caftan::rl::Transition> step(int action) override {
    if (is_at_buoy()) return caftan::Error(caftan::Errc::bad_arguments, "the episode has ended: reset first");
    if (action < 0 || action >= kActions) return caftan::Error(caftan::Errc::bad_arguments, "no such action");
    move(random_.uniform() < wind_ ? 0 : static_cast<std::size_t>(action));
    return caftan::rl::Transition{.observation = observe(), .reward = -1, .terminated = is_at_buoy()};
  }

 private:
  bool is_at_buoy() const { return places_[0] == places_[2] && places_[1] == places_[3]; }
  void move(std::size_t direction) {
    constexpr std::array<int, kActions> kEast{1, 0, -1, 0};
    constexpr std::array<int, kActions> kNorth{0, 1, 0, -1};
    places_[0] = std::clamp(places_[0] + kEast[direction], 0, kSize - 1);
    places_[1] = std::clamp(places_[1] + kNorth[direction], 0, kSize - 1);
  }
  std::span<const float> observe() {
    for (std::size_t i = 0; i < places_.size(); ++i) observation_[i] = static_cast<float>(places_[i] - 2) / 2;
    return observation_;
  }

  double wind_;
  caftan::rl::EnvironmentSpec spec_{.id = "Lake", .observation_size = kObservations, .actions = kActions};
  caftan::rl::Pcg64 random_{0};
  std::array<int, kObservations> places_{};  // before the first reset the boat is at the buoy
  std::array<float, kObservations> observation_{};
};
