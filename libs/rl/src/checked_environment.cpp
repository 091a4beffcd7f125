#include "caftan/rl/checked_environment.hpp"

#include <cmath>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace caftan::rl {
namespace {

/// Calls code of an environment. What it throws becomes the error's text.
template <class F>
auto call(F f, const std::function<Error(const std::string&)>& threw) -> decltype(f()) {
  try {
    return f();
  } catch (const RpcException& thrown) {
    return thrown.error();
  } catch (const std::exception& thrown) {
    return threw(std::string("threw: ") + thrown.what());
  } catch (...) {
    return threw("threw something that is no std::exception");
  }
}

std::string first_difference(const EnvironmentSpec& was, const EnvironmentSpec& is) {
  const auto changed = [](std::string_view field, auto from, auto to) {
    return std::string(field) + " was " + std::to_string(from) + " and is " + std::to_string(to);
  };
  if (was.observation_size != is.observation_size) {
    return changed("observation_size", was.observation_size, is.observation_size);
  }
  if (was.actions != is.actions) return changed("actions", was.actions, is.actions);
  if (was.action_size() != is.action_size()) return changed("action_size", was.action_size(), is.action_size());
  if (was.max_steps != is.max_steps) return changed("max_steps", was.max_steps, is.max_steps);
  if (was.id != is.id) return "id was '" + was.id + "' and is '" + is.id + "'";
  if (was.solved_at != is.solved_at) return "solved_at has changed";
  return "the bounds of actions have changed";
}

/// Returns what is wrong with a spec, or "".
std::string fault_of(const EnvironmentSpec& spec) {
  if (spec.observation_size == 0) return "observation_size is 0";
  if (spec.actions < 0) return "actions is negative";
  if (spec.max_steps < 0) return "max_steps is negative";
  if (spec.action_low.size() != spec.action_high.size()) return "action_low and action_high differ in size";
  if (spec.actions == 0 && spec.action_size() == 0) return "there are neither actions nor bounds of continuous actions";
  if (spec.actions > 0 && spec.action_size() > 0) return "there are actions and bounds of continuous actions";
  for (std::size_t i = 0; i < spec.action_size(); ++i) {
    if (!(spec.action_low[i] <= spec.action_high[i])) return "action_low is above action_high";
  }
  return "";
}

}  // namespace

CheckedEnvironment::CheckedEnvironment(std::unique_ptr<Environment> inner, std::string id)
    : inner_(std::move(inner)), inner_spec_(inner_->spec()), spec_(inner_spec_) {
  if (!id.empty()) spec_.id = std::move(id);
}

FirstObservation CheckedEnvironment::reset(std::uint64_t seed) {
  return begin([&] { return inner_->reset(seed); });
}

FirstObservation CheckedEnvironment::reset() {
  return begin([&] { return inner_->reset(); });
}

FirstObservation CheckedEnvironment::begin(const std::function<FirstObservation()>& reset) {
  steps_ = 0;
  ended_ = true;
  FirstObservation first = call(reset, [&](const std::string& what) { return wrong("environment.threw", what); });
  if (!first) return with_place(first.error());
  if (auto fits = check_spec(); !fits) return fits.error();
  if (auto fits = check_observation(*first); !fits) return fits.error();
  ended_ = false;
  return first;
}

Result<Transition> CheckedEnvironment::step(int action) {
  if (auto fits = check_action(spec_, action); !fits) return fits.error();
  return take([&] { return inner_->step(action); });
}

Result<Transition> CheckedEnvironment::step_continuous(std::span<const float> action) {
  if (auto fits = check_action(spec_, action); !fits) return fits.error();
  return take([&] { return inner_->step_continuous(action); });
}

template <class F>
Result<Transition> CheckedEnvironment::take(F step) {
  if (ended_) return step_after_end(spec_);
  ++steps_;
  ended_ = true;  // until the step is seen to be good
  Result<Transition> taken = call(step, [&](const std::string& what) { return wrong("environment.threw", what); });
  if (!taken) return with_place(taken.error());
  if (auto fits = check_spec(); !fits) return fits.error();
  if (auto fits = check_observation(taken->observation); !fits) return fits.error();
  if (!std::isfinite(taken->reward)) {
    return wrong("environment.not_finite", "the reward is " + std::to_string(taken->reward));
  }
  ended_ = taken->ended();
  return taken;
}

Result<void> CheckedEnvironment::check_observation(std::span<const float> observation) const {
  if (observation.size() != spec_.observation_size) {
    return wrong("environment.shape", "the observation has " + std::to_string(observation.size()) +
                                          " values, its spec says " + std::to_string(spec_.observation_size));
  }
  for (std::size_t i = 0; i < observation.size(); ++i) {
    if (!std::isfinite(observation[i])) {
      return wrong("environment.not_finite",
                   "value " + std::to_string(i) + " of the observation is " + std::to_string(observation[i]));
    }
  }
  return {};
}

Result<void> CheckedEnvironment::check_spec() const {
  if (inner_->spec() == inner_spec_) return {};
  return wrong("environment.spec", "its spec has changed: " + first_difference(inner_spec_, inner_->spec()));
}

Error CheckedEnvironment::wrong(std::string_view kind, const std::string& what) const {
  return user_error(std::string(kind), place() + what);
}

/// Puts the place in front of an error of the environment's own, which may name the environment already.
Error CheckedEnvironment::with_place(const Error& own) const {
  if (own.text().starts_with("environment '" + spec_.id + "'")) return own;
  auto cause = own.cause() ? std::make_shared<const Error>(*own.cause()) : nullptr;
  return Error(own.code(), own.worker(), place() + own.text(), std::move(cause)).of_kind(own.kind());
}

std::string CheckedEnvironment::place() const {
  return "environment '" + spec_.id + "', " + (steps_ == 0 ? "reset" : "step " + std::to_string(steps_)) + ": ";
}

Result<std::unique_ptr<Environment>> make_checked(const MakeEnvironment& make, std::string id) {
  const std::string name = id.empty() ? "an environment" : "environment '" + id + "'";
  auto made = call(make, [&](const std::string& what) {
    return user_error("environment.threw", name + ", when it was made: " + what);
  });
  if (!made) return made;
  if (!*made) return user_error("environment.spec", name + ": its function made none");
  if (std::string fault = fault_of((*made)->spec()); !fault.empty()) {
    return user_error("environment.spec", name + ", its spec: " + fault);
  }
  return std::unique_ptr<Environment>(std::make_unique<CheckedEnvironment>(*std::move(made), std::move(id)));
}

}  // namespace caftan::rl
