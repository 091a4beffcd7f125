#include "caftan/rl/environment.hpp"

#include <array>
#include <utility>

#include "caftan/rl/cartpole.hpp"

namespace caftan::rl {
namespace {

struct Registration {
  std::string_view id;
  int max_steps;
  double solved_at;
};

constexpr std::array kCartPoles = {
    Registration{"CartPole-v0", 200, 195.0},
    Registration{"CartPole-v1", 500, 475.0},
};

}  // namespace

TimeLimit::TimeLimit(std::unique_ptr<Environment> inner, int max_steps)
    : inner_(std::move(inner)), spec_(inner_->spec()) {
  spec_.max_steps = max_steps;
  steps_ = max_steps;  // a step before the first reset is refused, like one after the end of an episode
}

std::span<const float> TimeLimit::reset(std::uint64_t seed) {
  steps_ = 0;
  return inner_->reset(seed);
}

std::span<const float> TimeLimit::reset() {
  steps_ = 0;
  return inner_->reset();
}

Result<Transition> TimeLimit::step(int action) {
  if (steps_ >= spec_.max_steps) {
    return Error(Errc::bad_arguments, spec_.id + ": a step after the episode's end; reset first");
  }
  auto taken = inner_->step(action);
  if (!taken) return taken;
  ++steps_;
  if (steps_ >= spec_.max_steps) taken->truncated = true;
  return taken;
}

Result<std::unique_ptr<Environment>> make_environment(std::string_view id) {
  std::string known;
  for (const Registration& registered : kCartPoles) {
    if (registered.id == id) {
      CartPoleOptions options;
      options.id = registered.id;
      options.solved_at = registered.solved_at;
      return std::unique_ptr<Environment>(
          std::make_unique<TimeLimit>(std::make_unique<CartPole>(std::move(options)), registered.max_steps));
    }
    known += (known.empty() ? "" : ", ") + std::string(registered.id);
  }
  return Error(Errc::bad_arguments, "no environment '" + std::string(id) + "' (there are: " + known + ")");
}

}  // namespace caftan::rl
