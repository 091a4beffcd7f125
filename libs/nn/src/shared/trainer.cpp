#include "shared/trainer.hpp"

#include <utility>

namespace caftan::nn {

Trainer::Readings Trainer::take_over() {
  Readings over;
  for (auto at = readings_.begin(); at != readings_.end();) {
    const auto next = std::next(at);
    const auto context = at->second.context.lock();
    if (!context || context->is_over()) over.insert(readings_.extract(at));
    at = next;
  }
  return over;
}

Future<Reading> Trainer::open(CallOptions options) {
  const Ambient* const ambient = Ambient::current();
  const auto context =
      ambient ? std::static_pointer_cast<autograd::ContextRecord>(ambient->autograd_context.lock()) : nullptr;
  if (!context) {
    return make_ready_future<Reading>(trainer_outside_context());
  }
  Readings over;  // references end outside of the lock
  {
    const base::LockGuard lock(mutex_);
    over = take_over();
    const auto known = readings_.find(context->id());
    if (known != readings_.end()) return make_ready_future<Reading>(Reading(known->second.reading));
  }
  return seat_.with(options).rpc_async<&TrainerSeat::open>().then(
      [self = shared_from_this(), context](Result<Reading> reading) {
        if (reading) self->keep(context, *reading);
        return reading;
      });
}

void Trainer::keep(const std::shared_ptr<autograd::ContextRecord>& context, const Reading& reading) {
  const base::LockGuard lock(mutex_);
  readings_.insert_or_assign(context->id(), Known{context, reading});
}

optim::LearningRates* Trainer::rates() {
  const base::LockGuard lock(mutex_);
  return rates_ ? &*rates_ : nullptr;
}

optim::LearningRates* Trainer::keep_rates(const SharedRates& at_owner) {
  const base::LockGuard lock(mutex_);
  if (!rates_) rates_.emplace(at_owner);
  return &*rates_;
}

Future<StepResult> Trainer::step(const std::shared_ptr<autograd::ContextRecord>& context, std::uint64_t batch,
                                 CallOptions options) {
  if (Result<void> has = autograd::check_has_gradients(*context); !has) {
    return make_ready_future<StepResult>(has.error());
  }
  Readings over;
  std::optional<StepRates> rates;
  {
    const base::LockGuard lock(mutex_);
    over = take_over();
    if (rates_) rates = rates_->of_next_step();
  }
  Future<StepResult> result;
  autograd::ContextView(context).bind([&] {
    const auto seat = seat_.with(options);
    result = rates ? seat.rpc_async<&TrainerSeat::step_with>(batch, *rates) : seat.rpc_async<&TrainerSeat::step>(batch);
  })();
  return result;
}

}  // namespace caftan::nn
