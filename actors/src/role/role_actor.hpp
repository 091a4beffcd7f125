/// The actor that hosts one role object on its worker: constructs it, sets it as the value of its reference, runs it if
/// it drives, and reports to the run how that ended. It never blocks: user code runs on the object's strand.
#pragma once

#include <memory>
#include <variant>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/event_based_actor.hpp>

#include "caftan/base/result.hpp"
#include "caftan/rpc/hosted_object.hpp"

namespace caftan::actors {

class RoleHost;

namespace role_event {
struct Begin {};
struct Constructed {
  std::shared_ptr<Result<std::shared_ptr<rpc::HostedObject>>> role;
};
struct Returned {
  std::shared_ptr<Result<void>> outcome;
};
}  // namespace role_event

struct RoleEvent {
  std::variant<role_event::Begin, role_event::Constructed, role_event::Returned> event;
};

class RoleActor final : public caf::event_based_actor {
 public:
  RoleActor(caf::actor_config& config, std::shared_ptr<RoleHost> host);
  caf::behavior make_behavior() override;
  const char* name() const override { return "role_actor"; }

 private:
  void on_event(RoleEvent& event);

  std::shared_ptr<RoleHost> host_;
};

}  // namespace caftan::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::actors::RoleEvent)
