/// `CustomAlgorithm`: an algorithm of one's own. A worker that owns parameters registers its code by a name; an
/// optimizer names it:
///     class Sign final : public optim::CustomAlgorithm { ... };
///     optim::add_algorithm(registry, "sign", std::make_shared<Sign>());    // at each owner, before it starts
///     optim::DistributedOptimizer optimizer(worker, parameters, optim::Custom{.name = "sign", .lr = 1e-4});
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/optim/algorithms.hpp"
#include "caftan/rpc/extension.hpp"

namespace caftan {
class Registry;
}

namespace caftan::optim {

/// One parameter in one step of a CustomAlgorithm.
struct CustomStep {
  const at::Tensor& parameter;  ///< changed in place
  const at::Tensor& gradient;   ///< not to be changed: it belongs to the context
  std::span<at::Tensor> state;  ///< one tensor per slot, zeros in the parameter's layout at first; changed in place
  std::uint64_t number;         ///< of this step of this parameter: 1, 2, ...
};

/// The code of an algorithm of one's own. One object serves all optimizers of a worker and keeps nothing of them: what
/// a parameter needs from step to step is in its slots, which are saved and loaded with the optimizer. Threads: any,
/// several at once. Source: a subclass of torch.optim.Optimizer.
class CustomAlgorithm : public rpc::Extension {
 public:
  /// Returns the names of the state tensors of a parameter, at most 3.
  virtual std::vector<std::string> slots() const { return {}; }
  /// Returns what is wrong with the options: bad_arguments, naming the option, its value and its range.
  virtual Result<void> check(const Custom& options) const = 0;
  /// Returns whether `step` takes sparse gradients. Without, they are refused before the step.
  virtual bool takes_sparse() const noexcept { return false; }
  /// Steps one parameter. Nothing is recorded by autograd, and the version counter is raised by the caller. What it
  /// throws fails the step with remote_exception and that text.
  virtual void step(const Custom& options, const CustomStep& step) const = 0;
};

/// Registers the code of an algorithm. A name twice, or after the worker has started, is an error of its start.
/// @param name  what `Custom::name` is, 1 to 128 printable characters
void add_algorithm(Registry& registry, std::string_view name, std::shared_ptr<const CustomAlgorithm> code);

/// Gives a Custom algorithm the code that `registry` has of its name; leaves others as they are.
/// Errors: bad_arguments (this worker has no such algorithm; the text lists those that it has).
Result<void> resolve(Algorithm& algorithm, const Registry& registry);

}  // namespace caftan::optim
