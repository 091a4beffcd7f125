/// The actor of one autograd context at one worker: passes events to `ContextPasses` and carries out the actions that
/// it returns. The actor monitors the context's actors at the workers with which it exchanges messages.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <caf/behavior.hpp>
#include <caf/stateful_actor.hpp>

#include "autograd/autograd_messages.hpp"
#include "autograd/autograd_ports.hpp"
#include "autograd/graph_job.hpp"
#include "caftan/autograd/internal/context_passes.hpp"
#include "service/named_behavior.hpp"

namespace caftan::actors {

class AutogradContextState {
 public:
  static constexpr const char* name = "autograd_context_actor";

  explicit AutogradContextState(caf::event_based_actor* self) : self_(self) {}
  /// Runs however the actor ends: the pass that was started here fails, and the context is over at this worker.
  ~AutogradContextState();
  AutogradContextState(const AutogradContextState&) = delete;
  AutogradContextState& operator=(const AutogradContextState&) = delete;

  /// Joins the context, unless its home is here.
  void start(ContextPorts& ports, std::shared_ptr<autograd::ContextRecord> record);
  void on_envelope(const PassEnvelope& envelope);
  void on_event(ContextEvent& event);
  void on_down(const caf::down_msg& down);

 private:
  struct Unsent {
    autograd::PassNumber pass;
    Error error;
  };

  void on(context_event::Start& event);
  void on(context_event::Deadline& event);
  void on(context_event::Cancelled& event);
  void on(context_event::GradientArrived& event);
  void on(context_event::Walked& event);
  void on(context_event::Ran& event);
  void on(context_event::PeerDown& event);
  void on(context_event::NotSent& event);
  void on(context_event::Learned& event);
  void on(context_event::Release& event);
  void on(context_event::Finish& event);

  void perform(autograd::PassActions actions);
  void perform(autograd::Send& action);
  void perform(autograd::WatchWorker& action);
  void perform(autograd::BeginPass& action);
  void perform(autograd::WalkGraph& action);
  void perform(autograd::RunGraph& action);
  void perform(autograd::StopGraph& action);
  void perform(autograd::MergeGradients& action);
  void perform(autograd::DropGradients& action);
  void perform(autograd::PassEnded& action);
  void perform(autograd::ContextReleased& action);
  void perform(autograd::ContextEmpty& action);

  /// Returns false when there is no session with that life, or when the message cannot be sent. A mark or report that
  /// is beyond a limit counts as sent, and is in `unsent_` afterwards.
  bool send_to(const WorkerLife& to, autograd::PassMessage message);
  /// Monitors this context's actor at that worker. Returns false when there is no session with that life.
  bool watch(const WorkerLife& peer);
  void peer_down(const WorkerLife& lost);
  GraphJob::Functions functions(const std::vector<AutogradMessageId>& messages) const;
  void forget_pass(autograd::PassNumber pass);
  void resolve(Result<void> outcome);

  caf::event_based_actor* const self_;
  ContextPorts* ports_ = nullptr;
  std::shared_ptr<autograd::ContextRecord> record_;  // set by start
  std::optional<autograd::ContextPasses> passes_;    // likewise
  autograd::PassNumber published_;                   // the last decided pass that this actor has given to the record
  std::map<WorkerLife, caf::strong_actor_ptr> watched_;
  std::vector<WorkerLife> unreachable_;  // found while actions were performed
  std::vector<Unsent> unsent_;           // likewise
  // A walk that ended while actions were performed; passes_ does not know of it yet.
  std::optional<context_event::Walked> walked_;
  bool in_walked_ = false;  // set during the call that reports a walk to passes_

  // The pass that this worker started, if any:
  std::shared_ptr<autograd::PassStart> start_;
  std::shared_ptr<PassPromise> promise_;
  std::uint64_t starts_ = 0;

  // The pass that this worker takes part in, if any:
  std::shared_ptr<GraphJob> job_;
  std::optional<Error> begin_error_;
  std::map<AutogradMessageId, std::shared_ptr<tensor::EncodedTensors>> leaving_;
};

using AutogradContextActor = caf::stateful_actor<AutogradContextState, NamedBehavior>;

/// The behaviour of an AutogradContextActor. @param ports  outlives the actor
caf::behavior autograd_context_actor(AutogradContextActor* self, ContextPorts* ports,
                                     std::shared_ptr<autograd::ContextRecord> record);

}  // namespace caftan::actors
