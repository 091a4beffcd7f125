#include "caftan/nn/internal/reading_door.hpp"

#include <utility>

#include "caftan/autograd/internal/context_record.hpp"

namespace caftan::nn {

void ReadingDoor::open(std::optional<ContextId> context) {
  const base::LockGuard lock(mutex_);
  is_open_ = true;
  context_ = context;
}

std::uint32_t ReadingDoor::close_if_empty() {
  const base::LockGuard lock(mutex_);
  if (inside_ == 0) is_open_ = false;
  return inside_;
}

void ReadingDoor::close(std::function<void()> empty) {
  {
    const base::LockGuard lock(mutex_);
    is_open_ = false;
    if (inside_ > 0) {
      when_empty_ = std::move(empty);
      return;
    }
  }
  empty();
}

void ReadingDoor::open_again() {
  const base::LockGuard lock(mutex_);
  is_open_ = true;
}

Result<void> ReadingDoor::check(const CallInfo& info) const {
  if (!is_open_) {
    return Error(Errc::bad_arguments,
                 "this version of the shared module is not read any more: its context has stepped or ended, or its "
                 "evaluation is over; begin a new one");
  }
  if (!context_) {
    if (!info.grad_mode) return {};
    return Error(Errc::bad_arguments, "an evaluation of a shared module records no gradients: call it under no_grad");
  }
  const auto record = std::static_pointer_cast<autograd::ContextRecord>(info.autograd_context.lock());
  if (!record) {
    return Error(Errc::unknown_context, "a call of a trainer outside of its autograd context: begin one, or evaluate");
  }
  if (record->id() == *context_) return {};
  return Error(Errc::bad_arguments, "context " + to_string(*context_) +
                                        " reads this version of the shared module, not " + "context " +
                                        to_string(record->id()));
}

Result<void> ReadingDoor::enter(const CallInfo& info) {
  const base::LockGuard lock(mutex_);
  if (Result<void> allowed = check(info); !allowed) return allowed;
  ++inside_;
  return {};
}

void ReadingDoor::leave() noexcept {
  std::function<void()> empty;
  {
    const base::LockGuard lock(mutex_);
    if (--inside_ == 0) empty = std::exchange(when_empty_, nullptr);
  }
  if (empty) empty();
}

}  // namespace caftan::nn
