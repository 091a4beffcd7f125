#include "optim/optimizer_service.hpp"

#include <utility>

#include <caf/send.hpp>

#include "caftan/actors/worker.hpp"
#include "caftan/optim/custom_algorithm.hpp"
#include "caftan/remote/internal/actor_host.hpp"
#include "caftan/rpc/registry.hpp"
#include "optim/optimizer_actor.hpp"
#include "service/member_ports.hpp"

namespace caftan::actors {

namespace {

class OptimizerActorMailbox final : public optim::OptimizerMailbox {
 public:
  explicit OptimizerActorMailbox(caf::actor actor) : actor_(std::move(actor)) {}
  ~OptimizerActorMailbox() override { caf::anon_send(actor_, OptimizerEvent{optimizer_event::Finish{}}); }
  void send(optim::OptimizerRequest request) override {
    caf::anon_send(
        actor_,
        OptimizerEvent{optimizer_event::Requested{std::make_shared<optim::OptimizerRequest>(std::move(request))}});
  }

 private:
  const caf::actor actor_;
};

Result<RRef<optim::RemoteOptimizer>> make_optimizer(Worker& worker, const optim::OptimizerSpec& asked) {
  MemberPorts& ports = MemberPorts::of(worker);
  optim::OptimizerSpec spec = asked;
  for (auto& group : spec.groups) {
    if (Result<void> known = optim::resolve(group.algorithm, ports.registry()); !known) return known.error();
  }
  std::vector<std::shared_ptr<rpc::HostedObject>> objects;
  for (const auto& group : spec.groups) {
    auto of_group = optim::wait_for_parameters(group.parameters);
    if (!of_group) return of_group.error();
    objects.insert(objects.end(), of_group->begin(), of_group->end());
  }
  auto optimizer = optim::OwnedOptimizer::make(spec, objects);
  if (!optimizer) return optimizer.error();
  const auto all = (*optimizer)->parameters();
  std::vector<at::Tensor> parameters(all.begin(), all.end());
  caf::actor actor = ports.actor_host().spawn(optimizer_actor, &ports.executor(), *std::move(optimizer));
  return worker.make_rref(optim::RemoteOptimizer(std::move(parameters), std::move(objects), ports.registry(),
                                                 std::make_unique<OptimizerActorMailbox>(std::move(actor))));
}

}  // namespace

void OptimizerService::register_with(Registry& registry, remote::MessageRegistry&) {
  using optim::RemoteOptimizer;
  registry.add(optim::kMakeOptimizer, &make_optimizer);
  registry.add<RemoteOptimizer>("caftan.optimizer.remote")
      .method<&RemoteOptimizer::step>("step")
      .method<&RemoteOptimizer::step_with>("step_with")
      .method<&RemoteOptimizer::prepare>("prepare")
      .method<&RemoteOptimizer::prepare_with>("prepare_with")
      .method<&RemoteOptimizer::commit>("commit")
      .method<&RemoteOptimizer::search>("search")
      .method<&RemoteOptimizer::abort>("abort")
      .method<&RemoteOptimizer::save>("save")
      .method<&RemoteOptimizer::cut>("cut")
      .method<&RemoteOptimizer::cut_bulk>("cut_bulk")
      .method<&RemoteOptimizer::stage_bulk>("stage_bulk")
      .method<&RemoteOptimizer::stage_state>("stage_state")
      .method<&RemoteOptimizer::stage_group>("stage_group")
      .method<&RemoteOptimizer::drop_state>("drop_state")
      .method<&RemoteOptimizer::take_state>("take_state");
}

}  // namespace caftan::actors
