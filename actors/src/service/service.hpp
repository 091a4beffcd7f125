/// `Service`: something that a worker offers its peers besides calls: references, autograd contexts, optimizers,
/// modules. A new one is a folder with a class of this kind and a line in worker/services.cpp.
#pragma once

#include <cstddef>
#include <functional>

#include <caf/actor_control_block.hpp>

#include "caftan/base/error.hpp"

namespace caftan {
class Registry;
struct StopReport;
namespace remote {
struct Address;
class MessageRegistry;
}  // namespace remote
namespace transport {
class Session;
}  // namespace transport
}  // namespace caftan

namespace caftan::actors {

/// A service overrides `register_with` and the other functions that it needs.
class Service {
 public:
  virtual ~Service() = default;

  /// Registers the functions that peers may call and the messages that cross between workers. Called once, first.
  virtual void register_with(Registry& registry, remote::MessageRegistry& messages) = 0;

  /// As remote::NamedActors: returns the local actor of that name, null if this service has none.
  /// Threads: those that read frames. Must not block.
  virtual caf::strong_actor_ptr find_named(const transport::Session&, const remote::Address&) { return nullptr; }
  /// Returns the actor that gets messages to a name of this service which no actor has, null if there is none.
  virtual caf::strong_actor_ptr stand_in(const remote::Address&) { return nullptr; }

  /// A session of this worker was added: `MemberPorts::session_with` returns it. Also called once the start is over and
  /// workers that were lost meanwhile are known to be lost for good.
  virtual void on_session_start() {}
  /// A session has ended. @param is_last  no session with that life of the peer is left: the life is lost
  virtual void on_session_end(const transport::Session&, bool /*is_last*/) {}

  /// Ends everything that this service keeps, and adds the numbers to `given_up`. The worker leaves; it
  /// calls this before it closes its sessions, and again when none is left.
  virtual void end_all(const Error&, StopReport& /*given_up*/) {}
  /// Calls `done` once nothing of this service uses the worker any more, inside this call if that is so already. An
  /// empty `done` withdraws the one before it.
  virtual void when_empty(std::function<void()> done) {
    if (done) done();
  }
  /// Returns how much is left.
  virtual std::size_t in_use() const { return 0; }
};

}  // namespace caftan::actors
