#include "caftan/optim/internal/owned_optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "caftan/optim/clipping.hpp"
#include "caftan/tensor/internal/torch_errors.hpp"

namespace caftan::optim {

namespace {

/// Returns the tensors of a group's parameters, and adds these to the turns that they take.
/// @param objects  the values of the group's references, in order; the first is parameter `first`
/// Errors: wrong_type, bad_arguments (complex, where gradients are limited by value; of a shared module).
Result<ParameterGroup> read_group(const OptimizerSpec::Group& group,
                                  std::span<const std::shared_ptr<rpc::HostedObject>> objects, std::size_t first,
                                  double clip_value, std::vector<OwnedOptimizer::Turn>& turns) {
  ParameterGroup read{{}, group.algorithm};
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const std::size_t number = first + i;
    const at::Tensor* const tensor = objects[i]->as<at::Tensor>();
    if (!tensor) {
      return Error(Errc::wrong_type, "parameter " + std::to_string(number) + " is a " +
                                         std::string(objects[i]->type().key.name) + ", not a tensor");
    }
    if (clip_value > 0 && tensor->is_complex()) {
      return Error(Errc::bad_arguments, "parameter " + std::to_string(number) +
                                            " is complex: clip_value limits only real gradients; use clip_norm");
    }
    if (const char* const instead = objects[i]->strand().instead_of_steps()) {
      return Error(Errc::bad_arguments, "parameter " + std::to_string(number) + " " + instead);
    }
    read.parameters.push_back(*tensor);
    const auto& strand = objects[i]->shared_strand();
    auto turn = std::find_if(turns.begin(), turns.end(), [&strand](const auto& t) { return t.strand == strand; });
    if (turn == turns.end()) turn = turns.insert(turns.end(), OwnedOptimizer::Turn{strand, {}});
    turn->parameters.push_back(number);
  }
  return read;
}

}  // namespace

Result<std::shared_ptr<OwnedOptimizer>> OwnedOptimizer::make(
    const OptimizerSpec& spec, const std::vector<std::shared_ptr<rpc::HostedObject>>& objects) {
  if (!(spec.clip_value >= 0)) return Error(Errc::bad_arguments, "clip_value is negative; 0 means none");
  std::vector<ParameterGroup> groups;
  std::vector<Turn> turns;
  std::size_t first = 0;
  for (const OptimizerSpec::Group& group : spec.groups) {
    const auto of_group = std::span(objects).subspan(first, group.parameters.size());
    auto read = read_group(group, of_group, first, spec.clip_value, turns);
    if (!read) return read.error();
    groups.push_back(*std::move(read));
    first += of_group.size();
  }
  auto optimizer = LocalOptimizer::make(std::move(groups));
  if (!optimizer) return optimizer.error();
  std::shared_ptr<OwnedOptimizer> owned(new OwnedOptimizer(*std::move(optimizer)));
  owned->turns_ = std::move(turns);
  owned->clip_value_ = spec.clip_value;
  return owned;
}

Result<void> OwnedOptimizer::check_rates(const std::vector<double>& lrs, const Momenta& momenta) const {
  const auto of_groups = [this](std::size_t count, const char* what) -> Result<void> {
    if (count == optimizer_.groups()) return {};
    return Error(Errc::bad_arguments,
                 std::to_string(count) + " " + what + " for " + std::to_string(optimizer_.groups()) + " groups");
  };
  if (Result<void> fits = of_groups(lrs.size(), "learning rates"); !fits) return fits;
  for (const double lr : lrs) {
    if (!std::isfinite(lr) || lr < 0) {
      return Error(Errc::bad_arguments, "the learning rate is " + std::to_string(lr) + ", it must be >= 0");
    }
  }
  if (momenta.empty()) return {};
  if (Result<void> fits = of_groups(momenta.size(), "momenta"); !fits) return fits;
  for (std::size_t group = 0; group < momenta.size(); ++group) {
    if (!momenta[group]) continue;
    if (!optimizer_.momentum(group)) {
      return Error(Errc::bad_arguments, "group " + std::to_string(group) + " has no momentum that could be changed");
    }
    Algorithm changed = optimizer_.algorithm(group);
    set_momentum(changed, *momenta[group]);
    if (Result<void> fits = check_options(changed); !fits) return fits;
  }
  return {};
}

Result<Prepared> OwnedOptimizer::prepare(const StepOrder& order, std::vector<at::Tensor> gradients,
                                         const Momenta& momenta) {
  drop();
  if (Result<void> fits = check_rates(order.lrs, momenta); !fits) return fits.error();
  // What is allocated for the step depends on its momenta; a refused step leaves those of the last one.
  const Momenta before = exchange_momenta(momenta);
  Result<Prepared> prepared = prepare_gradients(order, std::move(gradients));
  if (!prepared) exchange_momenta(before);
  return prepared;
}

Momenta OwnedOptimizer::exchange_momenta(const Momenta& momenta) {
  Momenta before(momenta.size());
  for (std::size_t group = 0; group < momenta.size(); ++group) {
    if (!momenta[group]) continue;
    before[group] = optimizer_.momentum(group);
    optimizer_.set_momentum(group, *momenta[group]);
  }
  return before;
}

Result<Prepared> OwnedOptimizer::prepare_gradients(const StepOrder& order, std::vector<at::Tensor> gradients) {
  if (Result<void> fits = optimizer_.prepare(gradients); !fits) return fits.error();
  Prepared prepared{order.step};
  const Result<void> done = tensor::catch_torch(Errc::limit_exceeded, [&]() -> Result<void> {
    if (clip_value_ > 0) gradients = clipped_by_value(gradients, clip_value_);
    if (order.wants_norm) prepared.squared_norm = squared_norm(gradients);
    return {};
  });
  if (!done) return done.error();
  for (const at::Tensor& gradient : gradients) prepared.gradients += gradient.defined() ? 1 : 0;
  for (std::size_t group = 0; group < order.lrs.size(); ++group) optimizer_.set_lr(group, order.lrs[group]);
  gradients_ = std::move(gradients);
  return prepared;
}

/// A job that is under way through the turns of its objects.
struct OwnedOptimizer::Visit {
  base::Executor& executor;
  std::function<Result<void>(std::span<const std::size_t>)> job;
  std::function<void(Result<void>)> done;
  std::size_t turn = 0;
};

void OwnedOptimizer::visit_turns(base::Executor& executor,
                                 std::function<Result<void>(std::span<const std::size_t>)> job,
                                 std::function<void(Result<void>)> done) {
  run_turn(std::make_shared<Visit>(Visit{executor, std::move(job), std::move(done)}));
}

void OwnedOptimizer::run_turn(const std::shared_ptr<Visit>& visit) {
  const Turn& turn = turns_[visit->turn];
  turn.strand->run([self = shared_from_this(), strand = turn.strand, visit] {
    const Result<void> outcome = visit->job(self->turns_[visit->turn].parameters);
    if (!outcome) return visit->done(outcome);
    if (++visit->turn == self->turns_.size()) return visit->done({});
    // Posted, not run here, because this code still holds its own turn.
    visit->executor.post([self, visit] { self->run_turn(visit); });
  });
}

void OwnedOptimizer::apply(StepNumber step, double scale, base::Executor& executor,
                           std::function<void(Result<StepDone>)> done) {
  auto gradients = std::make_shared<std::vector<at::Tensor>>(std::exchange(gradients_, {}));
  // Scaling is done before the first turn, so that a failure of it has stepped no parameter.
  const Result<void> ready = tensor::catch_torch(Errc::limit_exceeded, [&]() -> Result<void> {
    *gradients = scaled(*gradients, scale);
    return {};
  });
  if (!ready) return done(ready.error());
  visit_turns(
      executor, [this, gradients](std::span<const std::size_t> which) { return optimizer_.update(which, *gradients); },
      [step, gradients, done = std::move(done)](const Result<void>& updated) {
        if (!updated) return done(updated.error());
        StepDone stepped{step};
        for (const at::Tensor& gradient : *gradients) stepped.stepped += gradient.defined() ? 1 : 0;
        done(stepped);
      });
}

void OwnedOptimizer::search(const SearchOrder& order, std::vector<at::Tensor> gradients, base::Executor& executor,
                            std::function<void(Result<SearchReply>)> done) {
  const auto refuse = [this, &executor, done](const Error& error) {
    if (!is_searching()) return done(error);
    roll_back(executor, [done, error] { done(error); });
  };
  if (Result<void> fits = check_rates(order.lrs, {}); !fits) return refuse(fits.error());
  for (std::size_t group = 0; group < order.lrs.size(); ++group) optimizer_.set_lr(group, order.lrs[group]);
  const Result<bool> more = optimizer_.search(order.loss, gradients);
  if (!more) return refuse(more.error());
  SearchReply reply{order.step, order.evaluation, *more, optimizer_.parameters().size()};
  visit_turns(
      executor, [this](std::span<const std::size_t> which) { return optimizer_.move(which); },
      [this, reply, refuse, done](const Result<void>& moved) {
        if (!moved) return refuse(moved.error());
        if (!reply.wants_another) optimizer_.end_search();
        done(reply);
      });
}

void OwnedOptimizer::roll_back(base::Executor& executor, std::function<void()> done) {
  // Posted, because code that holds a turn of these parameters may call this.
  executor.post([self = shared_from_this(), &executor, done = std::move(done)] {
    self->visit_turns(
        executor, [self](std::span<const std::size_t> which) { return self->optimizer_.roll_back(which); },
        [self, done](const Result<void>&) {
          self->optimizer_.forget_search();
          done();
        });
  });
}

Result<void> OwnedOptimizer::stage_state(wire::ByteView bytes) {
  staged_.reset();
  LocalOptimizer copy = optimizer_;
  if (Result<void> loaded = copy.load(bytes); !loaded) return loaded;
  staged_ = Staged{std::move(copy), turns_};
  return {};
}

Result<void> OwnedOptimizer::stage_group(const OptimizerSpec::Group& group,
                                         const std::vector<std::shared_ptr<rpc::HostedObject>>& objects) {
  staged_.reset();
  Staged staged{optimizer_, turns_};
  auto read = read_group(group, objects, optimizer_.parameters().size(), clip_value_, staged.turns);
  if (!read) return read.error();
  if (Result<void> added = staged.optimizer.add_param_group(*std::move(read)); !added) return added;
  staged_ = std::move(staged);
  return {};
}

}  // namespace caftan::optim
