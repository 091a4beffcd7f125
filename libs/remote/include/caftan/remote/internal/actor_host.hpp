/// The CAF actor system of one Worker: Caftan's scheduler in the scheduler slot, Caftan's module in the network slot,
/// no threads of its own. All code that depends on CAF's internals is in this library.
#pragma once

#include <atomic>
#include <memory>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/execution_unit.hpp>

#include "caftan/base/ids.hpp"
#include "caftan/remote/internal/address.hpp"
#include "caftan/remote/internal/message_registry.hpp"
#include "caftan/transport/poller.hpp"

namespace caftan::transport {
class Session;
}

namespace caftan::remote {

/// An actor with a name (is_name) that is the same in every session: its messages name it as their sender.
class NamedActor {
 public:
  virtual Address wire_name() const noexcept = 0;

 protected:
  ~NamedActor() = default;
};

/// Finds the actors that have names. Implemented by the worker.
class NamedActors {
 public:
  virtual ~NamedActors() = default;
  /// Returns the local actor of that name, made now if it is a virtual one; null if there is none or if the peer of
  /// `session` may not reach it. Threads: those that read frames; must not block.
  virtual caf::strong_actor_ptr find_named(const transport::Session& session, const Address& name) = 0;
  /// Returns the actor that gets the messages to a name without an actor; null = they are dropped.
  virtual caf::strong_actor_ptr stand_in(const Address& name) = 0;
};

class ActorHost {
 public:
  /// @param self  gives the system a node id that no other life of any worker has
  /// The executor and the registry must outlive the host.
  ActorHost(transport::PollingExecutor& executor, const MessageRegistry& messages, const WorkerLife& self);
  /// Waits until all actors have ended. Precondition: each actor that was spawned or exported was asked to quit.
  ~ActorHost();

  caf::actor_system& system() noexcept { return *system_; }

  /// Spawns an actor of class A. Threads: any.
  template <class A, class... Args>
  caf::actor spawn(Args&&... arguments) {
    caf::actor actor = system_->spawn<A, caf::hidden>(std::forward<Args>(arguments)...);
    forget_logger();
    return actor;
  }
  /// Spawns an actor whose behaviour is a function, as CAF has it: `behavior(self, arguments...)` runs as the actor's
  /// first act. It gets the arguments as copies, so what it refers to is passed as a pointer. Threads: any.
  template <class Function, class... Args>
  caf::actor spawn(Function* behavior, Args&&... arguments) {
    caf::actor actor = system_->spawn<caf::hidden>(behavior, std::forward<Args>(arguments)...);
    forget_logger();
    return actor;
  }
  /// Waits until every actor has read all its messages, at most until `until`; returns whether all have.
  bool wait_until_idle(base::TimePoint until);
  /// Returns how many actors run or wait for a runner.
  std::size_t busy_actors() const;
  caf::execution_unit& unit() noexcept { return *unit_; }
  transport::PollingExecutor& executor() noexcept { return executor_; }
  const MessageRegistry& messages() const noexcept { return messages_; }

  /// Sets the object that finds named actors. Call it before the first session; null = no actor has a name. `named`
  /// must outlive the host.
  void set_named_actors(NamedActors* named) noexcept { named_ = named; }
  NamedActors* named_actors() const noexcept { return named_; }

 private:
  class Config;

  /// Removes a pointer to the system's logger that CAF leaves in a thread which spawns an actor. The system's
  /// destructor waits until all such pointers are gone, so a runner must not keep one.
  static void forget_logger();

  transport::PollingExecutor& executor_;
  const MessageRegistry& messages_;
  NamedActors* named_ = nullptr;
  std::unique_ptr<Config> config_;
  std::unique_ptr<caf::actor_system> system_;
  std::unique_ptr<caf::execution_unit> unit_;
};

/// Turn an Error into an error of CAF, and back: code, worker and text travel in the context of CAF's error.
caf::error to_caf(const Error& error);
Error from_caf(const caf::error& error, const caf::actor_system& system);

}  // namespace caftan::remote
