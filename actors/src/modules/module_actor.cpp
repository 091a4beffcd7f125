#include "modules/module_actor.hpp"

#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

namespace caftan::actors {

caf::behavior module_actor(ModuleActor* self, base::Executor* executor, std::shared_ptr<nn::OwnedModule> module) {
  self->state.set_module(*executor, std::move(module));
  return {[self](ModuleEvent& event) { self->state.on_event(event); }};
}

void ModuleActorState::set_module(base::Executor& executor, std::shared_ptr<nn::OwnedModule> module) {
  executor_ = &executor;
  module_ = std::move(module);
}

void ModuleActorState::on_event(ModuleEvent& event) {
  if (auto* requested = std::get_if<module_event::Requested>(&event.event)) {
    waiting_.push_back(std::move(requested->request));
  } else if (auto* ended = std::get_if<module_event::Ended>(&event.event)) {
    ended->request->answer();
    busy_ = false;
  } else {
    finishing_ = true;
  }
  start_next();
}

void ModuleActorState::start_next() {
  if (!busy_ && !waiting_.empty()) {
    start(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  if (finishing_ && !busy_) self_->quit();
}

void ModuleActorState::start(std::shared_ptr<nn::ModuleRequest> request) {
  busy_ = true;
  executor_->post([request = std::move(request), module = module_, &executor = *executor_,
                   self = caf::actor_cast<caf::actor>(self_)] {
    module->run(request, executor,
                [request, self] { caf::anon_send(self, ModuleEvent{module_event::Ended{request}}); });
  });
}

}  // namespace caftan::actors
