/// `Replicated`: a module that several workers have, each with data of its own, and whose gradients a backward pass
/// averages over all of them:
///     auto group = collectives::join_group(worker, {.name = "replicas", .members = names}).value();
///     nn::Replicated<Net> net(worker, group, std::make_shared<Net>());
///     autograd::Context context(worker);
///     context.backward(loss(net.forward(x)));   // the context has the means
///     optimizer.step(context);                  // over net.parameters(): equal at all replicas afterwards
/// Rules: docs/protocols/replicated.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "caftan/collectives/collectives.hpp"
#include "caftan/nn/named_tensor.hpp"
#include "caftan/nn/served_module.hpp"

namespace caftan::nn {

/// Options of a Replicated, the same at all replicas.
struct ReplicatedOptions {
  /// The number by which a sum of gradients is divided.
  enum class MeanOver : std::uint8_t { all, active };

  std::uint64_t bucket_bytes = std::uint64_t{1} << 20;  ///< gradients that travel together; one parameter at least
  std::vector<std::string> sparse_parameters = {};      ///< names of those whose gradients are sparse
  bool find_unused_parameters = false;  ///< a parameter without a gradient counts as zeros; else it is an error
  bool uneven_inputs = false;           ///< replicas may `join` when their data ends
  MeanOver mean_over = MeanOver::all;   ///< with uneven_inputs: divide by all replicas, or by those that have data
  bool broadcast_buffers = true;        ///< rank 0's buffers at each recorded forward
};

class Replica;

/// What a Replicated is whatever its class. Threads: one at a time.
class ReplicaHandle {
 public:
  /// Returns a reference to each parameter that needs a gradient, in the module's order: for a DistributedOptimizer of
  /// this replica. The same references each time; a tensor with several names is listed once.
  const std::vector<RRef<at::Tensor>>& parameters() const noexcept { return references_; }
  /// Returns the group.
  collectives::Collectives& group() const noexcept;

  /// Lets passes of the current context average the gradients, for code that calls the module itself; `forward` does
  /// so. Without grad mode it does nothing.
  /// Errors: unknown_context (grad mode is on, and the code runs in no context), context_released, those of the group.
  Result<void> enter_context() const;

  /// Returns a hash of the names and bits of all parameters and buffers.
  std::uint64_t hash() const;
  /// Compares the hashes of all replicas; all must call it. Waits.
  /// Errors: invalid_config (naming the members that differ from rank 0), those of the group.
  Result<void> check_equal() const;

  /// This replica has no more data: takes part in the passes of the others until all have joined, and takes over the
  /// parameters of the lowest rank that computed last. Waits. Needs uneven_inputs.
  /// Errors: bad_arguments (without that option), pass_busy, those of the group.
  /// Source: torch.nn.parallel.DistributedDataParallel.join.
  Result<void> join() const;

 protected:
  /// Errors: those of `Replicated::try_make`.
  static Result<std::shared_ptr<Replica>> make_replica(const CallSite& site,
                                                       std::shared_ptr<collectives::Collectives> group,
                                                       std::vector<NamedTensor> parameters,
                                                       std::vector<NamedTensor> buffers,
                                                       const ReplicatedOptions& options);
  ReplicaHandle(const CallSite& site, std::shared_ptr<Replica> replica);

  std::shared_ptr<Replica> replica_;
  std::vector<RRef<at::Tensor>> references_;
};

/// A module of the class Net that other workers have, too. Net is a subclass of torch::nn::Module, or a plain class as
/// add_module takes it. Source: torch.nn.parallel.DistributedDataParallel.
template <class Net>
class Replicated : public ReplicaHandle {
 public:
  /// Gives the module the values of rank 0. All members of the group must make it, with modules of the same parameters.
  /// Errors (thrown): as try_make returns them.
  Replicated(const CallSite& site, std::shared_ptr<collectives::Collectives> group, std::shared_ptr<Net> module,
             const ReplicatedOptions& options = {})
      : Replicated(try_make(site, std::move(group), std::move(module), options).value()) {}
  /// Errors: bad_arguments (no parameter that needs a gradient, a name in sparse_parameters that is none, a bucket of 0
  ///   bytes, buffers with uneven_inputs and broadcast_buffers), unsupported (a parameter that is not dense and on the
  ///   CPU), invalid_config (other parameters elsewhere), those of the group.
  static Result<Replicated> try_make(const CallSite& site, std::shared_ptr<collectives::Collectives> group,
                                     std::shared_ptr<Net> module, const ReplicatedOptions& options = {}) {
    auto replica = make_replica(site, std::move(group), detail::tensors_of<Net>(module.get(), TensorKind::parameter),
                                detail::tensors_of<Net>(module.get(), TensorKind::buffer), options);
    if (!replica) return replica.error();
    return Replicated(site, *std::move(replica), std::move(module));
  }

  /// Calls the module's forward in the current context, whose passes average the gradients.
  /// Errors (thrown): those of enter_context, and what the module throws.
  template <class... A>
  auto forward(A&&... arguments) const {
    enter_context().value();
    return module_->forward(std::forward<A>(arguments)...);
  }
  /// Returns this replica's module. Do not change its parameters but by equal steps.
  const std::shared_ptr<Net>& module() const noexcept { return module_; }

 private:
  Replicated(const CallSite& site, std::shared_ptr<Replica> replica, std::shared_ptr<Net> module)
      : ReplicaHandle(site, std::move(replica)), module_(std::move(module)) {}

  std::shared_ptr<Net> module_;
};

}  // namespace caftan::nn
