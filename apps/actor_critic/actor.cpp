#include "actor_critic/actor.hpp"

#include <chrono>
#include <deque>
#include <optional>
#include <utility>

#include "actor_critic/learner.hpp"
#include "actor_critic/player.hpp"
#include "caftan/caftan.hpp"

namespace caftan::actor_critic {

Actor::Actor(RoleContext& context, Config config) : context_(context), config_(std::move(config)) {}

Result<EnvironmentFacts> Actor::open(agents::EnvironmentChoice choice) {
  const auto count = static_cast<std::size_t>(config_.environments);
  auto made = agents::make_environments(context_.environments(), choice, count, config_.gymnasium);
  if (!made) return made.error();
  environments_ = *std::move(made);
  return facts_of(environments_->spec(), count);
}

Result<Weights> Actor::wait(Future<Weights> asked) const {
  const std::stop_token stop = context_.stop_token();
  while (!asked.wait_for(std::chrono::milliseconds(100))) {
    if (!stop.stop_requested()) continue;
    asked.cancel();
    return Error(Errc::cancelled, "stopped while it waited for weights");
  }
  return std::move(asked).result();
}

Result<void> Actor::play(RRef<Learner> learner, PlayOrder order) {
  if (!environments_) return Error(Errc::bad_arguments, "this actor has no environments yet: open comes first");
  Player player(std::move(environments_), order.shape, context_.seed("player"));
  const auto patient = learner.with({.timeout = base::Duration(0)});
  std::deque<Future<Weights>> asked;
  std::optional<Weights> weights;
  std::uint64_t played = 0;
  for (;;) {
    asked.push_back(patient.rpc_async<&Learner::weights>(order.actor, played, weights ? weights->version + 1 : 0));
    while (!asked.empty() && (!weights || asked.size() > order.ahead || asked.front().ready())) {
      auto reply = wait(std::move(asked.front()));
      asked.pop_front();
      if (!reply) return reply.error();
      if (reply->is_over) return {};
      if (reply->values.defined()) {
        const auto values = to_weights(reply->values);
        if (!values) return values.error();
        if (auto loaded = player.load(*values); !loaded) return loaded;
      }
      if (!weights || weights->part != reply->part) {
        if (auto begun = player.begin_part(reply->part); !begun) return begun;
      }
      weights = *std::move(reply);
    }
    if (context_.stop_token().stop_requested()) return Error(Errc::cancelled, "stopped while it played");
    auto trajectories = player.play(order.unroll);
    if (!trajectories) return trajectories.error();
    trajectories->actor = order.actor;
    trajectories->version = weights->version;
    if (auto sent = patient.try_tell<&Learner::take>(*trajectories); !sent) return sent;
    ++played;
  }
}

}  // namespace caftan::actor_critic
