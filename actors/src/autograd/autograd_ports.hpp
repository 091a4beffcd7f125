/// What the actors of distributed autograd ask of their worker; `AutogradHost` implements it.
#pragma once

#include <optional>
#include <string>

#include <caf/actor.hpp>
#include <caf/actor_control_block.hpp>

#include "caftan/autograd/internal/messages.hpp"
#include "caftan/autograd/internal/pass_actions.hpp"
#include "caftan/base/executor.hpp"
#include "caftan/base/ids.hpp"
#include "caftan/base/result.hpp"
#include "caftan/remote/internal/address.hpp"

namespace caftan::actors {

/// What the actor of a RecvFunction uses of its worker. Threads: any, all methods; none blocks.
class RecvFunctionPorts {
 public:
  virtual ~RecvFunctionPorts() = default;
  /// Returns the proxy of a named actor there; null if there is no session with that life.
  virtual caf::strong_actor_ptr proxy(const WorkerLife& peer, const remote::Address& name) = 0;
  /// A gradient of this pass was not sent, for it is beyond a limit.
  virtual void gradient_not_sent(const autograd::PassId& pass, const Error& error) = 0;
};

/// What the actor that replies for contexts that are not open uses of its worker. Threads: any, all methods; none
/// blocks.
class ClosedContextsPorts {
 public:
  virtual ~ClosedContextsPorts() = default;
  /// A Release arrived: its contexts are refused for ever (DA-13).
  virtual void learn_released(const WorkerLife& from, const autograd::Release& release) = 0;
  /// Returns the reply to a message of a context that is not open here, if it needs one.
  virtual std::optional<autograd::Send> refuse(const WorkerLife& from, const autograd::PassMessage& message) const = 0;
};

/// What the actor of a context and its graph jobs use of their worker. Threads: any, all methods; none blocks.
class ContextPorts : public ClosedContextsPorts {
 public:
  virtual WorkerLife self() const noexcept = 0;
  virtual const std::string& name() const noexcept = 0;
  virtual base::Executor& executor() = 0;
  virtual void log(const std::string& line) const = 0;
  /// Returns the name of a peer, for errors; empty if this worker has no such peer.
  virtual std::string peer_name(WorkerId peer) = 0;
  /// As RecvFunctionPorts::proxy.
  virtual caf::strong_actor_ptr proxy(const WorkerLife& peer, const remote::Address& name) = 0;

  /// Returns the actor of the message's RecvFunction, made now if there is none.
  virtual caf::actor recv_function(const ContextId& context, AutogradMessageId message) = 0;
  /// A pass is over: its functions' actors go.
  virtual void drop_functions(const ContextId& context) = 0;
  /// Counts the graph of a pass at this worker, which does not end before `job_ends` was called for it.
  virtual void job_begins(const ContextId& context) noexcept = 0;
  virtual void job_ends(const ContextId& context) noexcept = 0;

  /// The context is over: no lookup finds it any more. Returns the range that a Release carries.
  virtual autograd::ReleasedRange context_over(const ContextId& context) = 0;
  /// The context's actor is ending.
  virtual void context_ended(const ContextId& context) = 0;
};

}  // namespace caftan::actors
