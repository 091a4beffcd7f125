#include "caftan/nn/replay.hpp"

#include <map>
#include <string>
#include <utility>

#include "caftan/nn/gradient_mean.hpp"
#include "caftan/nn/internal/version_store.hpp"
#include "shared/step_rates.hpp"

namespace caftan::nn {
namespace {

using Gradients = std::vector<at::Tensor>;

/// Returns how many contributions read each version.
std::map<ModelVersion, std::uint32_t> readers_of(const StepLog& log) {
  std::map<ModelVersion, std::uint32_t> readers;
  for (const StepRecord& step : log.steps) {
    for (const Contribution& c : step.contributions) ++readers[c.read];
  }
  return readers;
}

Result<Gradients> gradients_at(const Contribution& contribution, VersionStore& store, const GradientsOf& gradients) {
  const Result<std::span<const at::Tensor>> parameters = store.parameters(contribution.read);
  if (!parameters) return parameters.error();
  Result<Gradients> found = gradients(contribution, *parameters);
  store.unpin(contribution.read);
  return found;
}

Result<void> replay_step(const StepRecord& step, VersionStore& store, optim::LocalOptimizer& optimizer,
                         const GradientsOf& gradients) {
  std::vector<Gradients> all;
  for (const Contribution& contribution : step.contributions) {
    Result<Gradients> found = gradients_at(contribution, store, gradients);
    if (!found) return found.error();
    all.push_back(*std::move(found));
  }
  const Result<Gradients> mean = gradient_mean(all);
  if (!mean) return mean.error();
  if (step.rates) {
    if (Result<void> fit = set_rates(optimizer, *step.rates); !fit) return fit;
  }
  const Result<std::size_t> stepped = optimizer.step(*mean);
  if (!stepped) return stepped.error();
  store.on_step(step.step);
  return {};
}

}  // namespace

Result<void> replay(const StepLog& log, optim::LocalOptimizer& optimizer, const GradientsOf& gradients) {
  const std::map<ModelVersion, std::uint32_t> readers = readers_of(log);
  const std::span<const at::Tensor> parameters = optimizer.parameters();
  VersionStore store(std::vector<at::Tensor>(parameters.begin(), parameters.end()), log.first);
  ModelVersion version = log.first;
  for (const StepRecord& step : log.steps) {
    Result<void> outcome;
    if (const auto at = readers.find(version); at != readers.end()) outcome = store.pin(version, at->second);
    if (outcome) outcome = replay_step(step, store, optimizer, gradients);
    if (!outcome) {
      const Error& why = outcome.error();
      return Error(why.code(), why.worker(), "step " + std::to_string(step.step.value) + ": " + why.text())
          .of_kind(why.kind());
    }
    version = step.step;
  }
  return {};
}

}  // namespace caftan::nn
