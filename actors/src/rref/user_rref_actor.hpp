/// The actor of one fork: a user's reference. The owner counts it by its monitor; its parent and its pending children
/// are linked to it (L1). Its end is the end of the fork.
#pragma once

#include <map>
#include <optional>

#include <caf/event_based_actor.hpp>

#include "caftan/rpc/internal/user_fork.hpp"
#include "rref/rref_messages.hpp"

namespace caftan::actors {

class RRefHost;
class UserHandle;

class UserRRefActor final : public caf::event_based_actor {
 public:
  /// @param owner   the life of the worker that owns the value
  /// @param parent  the proxy of the parent's actor, null unless the fork has a parent
  UserRRefActor(caf::actor_config& config, RRefHost& host, rpc::UserFork fork, ForkRequested request, WorkerLife owner,
                caf::strong_actor_ptr parent);
  caf::behavior make_behavior() override;
  void on_exit() override;
  const char* name() const override { return "user_rref_actor"; }

 private:
  void on_event(UserEvent& event);
  void on_exit_message(const caf::exit_msg& exit);
  /// @param known  the proxy of the child that the actions are about, if the event had one
  void perform(rpc::UserActions actions, const caf::strong_actor_ptr& known = nullptr);
  void request_fork();

  RRefHost& host_;
  rpc::UserFork fork_;
  const ForkRequested request_;
  const WorkerLife owner_;
  caf::strong_actor_ptr parent_;
  std::map<ForkId, std::pair<rpc::PeerSession, caf::strong_actor_ptr>> children_;
};

}  // namespace caftan::actors
