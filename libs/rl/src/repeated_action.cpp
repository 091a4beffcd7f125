#include "caftan/rl/repeated_action.hpp"

#include <utility>

namespace caftan::rl {

RepeatedAction::RepeatedAction(std::unique_ptr<Environment> inner, int times)
    : inner_(std::move(inner)), times_(times), spec_(inner_->spec()) {
  spec_.max_steps = (spec_.max_steps + times - 1) / times;
}

Result<Transition> RepeatedAction::repeat(const std::function<Result<Transition>()>& step) const {
  double reward = 0;
  for (int i = 0;; ++i) {
    auto taken = step();
    if (!taken) return taken;
    reward += taken->reward;
    taken->reward = reward;
    if (taken->ended() || i + 1 == times_) return taken;
  }
}

Result<Transition> RepeatedAction::step(int action) {
  return repeat([&] { return inner_->step(action); });
}

Result<Transition> RepeatedAction::step_continuous(std::span<const float> action) {
  return repeat([&] { return inner_->step_continuous(action); });
}

}  // namespace caftan::rl
