/// Steps of a DistributedOptimizer by a closure, on the thread that asks for them.
#pragma once

#include <string_view>

#include "distributed_state.hpp"

namespace caftan::optim {

/// Checks whether a step can take its gradients from the context.
Result<void> check_context(const autograd::ContextRecord& context);

/// Errors: would_deadlock (this code is part of a closure of `optimizer`, whose step has to end before `what` can
/// begin).
Result<void> check_outside(const void* optimizer, std::string_view what);

/// One step by a closure: has the turn while it lives. A step that has not ended with the last evaluation is given up.
/// Threads: one at a time.
class DistributedOptimizer::State::ClosureStep {
 public:
  explicit ClosureStep(State& state) : state_(state) {}
  ClosureStep(const ClosureStep&) = delete;
  ClosureStep& operator=(const ClosureStep&) = delete;
  ~ClosureStep();

  /// Waits for the turn. Errors: those of waits, timeout.
  Result<void> wait();
  /// Evaluates the closure as often as the owner asks for.
  /// Errors: those of the closure and of RemoteOptimizer::search.
  Result<StepReport> run(const Closure& closure);

 private:
  struct Turn;
  Result<SearchReply> evaluate(const Closure& closure, std::uint64_t number);
  Result<StepReport> fail(const Error& error);

  State& state_;
  std::shared_ptr<Turn> turn_;
  StepReport report_;
  bool open_ = false;  // the owner may have moved its parameters
};

}  // namespace caftan::optim
