/// The actor of one module at its owner: takes requests one at a time and lets runners do them, on the module's strand.
/// A request that waits for open contexts to end lets the others pass.
#pragma once

#include <cstddef>
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
/// A runner has done what was asked, or has found an open context.
struct Ended {
  std::shared_ptr<nn::ModuleAttempt> attempt;
};
/// A request that waits for open contexts is tried again.
struct Again {
  std::shared_ptr<nn::ModuleAttempt> attempt;
};
/// The last reference to the module's control is gone.
struct Finish {};
}  // namespace module_event

struct ModuleEvent {
  std::variant<module_event::Requested, module_event::Ended, module_event::Again, module_event::Finish> event;
};

class ModuleActorState {
 public:
  static constexpr const char* name = "module_actor";

  explicit ModuleActorState(caf::event_based_actor* self) : self_(self) {}

  void set_module(base::Executor& executor, std::shared_ptr<nn::OwnedModule> module);
  void on_event(ModuleEvent& event);

 private:
  void start_next();
  void start(std::shared_ptr<nn::ModuleAttempt> attempt);
  void postpone(std::shared_ptr<nn::ModuleAttempt> attempt);

  caf::event_based_actor* const self_;
  base::Executor* executor_ = nullptr;
  std::shared_ptr<nn::OwnedModule> module_;
  std::deque<std::shared_ptr<nn::ModuleAttempt>> waiting_;
  std::size_t postponed_ = 0;  // attempts that a timer brings back
  bool busy_ = false;
  bool finishing_ = false;
};

using ModuleActor = caf::stateful_actor<ModuleActorState>;

/// The behaviour of a ModuleActor. @param executor  runs the work; outlives the actor
caf::behavior module_actor(ModuleActor* self, base::Executor* executor, std::shared_ptr<nn::OwnedModule> module);

}  // namespace caftan::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::actors::ModuleEvent)
