#include "adding.hpp"

namespace caftan::optim {

void DistributedOptimizer::State::Adding::refuse(const Error& error) {
  asked_.answer(Error(error.code(), error.worker(), "adding a group of parameters " + error.text()));
}

void DistributedOptimizer::State::Adding::fail(const Result<void>& outcome) {
  state_->turns_->end();
  asked_.answer(outcome);
}

void DistributedOptimizer::State::Adding::begin() {
  if (Result<void> named = group_->check_names(state_->owners_); !named) return fail(named);
  group_->stage(state_->owners_)
      .then([self = shared_from_this()](const Result<void>& staged) {
        if (!staged) return self->fail(staged);
        self->take();
      })
      .forget();
}

void DistributedOptimizer::State::Adding::take() {
  state_->turns_->bound(state_->wait_until(), "adding a group of parameters", [self = shared_from_this()] {
    self->asked_.answer(
        Error(Errc::timeout, "every owner was sent the order to add the group, not all have confirmed it yet"));
  });
  const StepNumber last = state_->last_step();
  group_->take(last)
      .then([self = shared_from_this(), last](const Result<void>& taken) {
        GroupRates& rates = self->state_->rates_;
        self->group_->record(static_cast<std::uint32_t>(rates.groups()), last, self->state_->owners_);
        rates.add(self->algorithm_);
        self->state_->turns_->end();
        self->asked_.answer(taken);
      })
      .forget();
}

}  // namespace caftan::optim
