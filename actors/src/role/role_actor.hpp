/// The actor that hosts one role object on its worker: constructs it, sets it as the value of its reference, runs it if
/// it drives, and reports to the run how that ended. It never blocks: user code runs on the object's strand.
#pragma once

#include <any>
#include <memory>
#include <variant>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include "caftan/actors/role_catalog.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rpc/hosted_object.hpp"
#include "role/role_state.hpp"

namespace caftan::actors {

/// What a role's actor asks of its worker. Threads: any, all methods.
class RolePorts {
 public:
  virtual ~RolePorts() = default;
  /// Returns the executor that runs the role's code.
  virtual base::Executor& executor() = 0;
  /// Makes the outcome of the constructor the value of the role's reference. Returns false if the role was ended.
  virtual bool set_value(const Result<std::shared_ptr<rpc::HostedObject>>& object) = 0;
  /// Reports to the driving workers of other launchers that run() has returned, without an error and not asked to stop
  /// (RN-22).
  virtual void report_returned() = 0;
  /// Neither the role's constructor nor its run() is running any more, and neither will run again.
  virtual void set_idle() = 0;
};

/// What a role is made of. Shared by its actor and by the code of the role that runs, which may outlive the actor.
struct RoleParts {
  std::shared_ptr<RolePorts> ports;
  const RoleDefinition* definition;  ///< outlives the worker
  std::any config;
  std::shared_ptr<RoleState> role;
  RRefId rref;  ///< whose value the object becomes
};

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

class RoleActorState {
 public:
  static constexpr const char* name = "role_actor";

  explicit RoleActorState(caf::event_based_actor* self) : self_(self) {}

  void set_parts(std::shared_ptr<const RoleParts> parts) { parts_ = std::move(parts); }
  void on_event(RoleEvent& event);

 private:
  void construct();
  void set_object(Result<std::shared_ptr<rpc::HostedObject>> object);
  void run(std::shared_ptr<rpc::HostedObject> object);
  void report_end(const Result<void>& outcome);

  caf::event_based_actor* const self_;
  std::shared_ptr<const RoleParts> parts_;
};

using RoleActor = caf::stateful_actor<RoleActorState>;

/// The behaviour of a RoleActor.
caf::behavior role_actor(RoleActor* self, std::shared_ptr<const RoleParts> parts);

}  // namespace caftan::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::actors::RoleEvent)
