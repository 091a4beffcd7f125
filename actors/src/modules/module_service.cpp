#include "modules/module_service.hpp"

#include <utility>

#include <caf/send.hpp>

#include "caftan/actors/worker.hpp"
#include "caftan/nn/internal/module_control.hpp"
#include "caftan/nn/internal/owned_shared.hpp"
#include "caftan/nn/internal/script_creation.hpp"
#include "caftan/nn/internal/shared_control.hpp"
#include "caftan/optim/custom_algorithm.hpp"
#include "caftan/remote/internal/actor_host.hpp"
#include "caftan/rpc/registry.hpp"
#include "modules/module_actor.hpp"
#include "modules/shared_module_actor.hpp"
#include "service/member_ports.hpp"

namespace caftan::actors {

namespace {

class Mailbox final : public nn::ModuleMailbox {
 public:
  explicit Mailbox(caf::actor actor) : actor_(std::move(actor)) {}
  ~Mailbox() override { caf::anon_send(actor_, ModuleEvent{module_event::Finish{}}); }
  void send(std::shared_ptr<nn::ModuleRequest> request) override {
    caf::anon_send(actor_, ModuleEvent{module_event::Requested{std::move(request)}});
  }

 private:
  const caf::actor actor_;
};

Result<nn::ModuleControl> serve_module(Worker& worker, const RRef<nn::ServedModule>& module) {
  auto object = rpc::wait_for_local(module.handle(), {});
  if (!object) return object.error();
  auto owned = nn::OwnedModule::make(*std::move(object), worker);
  if (!owned) return owned.error();
  MemberPorts& ports = MemberPorts::of(worker);
  caf::actor actor = ports.actor_host().spawn(module_actor, &ports.executor(), *std::move(owned));
  return nn::ModuleControl(std::make_unique<Mailbox>(std::move(actor)));
}

class SharedModuleMailbox final : public nn::SharedMailbox {
 public:
  explicit SharedModuleMailbox(caf::actor actor) : actor_(std::move(actor)) {}
  ~SharedModuleMailbox() override { caf::anon_send(actor_, SharedModuleMessage{}); }
  void send(nn::SharedEvent event) override {
    caf::anon_send(actor_, SharedModuleMessage{std::make_shared<nn::SharedEvent>(std::move(event))});
  }

 private:
  const caf::actor actor_;
};

Result<nn::SharedControl> share_module(Worker& worker, const RRef<nn::ServedModule>& module,
                                       const nn::SharedOptions& asked) {
  MemberPorts& ports = MemberPorts::of(worker);
  nn::SharedOptions options = asked;
  if (Result<void> known = optim::resolve(options.algorithm, ports.registry()); !known) return known.error();
  auto object = rpc::wait_for_local(module.handle(), {});
  if (!object) return object.error();
  auto owned = nn::OwnedShared::make(*std::move(object), module, options, worker);
  if (!owned) return owned.error();
  caf::actor actor = ports.actor_host().spawn(shared_module_actor, &ports.executor(), *owned);
  return nn::SharedControl(*std::move(owned), std::make_shared<SharedModuleMailbox>(std::move(actor)));
}

Result<nn::ServedModule> make_script_module(Worker& worker, const std::string& name) {
  return nn::make_script_module(MemberPorts::of(worker).registry(), name);
}

}  // namespace

void ModuleService::register_with(Registry& registry, remote::MessageRegistry&) {
  using nn::ModuleControl;
  registry.add(nn::kServeModule, &serve_module);
  registry.add(nn::kShareModule, &share_module);
  registry.add<nn::SharedControl>("caftan.module.shared")
      .method<&nn::SharedControl::join>("join")
      .method<&nn::SharedControl::evaluate>("evaluate")
      .method<&nn::SharedControl::status>("status")
      .method<&nn::SharedControl::rates>("rates")
      .method<&nn::SharedControl::save_optimizer>("save_optimizer")
      .method<&nn::SharedControl::load_optimizer>("load_optimizer")
      .method<&nn::SharedControl::save_optimizer_bulk>("save_optimizer_bulk")
      .method<&nn::SharedControl::load_optimizer_bulk>("load_optimizer_bulk");
  registry.add<nn::TrainerSeat>("caftan.module.trainer")
      .method<&nn::TrainerSeat::open>("open")
      .method<&nn::TrainerSeat::step>("step")
      .method<&nn::TrainerSeat::step_with>("step_with");
  registry.add(nn::kMakeScriptModule, &make_script_module);
  nn::add_script_modules(registry);
  registry.add<ModuleControl>("caftan.module.control")
      .method<&ModuleControl::list>("list")
      .method<&ModuleControl::save>("save")
      .method<&ModuleControl::stage>("stage")
      .method<&ModuleControl::take>("take")
      .method<&ModuleControl::to>("to");
  registry.add<nn::StateSource>("caftan.module.source").method<&nn::StateSource::read>("read");
  registry.add<nn::StagedState>("caftan.module.staged").method<&nn::StagedState::put>("put");
}

}  // namespace caftan::actors
