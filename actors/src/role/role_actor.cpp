#include "role/role_actor.hpp"

#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include "caftan/actors/role_context.hpp"
#include "caftan/base/overloaded.hpp"
#include "caftan/rpc/user_code.hpp"

namespace caftan::actors {

caf::behavior role_actor(RoleActor* self, std::shared_ptr<const RoleParts> parts) {
  self->state.set_parts(std::move(parts));
  return {[self](RoleEvent& event) { self->state.on_event(event); }};
}

void RoleActorState::on_event(RoleEvent& event) {
  std::visit(base::Overloaded{
                 [this](role_event::Begin&) { construct(); },
                 [this](role_event::Constructed& e) { set_object(std::move(*e.role)); },
                 [this](role_event::Returned& e) { report_end(*e.outcome); },
             },
             event.event);
}

void RoleActorState::construct() {
  parts_->ports->executor().post([parts = parts_, actor = caf::actor_cast<caf::actor>(self_)] {
    auto context = std::make_shared<RoleContext>(parts->role);
    parts->role->reporter->send(run::Making{});
    auto object = rpc::run_user_code(parts->role->facts.worker, parts->definition->name, [&] {
      return parts->definition->make(context, parts->config, parts->rref, parts->ports->executor());
    });
    caf::anon_send(actor, RoleEvent{role_event::Constructed{
                              std::make_shared<Result<std::shared_ptr<rpc::HostedObject>>>(std::move(object))}});
  });
}

void RoleActorState::set_object(Result<std::shared_ptr<rpc::HostedObject>> object) {
  RolePorts& ports = *parts_->ports;
  RoleState& role = *parts_->role;
  if (object) role.reporter->send(run::Made{});  // sent before a call can reach the object (RN-15)
  if (!ports.set_value(object)) return ports.set_idle();
  if (!object) {
    role.log.error("the constructor failed: " + object.error().message());
    role.reporter->send(run::Failed{object.error().at(role.facts.worker)});
    return ports.set_idle();
  }
  if (!parts_->definition->run) return ports.set_idle();
  run(*std::move(object));
}

void RoleActorState::run(std::shared_ptr<rpc::HostedObject> object) {
  parts_->ports->executor().post([parts = parts_, object = std::move(object),
                                  actor = caf::actor_cast<caf::actor>(self_)] {
    object->strand().run([parts, object, actor] {
      auto outcome = rpc::run_user_code(parts->role->facts.worker, parts->definition->name + ".run",
                                        [&] { return parts->definition->run(*object, parts->role->stop.get_token()); });
      caf::anon_send(actor, RoleEvent{role_event::Returned{std::make_shared<Result<void>>(std::move(outcome))}});
    });
  });
}

void RoleActorState::report_end(const Result<void>& outcome) {
  RoleState& role = *parts_->role;
  const bool is_done = outcome && !role.stop.stop_requested();
  if (!outcome) role.log.error("run() returned an error: " + outcome.error().message());
  role.reporter->send(run::Returned{outcome ? Error() : outcome.error().at(role.facts.worker)});
  if (is_done) parts_->ports->report_returned();
  parts_->ports->set_idle();
}

}  // namespace caftan::actors
