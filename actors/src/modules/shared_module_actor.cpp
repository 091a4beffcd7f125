#include "modules/shared_module_actor.hpp"

#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

namespace caftan::actors {
namespace {

/// Sends the actor what has happened.
template <class Event>
void report(const caf::actor& to, Event event) {
  caf::anon_send(to, SharedModuleMessage{std::make_shared<nn::SharedEvent>(std::move(event))});
}

}  // namespace

caf::behavior shared_module_actor(SharedModuleActor* self, base::Executor* executor,
                                  std::shared_ptr<nn::OwnedShared> module) {
  self->state.set_module(*executor, std::move(module));
  return {[self](SharedModuleMessage& message) { self->state.on_message(message); }};
}

void SharedModuleActorState::set_module(base::Executor& executor, std::shared_ptr<nn::OwnedShared> module) {
  executor_ = &executor;
  module_ = std::move(module);
  // OwnedShared::make has checked the options.
  server_.emplace(nn::SharedServer::make(module_->options(), module_->module(), module_->readers(), *this).value());
}

void SharedModuleActorState::on_message(SharedModuleMessage& message) {
  if (!message.event) return self_->quit();
  server_->handle(*message.event);
}

void SharedModuleActorState::copy(const nn::Reader& reader, std::shared_ptr<nn::SharedCopy> copy) {
  executor_->post([module = module_, reader, copy = std::move(copy), &executor = *executor_,
                   self = caf::actor_cast<caf::actor>(self_)] {
    module->copy(copy, executor, [reader, self](Result<std::shared_ptr<nn::SharedCopy>> outcome) {
      report(self, nn::shared_event::Copied{reader, std::move(outcome)});
    });
  });
}

void SharedModuleActorState::check(const ContextId& context, std::vector<at::Tensor> gradients,
                                   const std::optional<nn::StepRates>& rates) {
  executor_->post(
      [module = module_, context, gradients = std::move(gradients), rates, self = caf::actor_cast<caf::actor>(self_)] {
        module->check(gradients, rates, [context, self](Result<void> outcome) {
          report(self, nn::shared_event::Checked{context, std::move(outcome)});
        });
      });
}

void SharedModuleActorState::apply(const nn::StepRecord& step, std::vector<nn::Delivered> delivered) {
  executor_->post(
      [module = module_, step, delivered = std::move(delivered), self = caf::actor_cast<caf::actor>(self_)] {
        module->apply(step, delivered,
                      [self](Result<void> outcome) { report(self, nn::shared_event::Applied{std::move(outcome)}); });
      });
}

void SharedModuleActorState::close(const nn::Reader& reader, const nn::SharedCopy& copy) {
  copy.door->close(
      [reader, self = caf::actor_cast<caf::actor>(self_)] { report(self, nn::shared_event::Emptied{reader}); });
}

void SharedModuleActorState::start_timer(std::uint64_t timer) {
  const base::Duration delay = *module_->options().consistency.straggler_timeout;
  executor_->post_at(executor_->clock().now() + delay, [timer, self = caf::actor_cast<caf::actor>(self_)] {
    report(self, nn::shared_event::TimePassed{timer});
  });
}

void SharedModuleActorState::wake_at(base::TimePoint at) {
  // The time of a call is long: the actor ends before it is over where nothing else keeps it.
  executor_->post_at(at, [at, self = caf::weak_actor_ptr(self_->ctrl())] {
    if (const caf::strong_actor_ptr alive = self.lock()) {
      report(caf::actor_cast<caf::actor>(alive), nn::shared_event::Woken{at});
    }
  });
}

}  // namespace caftan::actors
