#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "caftan/rl/checked_environment.hpp"
#include "caftan/rl/random.hpp"
#include "caftan/rl/trajectory.hpp"

namespace caftan::rl {
namespace {

Error broken(std::string_view rule, const EnvironmentSpec& spec, const std::string& what) {
  return user_error("environment.rule", std::string(rule) + ", environment '" + spec.id + "': " + what);
}

Result<Transition> random_step(Environment& environment, Pcg64& random, Trajectory& record,
                               std::span<const float> observation) {
  const EnvironmentSpec& spec = environment.spec();
  if (!spec.is_continuous()) {
    const int action = static_cast<int>(random.uniform() * spec.actions);
    record.append(observation, action);
    return environment.step(action);
  }
  std::vector<float> action;
  for (std::size_t i = 0; i < spec.action_size(); ++i) {
    const float low = std::max(spec.action_low[i], -1e3F);
    action.push_back(static_cast<float>(random.uniform(low, std::min(spec.action_high[i], 1e3F))));
  }
  record.append(observation, std::span<const float>(action));
  return environment.step_continuous(action);
}

/// EN-4: a step that is not allowed now.
Result<void> refuses_a_step(Environment& environment, const std::string& when) {
  const EnvironmentSpec& spec = environment.spec();
  const auto taken = spec.is_continuous() ? environment.step_continuous(spec.action_low) : environment.step(0);
  if (!taken && taken.error().code() == Errc::bad_arguments) return {};
  return broken("EN-4", spec, "a step " + when + " is not refused with bad_arguments");
}

/// EN-5: actions that the environment does not have.
Result<void> refuses_actions(Environment& environment) {
  const EnvironmentSpec& spec = environment.spec();
  const std::vector<float> too_long(spec.action_size() + 1, 0.0F);
  const std::vector<Result<Transition>> refused = {environment.step(-1), environment.step(spec.actions),
                                                   environment.step_continuous(too_long)};
  for (const auto& taken : refused) {
    if (taken || taken.error().code() != Errc::bad_arguments) {
      return broken("EN-5", spec, "an action that it does not have is not refused with bad_arguments");
    }
  }
  return {};
}

/// Plays the episode that has begun with `first`.
/// @param disturb  whether refused actions stand between the steps
Result<Trajectory> play(Environment& environment, std::span<const float> first, Pcg64 random, int most_steps,
                        bool disturb) {
  const EnvironmentSpec& spec = environment.spec();
  Trajectory record;
  std::vector<float> observation(first.begin(), first.end());
  while (static_cast<int>(record.steps()) < most_steps) {
    if (disturb) {
      if (auto refused = refuses_actions(environment); !refused) return refused.error();
    }
    const auto taken = random_step(environment, random, record, observation);
    if (!taken) return taken.error();
    record.append_outcome(*taken);
    observation = record.last_observation;
    const auto steps = static_cast<int>(record.steps());
    const bool at_limit = spec.max_steps > 0 && steps >= spec.max_steps;
    if (at_limit && !taken->truncated) {
      return broken("EN-6", spec, "step " + std::to_string(steps) + " reaches max_steps and is not truncated");
    }
    if (taken->truncated && spec.max_steps > 0 && !at_limit) {
      return broken("EN-6", spec, "step " + std::to_string(steps) + " is truncated before max_steps");
    }
    if (!taken->ended()) continue;
    if (auto refused = refuses_a_step(environment, "after the end of the episode"); !refused) return refused.error();
    break;
  }
  return record;
}

bool are_equal(const Trajectory& a, const Trajectory& b) {
  return a.observations == b.observations && a.rewards == b.rewards && a.last_observation == b.last_observation &&
         a.terminated == b.terminated && a.truncated == b.truncated;
}

}  // namespace

Result<void> check_environment(const MakeEnvironment& make, const CheckOptions& options) {
  const auto one = make_checked(make);
  if (!one) return one.error();
  const auto other = make_checked(make);
  if (!other) return other.error();
  const EnvironmentSpec& spec = (*one)->spec();
  if (!(spec == (*other)->spec())) return broken("EN-1", spec, "two of them have different specs");
  // The wrapper refuses by itself; the environment alone shall do so, too.
  const auto alone = make();
  if (!alone) return alone.error();
  if (auto refused = refuses_a_step(**alone, "before the first reset"); !refused) return refused.error();
  for (int episode = 0; episode < options.episodes; ++episode) {
    const bool seeded = episode % 2 == 0;  // EN-7: the others begin with the next numbers
    const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(episode);
    const Pcg64 actions = make_stream({seed, 1});
    std::vector<Trajectory> records;
    for (Environment* environment : {one->get(), other->get(), alone->get()}) {
      const auto first = seeded ? environment->reset(seed) : environment->reset();
      if (!first) return first.error();
      auto record = play(*environment, *first, actions, options.most_steps, environment == alone->get());
      if (!record) return record.error();
      records.push_back(*std::move(record));
    }
    if (!are_equal(records[0], records[1])) {
      return broken(seeded ? "EN-3" : "EN-7", spec, "equal seeds and actions do not give equal episodes");
    }
    if (!are_equal(records[0], records[2])) {
      return broken("EN-5", spec, "actions that were refused have changed the episode");
    }
  }
  return {};
}

}  // namespace caftan::rl
