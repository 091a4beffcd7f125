// The environment: a walker goes along a ditch, over a meadow of 6 x 4 cells, from one corner to the next.
#pragma once

#include <algorithm>
#include <array>
#include <caftan/rl/environment.hpp>
#include <caftan/rl/random.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

class Meadow final : public caftan::rl::Environment {
 public:
  static constexpr int kWidth = 6;
  static constexpr int kHeight = 4;
  static constexpr int kActions = 4;  // right, up, left, down

  const caftan::rl::EnvironmentSpec& spec() const noexcept override { return spec_; }

  caftan::rl::FirstObservation reset(std::uint64_t seed) override {
    random_ = caftan::rl::Pcg64(seed);
    return reset();
  }
  caftan::rl::FirstObservation reset() override {
    x_ = y_ = 0;
    ended_ = false;
    return observe();
  }

  caftan::Result<caftan::rl::Transition> step(int action) override {
    if (ended_) return caftan::Error(caftan::Errc::bad_arguments, "the episode has ended: reset first");
    if (action < 0 || action >= kActions) return caftan::Error(caftan::Errc::bad_arguments, "no such action");
    const bool is_windy = random_.uniform() < 0.05;
    move(is_windy ? static_cast<int>(random_.uniform() * kActions) : action);
    ended_ = y_ == 0 && x_ > 0;
    const bool is_in_ditch = ended_ && x_ < kWidth - 1;
    return caftan::rl::Transition{.observation = observe(), .reward = is_in_ditch ? -20.0 : -1.0, .terminated = ended_};
  }

 private:
  void move(int action) {
    constexpr std::array<int, kActions> kRight{1, 0, -1, 0};
    constexpr std::array<int, kActions> kUp{0, 1, 0, -1};
    x_ = std::clamp(x_ + kRight[static_cast<std::size_t>(action)], 0, kWidth - 1);
    y_ = std::clamp(y_ + kUp[static_cast<std::size_t>(action)], 0, kHeight - 1);
  }
  std::span<const float> observe() {
    observation_[0] = static_cast<float>(y_ * kWidth + x_);  // the number of the cell
    return observation_;
  }

  caftan::rl::EnvironmentSpec spec_{.id = "Meadow", .observation_size = 1, .actions = kActions};
  caftan::rl::Pcg64 random_{0};
  int x_ = 0;
  int y_ = 0;
  bool ended_ = true;
  std::array<float, 1> observation_{};
};
