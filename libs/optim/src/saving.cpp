#include "saving.hpp"

#include <algorithm>
#include <string>

#include "caftan/optim/internal/state_bulk.hpp"
#include "caftan/rpc/collect.hpp"

namespace caftan::optim {
namespace {

/// Returns the first failure, with the owner's name.
template <class U>
Result<void> first_failure(const std::vector<Owner>& owners, const std::vector<Result<U>>& outcomes) {
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i]) return outcomes[i].error().at(owners[i].worker);
  }
  return {};
}

/// As first_failure, with the numbers of the owner's parameters in the user's list: an owner numbers only its own.
Result<void> first_refusal(const std::vector<Owner>& owners, const std::vector<Result<void>>& outcomes) {
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i]) continue;
    const Error placed = outcomes[i].error().at(owners[i].worker);
    return Error(placed.code(), placed.worker(),
                 placed.text() + " (of the parameters at " + owners[i].worker + numbers_of(owners[i].parameters) + ")");
  }
  return {};
}

/// Checks whether all owners have made the same last step. Precondition: no outcome is an error.
Result<void> check_steps(const std::vector<Owner>& owners, const std::vector<Result<OwnerState>>& parts) {
  std::string text = "the owners are at different steps, so they have no common state:";
  bool alike = true;
  StepNumber first;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const StepNumber made = std::max(parts[i]->step, owners[i].since);
    if (i == 0) first = made;
    alike = alike && made == first;
    text += " " + owners[i].worker + " at " + std::to_string(made.value) + (i + 1 < owners.size() ? "," : "");
  }
  if (alike) return {};
  return Error(Errc::bad_arguments, text + "; save after the next step that all make, or load an earlier state");
}

Result<OwnerState> read_bulk(const Result<OwnerBulk>& bulk) {
  if (!bulk) return bulk.error();
  Result<wire::Bytes> state = from_bulk(bulk->state);
  if (!state) return state.error();
  return OwnerState{bulk->step, *std::move(state)};
}

/// Asks an owner for its state. One that is larger than a message comes as a tensor.
Future<OwnerState> cut(const Owner& owner, const CallOptions& options) {
  const auto optimizer = owner.optimizer.with(options);
  return optimizer.rpc_async<&RemoteOptimizer::cut>().then([optimizer](Result<OwnerState> part) {
    if (part || part.error().code() != Errc::limit_exceeded) return make_ready_future<OwnerState>(std::move(part));
    return optimizer.rpc_async<&RemoteOptimizer::cut_bulk>().then(
        [](const Result<OwnerBulk>& bulk) { return read_bulk(bulk); });
  });
}

/// Sends an owner its state, in the same way.
Future<void> stage(const Owner& owner, const CallOptions& options, wire::Bytes part) {
  const auto optimizer = owner.optimizer.with(options);
  const auto kept = std::make_shared<wire::Bytes>(std::move(part));
  return optimizer.rpc_async<&RemoteOptimizer::stage_state>(*kept).then([optimizer, kept](Result<void> staged) {
    if (staged || staged.error().code() != Errc::limit_exceeded) return make_ready_future<void>(std::move(staged));
    return optimizer.rpc_async<&RemoteOptimizer::stage_bulk>(to_bulk(std::move(*kept)));
  });
}

}  // namespace

// ---- saving

void DistributedOptimizer::State::Save::refuse(const Error& error) {
  promise_.set(Error(error.code(), error.worker(), "saving " + error.text()));
}

void DistributedOptimizer::State::Save::begin() {
  auto futures = state_->call_all<OwnerState>([&](const Owner& owner) { return cut(owner, state_->call_options()); });
  collect_all_results(std::move(futures))
      .then([self = shared_from_this()](Result<std::vector<Result<OwnerState>>> collected) {
        Result<wire::Bytes> bytes = self->write(*std::move(collected));
        self->state_->turns_->end();
        self->promise_.set(std::move(bytes));
      })
      .forget();
}

Result<wire::Bytes> DistributedOptimizer::State::Save::write(std::vector<Result<OwnerState>> parts) const {
  const std::vector<Owner>& owners = state_->owners_;
  if (const Result<void> well = first_failure(owners, parts); !well) return well.error();
  if (const Result<void> alike = check_steps(owners, parts); !alike) return alike.error();
  SavedState saved;
  saved.step = state_->last_step();
  state_->rates_.write_to(saved);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Owner& owner = owners[i];
    saved.owners.push_back({owner.worker, owner.groups, std::move(parts[i]->state), owner.parameters, owner.names});
  }
  wire::Bytes bytes;
  if (Result<void> written = saved.write(bytes); !written) return written.error();
  return bytes;
}

// ---- loading

void DistributedOptimizer::State::Load::refuse(const Error& error) {
  asked_.answer(Error(error.code(), error.worker(), "loading " + error.text()));
}

void DistributedOptimizer::State::Load::fail(const Error& error) {
  state_->turns_->end();
  asked_.answer(error);
}

Result<void> DistributedOptimizer::State::Load::check() const {
  const std::size_t groups = state_->rates_.groups();
  if (saved_.lrs.size() != groups) {
    return Error(Errc::bad_arguments,
                 "the saved optimizer is of another model or placement: " + std::to_string(saved_.lrs.size()) +
                     " parameter groups, here are " + std::to_string(groups));
  }
  if (!saved_.initial_lrs.empty() && saved_.initial_lrs.size() != groups) {
    return Error(Errc::malformed_payload, "the saved optimizer has initial rates of another number of groups");
  }
  if (!saved_.momenta.empty() && saved_.momenta.size() != groups) {
    return Error(Errc::malformed_payload, "the saved optimizer has momenta of another number of groups");
  }
  return {};
}

void DistributedOptimizer::State::Load::begin() {
  if (const Result<void> same = check(); !same) return fail(same.error());
  const std::vector<Owner>& owners = state_->owners_;
  auto parts = place_parts(saved_, std::vector<Placed>(owners.begin(), owners.end()));
  if (!parts) return fail(parts.error());
  std::vector<Future<void>> futures;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    futures.push_back(stage(owners[i], state_->call_options(), std::move((*parts)[i])));
  }
  collect_all_results(std::move(futures))
      .then([self = shared_from_this()](Result<std::vector<Result<void>>> collected) {
        self->on_staged(*std::move(collected));
      })
      .forget();
}

void DistributedOptimizer::State::Load::on_staged(const std::vector<Result<void>>& outcomes) {
  const Result<void> staged = first_refusal(state_->owners_, outcomes);
  if (staged) return take();
  for (Future<void>& dropped : state_->call_decided<void>(
           [](const auto& optimizer) { return optimizer.template rpc_async<&RemoteOptimizer::drop_state>(); })) {
    dropped.forget();
  }
  fail(staged.error());
}

void DistributedOptimizer::State::Load::take() {
  state_->turns_->bound(state_->wait_until(), "loading a saved state", [self = shared_from_this()] {
    self->asked_.answer(Error(
        Errc::timeout, "every owner was sent the order to take the saved state over, not all have confirmed it yet"));
  });
  auto futures = state_->call_decided<void>([step = saved_.step](const auto& optimizer) {
    return optimizer.template rpc_async<&RemoteOptimizer::take_state>(step);
  });
  collect_all_results(std::move(futures))
      .then([self = shared_from_this()](Result<std::vector<Result<void>>> collected) {
        const std::vector<Result<void>> outcomes = *std::move(collected);
        self->state_->set_last_step(self->saved_.step);
        self->state_->rates_.take(self->saved_);
        self->state_->turns_->end();
        self->asked_.answer(first_failure(self->state_->owners_, outcomes));
      })
      .forget();
}

}  // namespace caftan::optim
