/// `OwnedOptimizer`: the parameters of one worker under a DistributedOptimizer, and the jobs that step these parameters
/// in turn with the objects to which they belong. `StepLedger` decides what runs when; `RemoteOptimizer` is the caller.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "caftan/optim/local_optimizer.hpp"
#include "caftan/optim/step_messages.hpp"
#include "caftan/rpc/hosted_object.hpp"

namespace caftan::optim {

/// Threads: one job at a time, on any thread.
class OwnedOptimizer : public std::enable_shared_from_this<OwnedOptimizer> {
 public:
  /// Parameters that take their turns on one strand.
  struct Turn {
    std::shared_ptr<rpc::Strand> strand;
    std::vector<std::size_t> parameters;  ///< by number
  };

  /// @param objects  the values of the spec's references, in order
  /// Errors: those of LocalOptimizer::make; wrong_type (a value that is no tensor).
  static Result<std::shared_ptr<OwnedOptimizer>> make(const OptimizerSpec& spec,
                                                      const std::vector<std::shared_ptr<rpc::HostedObject>>& objects);

  std::span<const at::Tensor> parameters() const noexcept { return optimizer_.parameters(); }

  /// Clips by value, checks, and keeps what `apply` is going to step by. Changes no parameter and no state.
  /// @param momenta  of each group, or empty: as they are
  /// Errors: those of LocalOptimizer::prepare; bad_arguments (learning rates, momenta).
  Result<Prepared> prepare(const StepOrder& order, std::vector<at::Tensor> gradients, const Momenta& momenta = {});
  /// Forgets what was prepared.
  void drop() noexcept { gradients_.clear(); }
  /// Multiplies the prepared gradients by `scale` and steps: each turn's parameters on its strand, one strand after the
  /// other. Precondition: prepared.
  /// @param done  called once, on any thread, possibly inside the last turn: must not block
  void apply(StepNumber step, double scale, base::Executor& executor, std::function<void(Result<StepDone>)> done);

  /// Takes an evaluation of a step by a closure, and moves the parameters of each turn on its strand. After an error
  /// the step is rolled back. @param done  as of `apply`
  void search(const SearchOrder& order, std::vector<at::Tensor> gradients, base::Executor& executor,
              std::function<void(Result<SearchReply>)> done);
  /// Gives a step by a closure up. Precondition: is_searching(). @param done  as of `apply`
  void roll_back(base::Executor& executor, std::function<void()> done);
  bool is_searching() const noexcept { return optimizer_.is_searching(); }

  Result<wire::Bytes> save() const { return optimizer_.save(); }
  /// Checks a saved state by loading it into a copy of the optimizer, which becomes the optimizer in `take_state`.
  /// Errors: those of LocalOptimizer::load.
  Result<void> stage_state(wire::ByteView bytes);
  /// Checks a group by adding it to a copy of the optimizer, which becomes the optimizer in `take_state`.
  /// @param objects  the values of the group's references, in order
  /// Errors: those of make and LocalOptimizer::add_param_group.
  Result<void> stage_group(const OptimizerSpec::Group& group,
                           const std::vector<std::shared_ptr<rpc::HostedObject>>& objects);
  /// Precondition: staged.
  void take_state() noexcept {
    optimizer_ = std::move(staged_->optimizer);
    turns_ = std::move(staged_->turns);
    staged_.reset();
  }
  void drop_state() noexcept { staged_.reset(); }
  bool has_staged_state() const noexcept { return staged_.has_value(); }

 private:
  explicit OwnedOptimizer(LocalOptimizer optimizer) : optimizer_(std::move(optimizer)) {}
  Result<void> check_rates(const std::vector<double>& lrs, const Momenta& momenta) const;
  /// Sets the given momenta. Returns those before.
  Momenta exchange_momenta(const Momenta& momenta);
  Result<Prepared> prepare_gradients(const StepOrder& order, std::vector<at::Tensor> gradients);
  struct Visit;
  struct Staged {
    LocalOptimizer optimizer;
    std::vector<Turn> turns;
  };
  /// Calls `job` with the parameters of each turn on its strand, one strand after the other, up to the first error.
  void visit_turns(base::Executor& executor, std::function<Result<void>(std::span<const std::size_t>)> job,
                   std::function<void(Result<void>)> done);
  void run_turn(const std::shared_ptr<Visit>& visit);

  LocalOptimizer optimizer_;
  std::vector<Turn> turns_;
  double clip_value_ = 0;
  std::vector<at::Tensor> gradients_;
  std::optional<Staged> staged_;
};

}  // namespace caftan::optim
