/// The base of services' actors with names: an actor of CAF's whose behaviour is a function, and that has a name which
/// is the same in every session.
#pragma once

#include <caf/event_based_actor.hpp>

#include "caftan/remote/internal/actor_host.hpp"

namespace caftan::actors {

class NamedBehavior : public caf::event_based_actor, public remote::NamedActor {
 public:
  explicit NamedBehavior(caf::actor_config& config) : caf::event_based_actor(config) {}

  remote::Address wire_name() const noexcept override { return wire_name_; }
  /// Sets the actor's name in every session, by which its messages name their sender. Called by the behaviour, before
  /// the actor sends anything.
  void set_wire_name(const remote::Address& name) noexcept { wire_name_ = name; }

 private:
  remote::Address wire_name_;
};

}  // namespace caftan::actors
