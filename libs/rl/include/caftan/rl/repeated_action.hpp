/// `RepeatedAction`: an environment that takes each action several times, so that an episode needs fewer decisions.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "caftan/rl/environment.hpp"

namespace caftan::rl {

/// Takes each action `times` times, or until the episode ends, and adds up the rewards: returns are those of the inner
/// environment. Source: the action repeat of DQN (Mnih et al. 2015) and IMPALA.
class RepeatedAction final : public Environment {
 public:
  /// @param inner  not null
  /// @param times  at least 1
  RepeatedAction(std::unique_ptr<Environment> inner, int times);

  /// Its max_steps is the number of decisions of an episode.
  const EnvironmentSpec& spec() const noexcept override { return spec_; }
  FirstObservation reset(std::uint64_t seed) override { return inner_->reset(seed); }
  FirstObservation reset() override { return inner_->reset(); }
  Result<Transition> step(int action) override;
  Result<Transition> step_continuous(std::span<const float> action) override;

 private:
  Result<Transition> repeat(const std::function<Result<Transition>()>& step) const;

  std::unique_ptr<Environment> inner_;
  int times_;
  EnvironmentSpec spec_;
};

}  // namespace caftan::rl
