/// The actor of a module that trainers share: gives what happens to `SharedServer`, and lets runners do the jobs that
/// this asks for.
#pragma once

#include <memory>
#include <optional>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include "caftan/nn/internal/owned_shared.hpp"
#include "caftan/nn/internal/shared_control.hpp"

namespace caftan::actors {

/// What the actor gets: something that has happened; null once all references to the module's control are gone.
struct SharedModuleMessage {
  std::shared_ptr<nn::SharedEvent> event;
};

class SharedModuleActorState : public nn::SharedModuleJobs {
 public:
  static constexpr const char* name = "shared_module_actor";

  explicit SharedModuleActorState(caf::event_based_actor* self) : self_(self) {}

  void set_module(base::Executor& executor, std::shared_ptr<nn::OwnedShared> module);
  void on_message(SharedModuleMessage& message);
  const nn::SharedServer& server() const noexcept { return *server_; }

  void copy(const nn::Reader& reader, std::shared_ptr<nn::SharedCopy> copy) override;
  void check(const ContextId& context, std::vector<at::Tensor> gradients,
             const std::optional<nn::StepRates>& rates) override;
  void apply(const nn::StepRecord& step, std::vector<nn::Delivered> delivered) override;
  void close(const nn::Reader& reader, const nn::SharedCopy& copy) override;
  void start_timer(std::uint64_t timer) override;
  void wake_at(base::TimePoint at) override;

 private:
  caf::event_based_actor* const self_;
  base::Executor* executor_ = nullptr;
  std::shared_ptr<nn::OwnedShared> module_;
  std::optional<nn::SharedServer> server_;
};

using SharedModuleActor = caf::stateful_actor<SharedModuleActorState>;

/// The behaviour of a SharedModuleActor. @param executor  runs the jobs; outlives the actor
caf::behavior shared_module_actor(SharedModuleActor* self, base::Executor* executor,
                                  std::shared_ptr<nn::OwnedShared> module);

}  // namespace caftan::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::actors::SharedModuleMessage)
