#include "caftan/rl/vector_environment.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace caftan::rl {
namespace {

Error wrong_count(const EnvironmentSpec& spec, std::size_t wanted, std::size_t given) {
  return Error(Errc::bad_arguments, spec.id + ": a step of this vector environment takes " + std::to_string(wanted) +
                                        " values as actions, not " + std::to_string(given));
}

Error wrong_width(const EnvironmentSpec& spec, const Transition& taken) {
  return user_error("environment.shape", "the observation has " + std::to_string(taken.observation.size()) +
                                             " values, its spec says " + std::to_string(spec.observation_size));
}

Error of_environment(std::size_t i, const Error& error) {
  auto cause = error.cause() ? std::make_shared<const Error>(*error.cause()) : nullptr;
  return Error(error.code(), error.worker(), "environment " + std::to_string(i) + ": " + error.text(), std::move(cause))
      .of_kind(error.kind());
}

}  // namespace

VectorBuffers::VectorBuffers(std::size_t n, std::size_t observation_size)
    : observations(n * observation_size),
      rewards(n),
      terminated(n),
      truncated(n),
      last_observations(n * observation_size) {}

Result<void> check_actions(const EnvironmentSpec& spec, std::size_t n, std::span<const std::int32_t> actions) {
  if (!spec.is_continuous() && actions.size() != n) return wrong_count(spec, n, actions.size());
  // One pass without a branch, since nearly all actions are good.
  bool good = !spec.is_continuous();
  for (const std::int32_t action : actions) good &= action >= 0 && action < spec.actions;
  if (good) return {};
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (auto fits = check_action(spec, actions[i]); !fits) return of_environment(i, fits.error());
  }
  return check_action(spec, 0);
}

Result<void> check_actions(const EnvironmentSpec& spec, std::size_t n, std::span<const float> actions) {
  const std::size_t size = spec.action_size();
  if (!spec.is_continuous()) return check_action(spec, actions);
  if (actions.size() != n * size) return wrong_count(spec, n * size, actions.size());
  for (std::size_t i = 0; i < n; ++i) {
    if (auto fits = check_action(spec, actions.subspan(i * size, size)); !fits) return of_environment(i, fits.error());
  }
  return {};
}

SequentialEnvironments::SequentialEnvironments(std::vector<std::unique_ptr<Environment>> environments)
    : environments_(std::move(environments)), buffers_(size(), spec().observation_size) {}

Result<std::span<const float>> SequentialEnvironments::reset(std::uint64_t seed) {
  started_ = false;
  const auto width = static_cast<std::ptrdiff_t>(spec().observation_size);
  auto out = buffers_.observations.begin();
  for (std::size_t i = 0; i < size(); ++i, out += width) {
    const auto first = environments_[i]->reset(seed + i);
    if (!first) return refused(i, first.error());
    std::copy(first->begin(), first->end(), out);
  }
  started_ = true;
  return std::span<const float>(buffers_.observations);
}

Result<VectorStep> SequentialEnvironments::step(std::span<const std::int32_t> actions) {
  if (auto fit = check_actions(spec(), size(), actions); !fit) return fit.error();
  if (!started_) return step_after_end(spec());
  for (std::size_t i = 0; i < size(); ++i) {
    if (auto taken = take(i, environments_[i]->step(actions[i])); !taken) return taken.error();
  }
  return buffers_.view();
}

Result<VectorStep> SequentialEnvironments::step_continuous(std::span<const float> actions) {
  if (auto fit = check_actions(spec(), size(), actions); !fit) return fit.error();
  if (!started_) return step_after_end(spec());
  const std::size_t width = spec().action_size();
  for (std::size_t i = 0; i < size(); ++i) {
    auto taken = take(i, environments_[i]->step_continuous(actions.subspan(i * width, width)));
    if (!taken) return taken.error();
  }
  return buffers_.view();
}

Result<void> SequentialEnvironments::take(std::size_t i, const Result<Transition>& taken) {
  if (!taken) return refused(i, taken.error());
  if (taken->observation.size() != spec().observation_size) return refused(i, wrong_width(spec(), *taken));
  const auto start = static_cast<std::ptrdiff_t>(i * spec().observation_size);
  buffers_.rewards[i] = taken->reward;
  buffers_.terminated[i] = taken->terminated ? 1 : 0;
  buffers_.truncated[i] = taken->truncated ? 1 : 0;
  if (!taken->ended()) {
    std::copy(taken->observation.begin(), taken->observation.end(), buffers_.observations.begin() + start);
    return {};
  }
  std::copy(taken->observation.begin(), taken->observation.end(), buffers_.last_observations.begin() + start);
  const auto first = environments_[i]->reset();
  if (!first) return refused(i, first.error());
  std::copy(first->begin(), first->end(), buffers_.observations.begin() + start);
  return {};
}

/// Some environments have taken the step and others have not: only a reset brings these together again.
Error SequentialEnvironments::refused(std::size_t i, const Error& error) {
  started_ = false;
  return of_environment(i, error);
}

}  // namespace caftan::rl
