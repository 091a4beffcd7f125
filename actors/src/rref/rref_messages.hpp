/// The messages between the actors of the RRef protocol. The first three cross between workers (registered with the
/// transport); the events stay in one worker. Rules and flows: docs/protocols/rref.md.
#pragma once

#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/allowed_unsafe_message_type.hpp>

#include "caftan/rpc/hosted_object.hpp"
#include "caftan/rpc/internal/creation_ledger.hpp"
#include "caftan/rpc/internal/user_fork.hpp"
#include "caftan/wire/archive.hpp"

namespace caftan::actors {

/// Child -> the owner's worker: count me.
struct ForkRequested {
  RRefId rref;
  rpc::CreationNumber creation;
  ForkId fork;
  ForkId parent;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& rref& creation.connection& creation.number& fork& parent;
  }
};

/// Owner -> child: counted, or why not.
struct ForkAnswered {
  ForkId fork;
  Errc code = Errc::ok;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& fork& code;
  }
};

/// Child -> parent: the owner counts the child, release it.
struct ForkAccepted {
  ForkId child;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& child;
  }
};

/// A request to do something with the value once it exists. Held until then, or refused when the value ends.
class ValueJob {
 public:
  virtual ~ValueJob() = default;
  virtual rpc::Use use() const noexcept = 0;
  /// Returns the life whose call the job is.
  virtual WorkerLife caller() const noexcept = 0;
  /// Threads: a runner. `done` must be called when the value is no longer used.
  virtual void run(Result<std::shared_ptr<rpc::HostedObject>> value, base::Task done) = 0;
  /// Returns whether the job takes its turn in the order in which the jobs of this kind, and all behind it, came
  /// (TL-7).
  virtual bool keeps_order() const noexcept { return false; }
};

/// Events of an owner's actor. A proxy in an event is made before the frame is read on or sent, so that the down of
/// a fork that ends before its owner's actor looks is not lost (RR-2).
namespace owner_event {
struct CreatedBy {
  ForkId fork;
  rpc::PeerSession session;
  caf::strong_actor_ptr proxy;
};
struct CreatedHere {};
struct ValueSet {
  std::shared_ptr<Result<std::shared_ptr<rpc::HostedObject>>> value;
};
struct ValueActor {
  caf::actor actor;
};
struct HandedOver {
  ForkId fork;
  rpc::PeerSession session;
  caf::strong_actor_ptr proxy;
};
struct NotHandedOver {
  ForkId fork;
  rpc::PeerSession session;
};
struct PassedBack {
  ForkId fork;
  ForkId parent;  ///< that the sender holds
  rpc::PeerSession session;
  std::function<void(Result<void>)> reply;
};
struct Requested {
  rpc::ForkRequest request;
  caf::strong_actor_ptr proxy;
};
struct Job {
  std::shared_ptr<ValueJob> job;
};
struct Released {
  rpc::Use use;
};
struct Finish {
  Error reason;
};
}  // namespace owner_event

struct OwnerEvent {
  std::variant<owner_event::CreatedBy, owner_event::CreatedHere, owner_event::ValueSet, owner_event::ValueActor,
               owner_event::HandedOver, owner_event::NotHandedOver, owner_event::PassedBack, owner_event::Requested,
               owner_event::Job, owner_event::Released, owner_event::Finish>
      event;
};

/// Events of a fork's actor.
namespace user_event {
struct CreationAnswered {
  std::shared_ptr<Result<void>> reply;
};
struct ChildHandedOver {
  ForkId child;
  rpc::PeerSession session;
  caf::strong_actor_ptr proxy;  ///< made before the frame leaves
};
struct ChildNotHandedOver {
  ForkId child;
  rpc::PeerSession session;
};
struct OwnerLost {
  rpc::PeerSession session;
};
/// A session with any worker was opened: a fork that could not ask its owner yet tries again.
struct SessionOpened {};
struct Deadline {};
struct HandleDropped {};
struct Finish {
  Error reason;
};
}  // namespace user_event

struct UserEvent {
  std::variant<user_event::CreationAnswered, user_event::ChildHandedOver, user_event::ChildNotHandedOver,
               user_event::OwnerLost, user_event::SessionOpened, user_event::Deadline, user_event::HandleDropped,
               user_event::Finish>
      event;
};

}  // namespace caftan::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::actors::ForkRequested)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::actors::ForkAnswered)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::actors::ForkAccepted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::actors::OwnerEvent)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::actors::UserEvent)
