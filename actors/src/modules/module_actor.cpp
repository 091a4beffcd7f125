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
    waiting_.push_back(std::make_shared<nn::ModuleAttempt>(std::move(requested->request), executor_->clock().now()));
  } else if (auto* again = std::get_if<module_event::Again>(&event.event)) {
    --postponed_;
    waiting_.push_back(std::move(again->attempt));
  } else if (auto* ended = std::get_if<module_event::Ended>(&event.event)) {
    busy_ = false;
    if (ended->attempt->is_over()) {
      ended->attempt->answer();
    } else {
      postpone(std::move(ended->attempt));
    }
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
  if (finishing_ && !busy_ && postponed_ == 0) self_->quit();
}

void ModuleActorState::start(std::shared_ptr<nn::ModuleAttempt> attempt) {
  busy_ = true;
  executor_->post([attempt = std::move(attempt), module = module_, &executor = *executor_,
                   self = caf::actor_cast<caf::actor>(self_)] {
    module->run(attempt, executor.clock(),
                [attempt, self] { caf::anon_send(self, ModuleEvent{module_event::Ended{attempt}}); });
  });
}

/// Tries a request that waits for open contexts again, later and behind all others.
void ModuleActorState::postpone(std::shared_ptr<nn::ModuleAttempt> attempt) {
  ++postponed_;
  executor_->post_at(executor_->clock().now() + nn::ModuleAttempt::kRetry,
                     [attempt = std::move(attempt), self = caf::actor_cast<caf::actor>(self_)] {
                       caf::anon_send(self, ModuleEvent{module_event::Again{attempt}});
                     });
}

}  // namespace caftan::actors
