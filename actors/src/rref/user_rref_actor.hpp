/// The actor of one fork: a user's reference. The owner counts it by its monitor; its parent and its pending children
/// are linked to it (L1). Its end is the end of the fork.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include "caftan/rpc/internal/user_fork.hpp"
#include "rref/rref_messages.hpp"
#include "rref/rref_ports.hpp"

namespace caftan::actors {

class UserRRefState {
 public:
  static constexpr const char* name = "user_rref_actor";

  explicit UserRRefState(caf::event_based_actor* self) : self_(self) {}
  /// Fails what still waits for the owner to confirm the fork, and reports the fork's end to the worker. Done here,
  /// since an actor that ends by `kill` calls no handler.
  ~UserRRefState();
  UserRRefState(const UserRRefState&) = delete;
  UserRRefState& operator=(const UserRRefState&) = delete;

  /// Links the fork with its parent and asks the owner to count it, where it has to be asked.
  void start(UserRRefPorts& ports, rpc::UserFork fork, const ForkRequested& request, const WorkerLife& owner,
             caf::strong_actor_ptr parent);
  void on_event(UserEvent& event);
  void on_reply(const ForkAnswered& reply);
  void on_accepted(const ForkAccepted& accepted);
  void on_exit_message(const caf::exit_msg& exit);

 private:
  /// @param known  the proxy of the child that the actions are about, if the event had one
  void perform(rpc::UserActions actions, const caf::strong_actor_ptr& known = nullptr);
  void request_fork();

  caf::event_based_actor* const self_;
  UserRRefPorts* ports_ = nullptr;
  std::optional<rpc::UserFork> fork_;  // set by start
  ForkRequested request_;
  WorkerLife owner_;
  caf::strong_actor_ptr parent_;
  std::map<ForkId, std::pair<rpc::PeerSession, caf::strong_actor_ptr>> children_;
};

using UserRRefActor = caf::stateful_actor<UserRRefState>;

/// The behaviour of a UserRRefActor.
/// @param ports   outlives the actor
/// @param owner   the life of the worker that owns the value
/// @param parent  the proxy of the parent's actor, null unless the fork has a parent
caf::behavior user_rref_actor(UserRRefActor* self, UserRRefPorts* ports, rpc::UserFork fork,
                              const ForkRequested& request, const WorkerLife& owner, caf::strong_actor_ptr parent);

}  // namespace caftan::actors
