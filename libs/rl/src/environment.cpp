#include "caftan/rl/environment.hpp"

#include <cmath>
#include <utility>

#include "caftan/rl/environments.hpp"

namespace caftan::rl {

Error step_after_end(const EnvironmentSpec& spec) {
  return Error(Errc::bad_arguments, spec.id + ": a step after the episode's end; reset first");
}

Result<void> check_action(const EnvironmentSpec& spec, int action) {
  if (spec.is_continuous()) {
    return Error(Errc::bad_arguments, spec.id + ": actions are " + std::to_string(spec.action_size()) +
                                          " floats, not numbers: call step_continuous");
  }
  if (action >= 0 && action < spec.actions) return {};
  return Error(Errc::bad_arguments,
               spec.id + ": action " + std::to_string(action) + " is not in 0 .. " + std::to_string(spec.actions - 1));
}

Result<void> check_action(const EnvironmentSpec& spec, std::span<const float> action) {
  if (!spec.is_continuous()) {
    return Error(Errc::bad_arguments,
                 spec.id + ": actions are 0 .. " + std::to_string(spec.actions - 1) + ", not floats: call step");
  }
  if (action.size() != spec.action_size()) {
    return Error(Errc::bad_arguments, spec.id + ": an action has " + std::to_string(spec.action_size()) +
                                          " floats, not " + std::to_string(action.size()));
  }
  for (std::size_t i = 0; i < action.size(); ++i) {
    if (!std::isfinite(action[i])) {
      return Error(Errc::bad_arguments, spec.id + ": part " + std::to_string(i) + " of the action is not finite");
    }
  }
  return {};
}

Result<Transition> Environment::step(int action) {
  if (auto fits = check_action(spec(), action); !fits) return fits.error();
  return Error(Errc::bad_arguments, spec().id + ": its class has discrete actions and does not override step");
}

Result<Transition> Environment::step_continuous(std::span<const float> action) {
  if (auto fits = check_action(spec(), action); !fits) return fits.error();
  return Error(Errc::bad_arguments,
               spec().id + ": its class has continuous actions and does not override step_continuous");
}

TimeLimit::TimeLimit(std::unique_ptr<Environment> inner, int max_steps)
    : inner_(std::move(inner)), spec_(inner_->spec()) {
  spec_.max_steps = max_steps;
  steps_ = max_steps;  // a step before the first reset is refused, like one after the end of an episode
}

FirstObservation TimeLimit::begun(FirstObservation first) {
  steps_ = first ? 0 : spec_.max_steps;
  return first;
}

FirstObservation TimeLimit::reset(std::uint64_t seed) { return begun(inner_->reset(seed)); }

FirstObservation TimeLimit::reset() { return begun(inner_->reset()); }

Result<Transition> TimeLimit::step(int action) {
  if (is_over()) return step_after_end(spec_);
  return counted(inner_->step(action));
}

Result<Transition> TimeLimit::step_continuous(std::span<const float> action) {
  if (is_over()) return step_after_end(spec_);
  return counted(inner_->step_continuous(action));
}

Result<Transition> TimeLimit::counted(Result<Transition> taken) {
  if (!taken) return taken;
  ++steps_;
  if (is_over()) taken->truncated = true;
  return taken;
}

Result<std::unique_ptr<Environment>> make_environment(std::string_view id) { return Environments().make(id); }

}  // namespace caftan::rl
