/// The actor that replies to messages of contexts that are not open at this worker, so that the senders do not wait for
/// a reply in vain. A worker has one such actor.
#pragma once

#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include "autograd/autograd_messages.hpp"
#include "autograd/autograd_ports.hpp"

namespace caftan::actors {

/// Only a name: which contexts are open is known to the worker.
struct ClosedContextsState {
  static constexpr const char* name = "closed_contexts_actor";
};

using ClosedContextsActor = caf::stateful_actor<ClosedContextsState>;

/// The behaviour of a ClosedContextsActor. @param ports  outlives the actor
caf::behavior closed_contexts_actor(ClosedContextsActor* self, ClosedContextsPorts* ports);

}  // namespace caftan::actors
