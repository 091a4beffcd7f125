#include "actor_critic/evaluator.hpp"

#include <utility>

#include "actor_critic/learning.hpp"
#include "agents/greedy.hpp"
#include "caftan/caftan.hpp"

namespace caftan::actor_critic {

Evaluator::Evaluator(RoleContext& context, Config config) : context_(context), config_(std::move(config)) {}

Result<EnvironmentFacts> Evaluator::open(agents::EnvironmentChoice choice) {
  const auto count = static_cast<std::size_t>(config_.episodes);
  auto made = agents::make_environments(context_.environments(), choice, count, config_.gymnasium);
  if (!made) return made.error();
  environments_ = *std::move(made);
  return facts_of(environments_->spec(), count);
}

Result<std::vector<double>> Evaluator::evaluate(agents::PolicyShape shape, at::Tensor weights, std::uint64_t number) {
  if (!environments_) return Error(Errc::bad_arguments, "this evaluator has no environments yet: open comes first");
  const auto values = to_weights(weights);
  if (!values) return values.error();
  agents::Policy policy(shape);
  if (auto loaded = policy.load(*values); !loaded) return loaded.error();
  const std::uint64_t seed = evaluation_seed(context_.seed("episodes"), number);
  return agents::play_greedily(*environments_, policy, seed, config_.most_steps);
}

}  // namespace caftan::actor_critic
