/// The messages between the actors of distributed autograd. Pass messages and gradients cross between workers
/// (registered with the transport); events stay in one worker. Flows: docs/protocols/dist_autograd.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>
#include <caf/allowed_unsafe_message_type.hpp>

#include "caftan/autograd/internal/context_host.hpp"
#include "caftan/autograd/internal/messages.hpp"
#include "caftan/autograd/internal/pass_actions.hpp"
#include "caftan/tensor/codec.hpp"

namespace caftan::actors {

/// Any message about the passes or the end of a context, except a gradient, from the context's actor at one worker to
/// that at another.
struct PassEnvelope {
  autograd::PassMessage message;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& message;
  }
};

/// The gradients of a message, from the RecvFunction's actor to the SendFunction's actor of the same message.
struct GradientMessage {
  autograd::Grad grad;
  std::shared_ptr<tensor::EncodedTensors> encoded;  ///< at the sender; sent once
  std::vector<at::Tensor> tensors;                  ///< at the receiver
  Result<void> received = {};  ///< limit_exceeded at the receiver if it had no memory for the tensors
};

/// Sent to a RecvFunction's actor: its node has run, and these gradients are to be sent to the peer.
struct ShipGradient {
  WorkerLife to;
  autograd::Grad grad;
  std::shared_ptr<tensor::EncodedTensors> encoded;
};

/// The duty to report how a pass ended. If the promise is dropped, as by an actor that has quit, it reports that the
/// context has ended.
class PassPromise {
 public:
  /// @param worker  its name, for the error
  PassPromise(std::shared_ptr<rpc::FutureState<void>> state, std::string worker)
      : state_(std::move(state)), worker_(std::move(worker)) {}
  PassPromise(const PassPromise&) = delete;
  PassPromise& operator=(const PassPromise&) = delete;
  ~PassPromise();

  /// Does nothing if there is an outcome. The future's continuations are user code: they are posted to a runner.
  void set(Result<void> outcome);
  bool is_of(const std::weak_ptr<rpc::FutureCore>& pass) const { return pass.lock() == state_; }

 private:
  const std::shared_ptr<rpc::FutureState<void>> state_;
  const std::string worker_;
};

/// Events of a context's actor.
namespace context_event {
struct Start {
  std::shared_ptr<autograd::PassStart> start;
  std::shared_ptr<PassPromise> promise;
};
struct Deadline {
  std::uint64_t start;  ///< which of this worker's passes
};
/// The future of a pass was cancelled.
struct Cancelled {
  std::weak_ptr<rpc::FutureCore> pass;  ///< its state
};
/// Event: the gradients of a message are in the context's record, or the reason why they cannot be used.
struct GradientArrived {
  WorkerLife from;
  autograd::Grad grad;
  std::uint64_t bytes = 0;  ///< of its tensors
};
struct Walked {
  autograd::PassNumber pass;
  std::vector<autograd::FoundRecv> found;
  bool done = false;
  Result<void> outcome;
};
struct Ran {
  struct Produced {
    AutogradMessageId message;
    std::shared_ptr<tensor::EncodedTensors> encoded;
  };
  autograd::PassNumber pass;
  std::vector<Produced> produced;
  bool done = false;  ///< true: nothing more runs before another RunGraph
  autograd::RunResult result;
  Result<void> outcome;
};
struct PeerDown {
  WorkerLife peer;
};
/// A gradient was not sent.
struct NotSent {
  autograd::PassNumber pass;
  Error error;
};
/// The record knows of decided passes that are new to this actor.
struct Learned {};
struct Release {};
/// The worker leaves.
struct Finish {
  Error reason;
};
}  // namespace context_event

struct ContextEvent {
  std::variant<context_event::Start, context_event::Deadline, context_event::Cancelled, context_event::GradientArrived,
               context_event::Walked, context_event::Ran, context_event::PeerDown, context_event::NotSent,
               context_event::Learned, context_event::Release, context_event::Finish>
      event;
};

}  // namespace caftan::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::actors::PassEnvelope)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::actors::GradientMessage)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::actors::ShipGradient)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::actors::ContextEvent)

/// The tensors travel beside the bytes.
template <>
struct caftan::wire::Codec<caftan::actors::GradientMessage> {
  static void save(OutArchive& to, const actors::GradientMessage& message);
  static void load(InArchive& from, actors::GradientMessage& message);
};
