/// The actor of one module at its owner: takes requests one at a time and lets runners do them, on the module's strand.
#pragma once

#include <deque>
#include <memory>
#include <variant>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include "caftan/nn/internal/owned_module.hpp"

namespace caftan::actors {

namespace module_event {
struct Requested {
  std::shared_ptr<nn::ModuleRequest> request;
};
/// A runner has done what was asked.
struct Ended {
  std::shared_ptr<nn::ModuleRequest> request;
};
/// The last reference to the module's control is gone.
struct Finish {};
}  // namespace module_event

struct ModuleEvent {
  std::variant<module_event::Requested, module_event::Ended, module_event::Finish> event;
};

class ModuleActorState {
 public:
  static constexpr const char* name = "module_actor";

  explicit ModuleActorState(caf::event_based_actor* self) : self_(self) {}

  void set_module(base::Executor& executor, std::shared_ptr<nn::OwnedModule> module);
  void on_event(ModuleEvent& event);

 private:
  void start_next();
  void start(std::shared_ptr<nn::ModuleRequest> request);

  caf::event_based_actor* const self_;
  base::Executor* executor_ = nullptr;
  std::shared_ptr<nn::OwnedModule> module_;
  std::deque<std::shared_ptr<nn::ModuleRequest>> waiting_;
  bool busy_ = false;
  bool finishing_ = false;
};

using ModuleActor = caf::stateful_actor<ModuleActorState>;

/// The behaviour of a ModuleActor. @param executor  runs the work; outlives the actor
caf::behavior module_actor(ModuleActor* self, base::Executor* executor, std::shared_ptr<nn::OwnedModule> module);

}  // namespace caftan::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::actors::ModuleEvent)
