#include "caftan/nn/internal/owned_shared.hpp"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <numeric>
#include <string>
#include <unordered_set>

#include "caftan/nn/gradient_mean.hpp"
#include "caftan/rpc/ambient.hpp"
#include "caftan/rpc/wait.hpp"
#include "caftan/tensor/internal/torch_errors.hpp"
#include "shared/step_rates.hpp"

namespace caftan::nn {
namespace {

/// CM-27
constexpr const char* kStepsAreReserved =
    "belongs to a shared module: no optimizer of another worker steps it, a trainer delivers its gradients with "
    "net.step(context, batch), and the owner steps by SharedOptions::algorithm";

/// Puts the state of torch's default generator back: that a copy is made draws no numbers from the user's stream. What
/// other threads draw in between is drawn again, so copies of a module are made one after the other.
class KeepRandomState {
 public:
  KeepRandomState() : generator_(at::globalContext().defaultGenerator(at::kCPU)) {
    const std::scoped_lock lock(generator_.mutex());
    state_ = generator_.get_state();
  }
  ~KeepRandomState() {
    const std::scoped_lock lock(generator_.mutex());
    generator_.set_state(state_);
  }
  KeepRandomState(const KeepRandomState&) = delete;
  KeepRandomState& operator=(const KeepRandomState&) = delete;

 private:
  at::Generator generator_;
  at::Tensor state_;
};

SharedTensors tensors_of(const ServedModule& served) {
  SharedTensors tensors;
  std::unordered_set<const void*> known;
  for (const TensorKind kind : {TensorKind::parameter, TensorKind::buffer}) {
    for (const NamedTensor& named : served.tensors(kind)) {
      if (!named.tensor.defined() || !known.insert(named.tensor.unsafeGetTensorImpl()).second) continue;
      const bool is_trained = kind == TensorKind::parameter && named.tensor.requires_grad();
      auto& list = is_trained ? tensors.trained : kind == TensorKind::parameter ? tensors.frozen : tensors.buffers;
      list.push_back(named.tensor);
    }
  }
  return tensors;
}

bool is_alike(const at::Tensor& one, const at::Tensor& other) {
  return one.sizes() == other.sizes() && one.scalar_type() == other.scalar_type();
}

bool are_alike(const std::vector<at::Tensor>& own, const std::vector<at::Tensor>& other) {
  return std::equal(own.begin(), own.end(), other.begin(), other.end(), is_alike);
}

bool are_alike(const SharedTensors& own, const SharedTensors& other) {
  return are_alike(own.trained, other.trained) && are_alike(own.frozen, other.frozen) &&
         are_alike(own.buffers, other.buffers);
}

/// Errors: unsupported.
Result<void> check_same(const std::vector<at::Tensor>& own, const std::vector<at::Tensor>& other) {
  bool same = own.size() == other.size();
  for (std::size_t i = 0; same && i < own.size(); ++i) {
    same = is_alike(own[i], other[i]);
    if (same && own[i].is_alias_of(other[i])) {
      return Error(Errc::unsupported,
                   "two modules made by this constructor share the memory of a tensor, as one that it was given: make "
                   "the tensors of a shared module in its constructor");
    }
  }
  if (same) return {};
  return Error(Errc::unsupported,
               "this constructor makes modules of other tensors each time: those of a shared module are the same in "
               "number, sizes and dtype");
}

void copy_all(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i].copy_(from[i]);
}

Result<void> copy_tensors(const SharedTensors& from, const SharedTensors& to) {
  return tensor::catch_torch(Errc::limit_exceeded, [&]() -> Result<void> {
    const at::NoGradGuard no_grad;
    copy_all(from.trained, to.trained);
    copy_all(from.frozen, to.frozen);
    copy_all(from.buffers, to.buffers);
    return {};
  });
}

/// Errors: unsupported (a context has given a buffer other sizes or another dtype; the text has its place).
Result<void> check_buffers(const std::vector<at::Tensor>& own, const std::vector<at::Tensor>& written) {
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (is_alike(own[i], written[i])) continue;
    return Error(Errc::unsupported,
                 "a call has changed the sizes or the dtype of buffer " + std::to_string(i) +
                     " of this shared module, in the order of its buffers: the buffers of a shared module keep both");
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<OwnedShared>> OwnedShared::make(std::shared_ptr<rpc::HostedObject> object,
                                                       const RRef<ServedModule>& module, const SharedOptions& options,
                                                       const CallSite& site) {
  if (const Result<void> fits = check_consistency(options.consistency, options.trainers); !fits) return fits.error();
  if (optim::needs_closure(options.algorithm)) {
    return Error(Errc::bad_arguments,
                 "LBFGS evaluates the loss several times in a step, and a trainer of a shared module delivers one "
                 "gradient: choose another algorithm (SharedOptions::algorithm), or step a RemoteModule by "
                 "DistributedOptimizer::step(closure)");
  }
  if (!object->as<ServedModule>()) {
    return Error(Errc::wrong_type, "the value is a " + std::string(object->type().key.name) + ", not a module");
  }
  std::shared_ptr<OwnedShared> owned(new OwnedShared(options, site));
  Promise<void> promise;
  Future<void> ready = promise.future();
  object->strand().run([owned, module, object, promise = std::move(promise)]() mutable {
    promise.set(tensor::catch_torch(Errc::remote_exception, [&] { return owned->set_up(module, object); }));
  });
  if (const Result<void> done = std::move(ready).result(); !done) return done.error();
  return owned;
}

Result<void> OwnedShared::set_up(const RRef<ServedModule>& module, std::shared_ptr<rpc::HostedObject> object) {
  ServedModule& served = *object->as<ServedModule>();
  if (served.has_gate()) return Error(Errc::bad_arguments, "this module is shared already, or is a copy of one");
  module_ = std::make_shared<SharedCopy>(
      SharedCopy{module, std::move(object), std::make_shared<ReadingDoor>(readers_), tensors_of(served)});
  Result<optim::LocalOptimizer> optimizer =
      optim::LocalOptimizer::make({{module_->tensors.trained, options_.algorithm}});
  if (!optimizer) return optimizer.error();
  if (!options_.step_log.empty()) {
    Result<StepLogWriter> log = StepLogWriter::create(options_.step_log, options_.consistency.mode);
    if (!log) return log.error();
    log_ = *std::move(log);
  }
  optimizer_ = *std::move(optimizer);
  served.set_gate(module_->door);
  module_->object->strand().reserve_steps(kStepsAreReserved);
  return {};
}

// ---- copies

Result<std::shared_ptr<SharedCopy>> OwnedShared::make_copy() const {
  if (const auto alive = site_.alive(); !alive) return alive.error();
  return tensor::catch_torch(Errc::remote_exception, [&]() -> Result<std::shared_ptr<SharedCopy>> {
    const KeepRandomState keep;
    Result<ServedModule> other = module_->object->as<ServedModule>()->make_another();
    if (!other) return other.error();
    auto copy = std::make_shared<SharedCopy>();
    copy->tensors = tensors_of(*other);
    const SharedTensors& own = module_->tensors;
    for (const auto list : {&SharedTensors::trained, &SharedTensors::frozen, &SharedTensors::buffers}) {
      if (const Result<void> same = check_same(own.*list, copy->tensors.*list); !same) return same.error();
    }
    copy->door = std::make_shared<ReadingDoor>(readers_);
    other->set_gate(copy->door);
    copy->reference = site_.make_rref(*std::move(other));
    Result<std::shared_ptr<rpc::HostedObject>> object = rpc::wait_for_local(copy->reference.handle(), {});
    if (!object) return object.error();
    copy->object = *std::move(object);
    return copy;
  });
}

void OwnedShared::copy(std::shared_ptr<SharedCopy> copy, base::Executor& executor, CopyDone done) {
  module_->object->strand().run(
      [self = shared_from_this(), copy = std::move(copy), &executor, done = std::move(done)]() mutable {
        // A context can have given the buffers of a copy other sizes.
        if (!copy || !are_alike(self->module_->tensors, copy->tensors)) {
          Ambient apart;  // without the turn: what is made inside of a turn becomes a part of that turn's object
          apart.executor = &executor;
          const AmbientSwap swap(&apart);
          Result<std::shared_ptr<SharedCopy>> made = self->make_copy();
          if (!made) return done(made.error());
          copy = *std::move(made);
        }
        // A pass of a context that is over may still read the copy.
        const std::array<std::shared_ptr<rpc::Strand>, 1> others{copy->object->shared_strand()};
        const auto kept = rpc::Strand::run_with_all(others, [&] {
          const Result<void> copied = copy_tensors(self->module_->tensors, copy->tensors);
          done(copied ? Result<std::shared_ptr<SharedCopy>>(copy) : copied.error());
        });
        if (!kept) return;
        kept->run([self, copy, &executor, done] {
          executor.post([self, copy, &executor, done] { self->copy(copy, executor, done); });
        });
      });
}

// ---- steps

void OwnedShared::check(std::vector<at::Tensor> gradients, const std::optional<StepRates>& rates, Done done) {
  module_->object->strand().run(
      [self = shared_from_this(), gradients = std::move(gradients), rates, done = std::move(done)] {
        const RatesOfAStep before(*self->optimizer_);
        const Result<void> fit = rates ? set_rates(*self->optimizer_, *rates) : Result<void>();
        done(fit ? self->optimizer_->prepare(gradients) : fit);
      });
}

void OwnedShared::apply(const StepRecord& step, std::vector<Delivered> delivered, Done done) {
  module_->object->strand().run([self = shared_from_this(), step, delivered = std::move(delivered),
                                 done = std::move(done)] { done(self->step(step, delivered)); });
}

Result<void> OwnedShared::step(const StepRecord& step, const std::vector<Delivered>& delivered) {
  std::vector<std::vector<at::Tensor>> gradients;
  for (const Delivered& one : delivered) gradients.push_back(one.gradients);
  const Result<std::vector<at::Tensor>> mean = gradient_mean(gradients);
  if (!mean) return mean.error();
  RatesOfAStep before(*optimizer_);
  if (step.rates) {
    if (const Result<void> fit = set_rates(*optimizer_, *step.rates); !fit) return fit;
  }
  if (const Result<void> fits = optimizer_->prepare(*mean); !fits) return fits;
  const Result<std::vector<at::Tensor>> buffers = written_buffers(delivered);
  if (!buffers) return buffers.error();
  if (log_) {
    if (const Result<void> logged = log_->append(step); !logged) return logged;
  }
  before.keep_new();
  std::vector<std::size_t> all(mean->size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (Result<void> stepped = optimizer_->update(all, *mean); !stepped) {
    if (log_) log_->give_up(stepped.error());
    return stepped;
  }
  return tensor::catch_torch(Errc::limit_exceeded, [&]() -> Result<void> {
    const at::NoGradGuard no_grad;
    copy_all(*buffers, module_->tensors.buffers);
    return {};
  });
}

Result<std::vector<at::Tensor>> OwnedShared::written_buffers(const std::vector<Delivered>& delivered) const {
  const std::vector<at::Tensor>& own = module_->tensors.buffers;
  if (delivered.front().read == module_ || own.empty()) return std::vector<at::Tensor>();
  std::vector<std::vector<at::Tensor>> written;
  for (const Delivered& one : delivered) {
    if (const Result<void> fits = check_buffers(own, one.read->tensors.buffers); !fits) return fits.error();
    written.push_back(one.read->tensors.buffers);
    for (at::Tensor& buffer : written.back()) {
      if (!buffer.is_floating_point() && !buffer.is_complex()) buffer = at::Tensor();
    }
  }
  Result<std::vector<at::Tensor>> mean = gradient_mean(written);
  if (!mean) return mean.error();
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (!(*mean)[i].defined()) (*mean)[i] = delivered.front().read->tensors.buffers[i];
  }
  return mean;
}

// ---- the optimizer's state

void OwnedShared::rates(std::function<void(Result<SharedRates>)> done) {
  module_->object->strand().run([self = shared_from_this(), done = std::move(done)] {
    optim::LocalOptimizer& optimizer = *self->optimizer_;
    done(SharedRates{optimizer.lr(0), optimizer.momentum(0), optimizer.initial_lrs().front()});
  });
}

void OwnedShared::save_optimizer(std::function<void(Result<wire::Bytes>)> done) {
  module_->object->strand().run(
      [self = shared_from_this(), done = std::move(done)] { done(self->optimizer_->save()); });
}

void OwnedShared::load_optimizer(wire::Bytes state, Done done) {
  module_->object->strand().run([self = shared_from_this(), state = std::move(state), done = std::move(done)] {
    if (self->readers_->load() > 0) {
      return done(Error(Errc::module_busy,
                        "an autograd context that has read this shared module is still open: end it, "
                        "then load the optimizer's state"));
    }
    done(self->optimizer_->load(state));
  });
}

}  // namespace caftan::nn
