/// The actor of one OwnerRRef: the value, and, in a `ForkTable`, what still refers to it. Monitors count (RR-7).
#pragma once

#include <map>
#include <optional>
#include <vector>

#include <caf/event_based_actor.hpp>

#include "caftan/rpc/internal/fork_table.hpp"
#include "rref/rref_messages.hpp"

namespace caftan::actors {

class RRefHost;

class OwnerRRefActor final : public caf::event_based_actor {
 public:
  OwnerRRefActor(caf::actor_config& config, RRefHost& host, RRefId id);
  caf::behavior make_behavior() override;
  void on_exit() override;
  const char* name() const override { return "owner_rref_actor"; }

 private:
  void on_event(OwnerEvent& event);
  void on_down(const caf::down_msg& down);
  /// @param known  the proxy of the fork that the actions are about, if the event had one
  void perform(rpc::OwnerActions actions, const caf::strong_actor_ptr& known = nullptr);
  void set_value(Result<std::shared_ptr<rpc::HostedObject>> value);
  void accept(std::shared_ptr<ValueJob> job);
  void start(const std::shared_ptr<ValueJob>& job);

  struct Watched {
    rpc::PeerSession session;
    caf::strong_actor_ptr proxy;  // the watcher holds the handle, or the down would never come (RR-7)
  };

  RRefHost& host_;
  const RRefId id_;
  rpc::ForkTable table_;
  std::map<ForkId, Watched> watched_;
  std::map<caf::actor_id, ForkId> by_proxy_;
  std::optional<Result<std::shared_ptr<rpc::HostedObject>>> value_;
  std::vector<std::shared_ptr<ValueJob>> waiting_;
};

}  // namespace caftan::actors
