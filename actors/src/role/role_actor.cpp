#include "role/role_actor.hpp"

#include "role/role_host.hpp"

namespace caftan::actors {

RoleActor::RoleActor(caf::actor_config& config, std::shared_ptr<RoleHost> host)
    : caf::event_based_actor(config), host_(std::move(host)) {}

caf::behavior RoleActor::make_behavior() {
  return {[this](RoleEvent& event) { on_event(event); }};
}

void RoleActor::on_event(RoleEvent& event) {
  const caf::actor self = caf::actor_cast<caf::actor>(this);
  if (std::holds_alternative<role_event::Begin>(event.event)) return host_->construct(self);
  if (auto* constructed = std::get_if<role_event::Constructed>(&event.event)) {
    return host_->constructed(std::move(*constructed->role), self);
  }
  host_->returned(std::move(*std::get<role_event::Returned>(event.event).outcome));
}

}  // namespace caftan::actors
