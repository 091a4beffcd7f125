/// The inside of a DistributedOptimizer: its owners, and the queue that runs steps, saves and loads one after the
/// other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "caftan/autograd/internal/context_record.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/optim/distributed_optimizer.hpp"
#include "decided_call.hpp"
#include "group_rates.hpp"
#include "owner.hpp"
#include "saved_state.hpp"
#include "turns.hpp"

namespace caftan::optim {

class DistributedOptimizer::State : public std::enable_shared_from_this<State> {
 public:
  /// @param caller  the step coordinator's worker, whose executor waits use
  State(std::weak_ptr<rpc::Caller> caller, std::vector<Owner> owners, std::vector<Algorithm> algorithms,
        const StepOptions& options)
      : caller_(std::move(caller)),
        owners_(std::move(owners)),
        options_(options),
        turns_(std::make_shared<Turns>(caller_, wait())),
        rates_(std::move(algorithms)) {}

  Future<StepReport> step(std::shared_ptr<autograd::ContextRecord> context);
  Result<StepReport> step(const Closure& closure);
  Future<wire::Bytes> save();
  Future<void> load(wire::ByteView state);
  /// Adds a group, of which each owner has a share: at all owners or, on an error, at none.
  Future<void> add_group(std::vector<Share> shares, Algorithm algorithm);

  StepReport last_report() const;
  double clip_value() const noexcept { return options_.clip_value; }
  GroupRates& rates() noexcept { return rates_; }

 private:
  struct OpenStep;
  using Open = std::shared_ptr<OpenStep>;

  void begin_step(const Open& open);
  void step_at_once(const Open& open);
  void prepare(const Open& open);
  void on_prepared(const Open& open, std::vector<Result<Prepared>> outcomes);
  /// Ends a prepared step without its second phase: every owner drops it.
  /// @param verdict  why the step ends; ok if the reason is an owner's outcome
  void give_up(const Open& open, const std::vector<Result<Prepared>>& outcomes, Result<void> verdict);
  void commit(const Open& open);
  void on_committed(const Open& open, std::size_t owner, const Result<StepDone>& outcome);
  /// The caller of a committed step has waited long enough: answers with the replies that are known by now.
  void stop_waiting(const Open& open);
  void finish(const Open& open, std::vector<Result<StepDone>> outcomes, Result<void> verdict);
  void complete(const Open& open, Result<StepReport> outcome);
  /// Answers the caller of a step, unless the caller has been answered already.
  void answer(const Open& open, Result<StepReport> outcome);
  class ClosureStep;
  struct Asked;
  struct OpenLoad;
  void begin_load(const std::shared_ptr<OpenLoad>& open);
  /// Asks an owner for its state. One that is larger than a message comes as a tensor.
  Future<OwnerState> cut(const Owner& owner) const;
  /// Sends an owner its state, in the same way.
  Future<void> stage(const Owner& owner, wire::Bytes part) const;
  /// Returns the bytes of a saved state with the parts of all owners.
  Result<wire::Bytes> write_saved(std::vector<Result<OwnerState>> parts);
  Result<void> check_saved(const SavedState& saved) const;
  void take_states(const std::shared_ptr<OpenLoad>& open);
  struct OpenGroup;
  void stage_group(const std::shared_ptr<OpenGroup>& open);
  void take_group(const std::shared_ptr<OpenGroup>& open);
  StepOrder order_for(const Owner& owner, StepNumber step) const;
  bool has_two_phases() const noexcept { return options_.atomic || options_.clip_norm > 0; }
  CallOptions call_options() const { return {.timeout = options_.timeout, .fail_when_full = false}; }
  /// Returns how long a caller waits for the replies of owners; none = without a limit.
  std::optional<base::Duration> wait() const;
  /// Returns the moment until which the running code's caller waits.
  base::TimePoint wait_until() const;
  /// Calls each owner's optimizer with `start(optimizer)`, as a decided call, which no time-out or cancel stops (OP-8).
  /// `start` is copied.
  template <class T, class F>
  std::vector<Future<T>> call_decided(F start) const {
    return call_all<T>([&](const Owner& owner) {
      return DecidedCall<T>::make(caller_, [start, optimizer = owner.optimizer](const CallOptions& options) {
        return start(optimizer.with(options));
      });
    });
  }
  /// Calls `start(owner)` for each owner and returns the futures.
  template <class T, class F>
  std::vector<Future<T>> call_all(F start) const {
    std::vector<Future<T>> futures;
    futures.reserve(owners_.size());
    for (const Owner& owner : owners_) futures.push_back(start(owner));
    return futures;
  }

  const std::weak_ptr<rpc::Caller> caller_;
  std::vector<Owner> owners_;  // read and changed only by the job that has its turn
  const StepOptions options_;
  const std::shared_ptr<Turns> turns_;

  GroupRates rates_;

  mutable base::Mutex mutex_;
  StepNumber last_ CAFTAN_GUARDED_BY(mutex_);
  StepReport report_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::optim
