// What the actors of distributed autograd ask of their worker; `AutogradHost` implements it.
#pragma once

#include <caf/actor_control_block.hpp>

#include "caftan/autograd/messages.hpp"
#include "caftan/base/ids.hpp"
#include "caftan/base/result.hpp"
#include "caftan/remote/internal/address.hpp"

namespace caftan::actors {

/// For the actor of a RecvFunction. Threads: any, all methods; none blocks.
class RecvFunctionPorts {
 public:
  virtual ~RecvFunctionPorts() = default;
  /// Returns the proxy of a named actor there; null if there is no session with that life.
  virtual caf::strong_actor_ptr proxy(const WorkerLife& peer, const remote::Address& name) = 0;
  /// A gradient of this pass was not sent, for it is beyond a limit.
  virtual void gradient_not_sent(const autograd::PassId& pass, const Error& error) = 0;
};

}  // namespace caftan::actors
