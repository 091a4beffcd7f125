/// The CAF actor system of one Worker: our coordinator in the scheduler slot, our module in the network slot, no
/// threads of its own. Everything that knows CAF's internals is in this library.
#pragma once

#include <atomic>
#include <memory>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/execution_unit.hpp>

#include "caftan/base/ids.hpp"
#include "caftan/transport/message_registry.hpp"
#include "caftan/transport/poller.hpp"

namespace caftan::transport {

class ActorHost {
 public:
  /// @param self  who this worker is; gives the system a node id that no other life of any worker has
  /// The executor and the registry must outlive the host.
  ActorHost(PollingExecutor& executor, const MessageRegistry& messages, WorkerId self, Incarnation incarnation);
  /// Waits until all actors have ended. Whoever spawned or exported some has told them to quit before.
  ~ActorHost();

  caf::actor_system& system() noexcept { return *system_; }

  /// Spawns an actor of class A. Threads: any.
  template <class A, class... Args>
  caf::actor spawn(Args&&... arguments) {
    caf::actor actor = system_->spawn<A, caf::hidden>(std::forward<Args>(arguments)...);
    forget_logger();
    return actor;
  }
  caf::execution_unit& unit() noexcept { return *unit_; }
  PollingExecutor& executor() noexcept { return executor_; }
  const MessageRegistry& messages() const noexcept { return messages_; }

 private:
  class Config;

  /// CAF leaves a counted pointer to the system's logger in the thread that spawns, and the system's destructor waits
  /// until all are gone: a runner must not keep one.
  static void forget_logger();

  PollingExecutor& executor_;
  const MessageRegistry& messages_;
  std::unique_ptr<Config> config_;
  std::unique_ptr<caf::actor_system> system_;
  std::unique_ptr<caf::execution_unit> unit_;
};

/// caf::error <-> Error. An Error keeps its code, worker and text in the CAF error's context.
caf::error to_caf(const Error& error);
Error from_caf(const caf::error& error, const caf::actor_system& system);

}  // namespace caftan::transport
