#include "closure_step.hpp"

#include <atomic>
#include <string>
#include <utility>

namespace caftan::optim {
namespace {

/// The optimizer whose closure runs on this thread.
thread_local const void* running_closure = nullptr;

/// Marks the code of a closure.
class InClosure {
 public:
  explicit InClosure(const void* optimizer) : before_(std::exchange(running_closure, optimizer)) {}
  InClosure(const InClosure&) = delete;
  InClosure& operator=(const InClosure&) = delete;
  ~InClosure() { running_closure = before_; }

 private:
  const void* const before_;
};

}  // namespace

Result<void> check_outside(const void* optimizer, std::string_view what) {
  if (running_closure != optimizer) return {};
  return Error(Errc::would_deadlock, std::string(what) +
                                         " inside of a closure of this optimizer, whose step has to end before it can "
                                         "begin: do it after the step");
}

/// The turn, which may come after its step was given up.
struct DistributedOptimizer::State::ClosureStep::Turn {
  enum class Phase { waiting, held, over };
  std::shared_ptr<Turns> turns;
  Promise<void> begun;
  std::atomic<Phase> phase{Phase::waiting};

  Turn(std::shared_ptr<Turns> of, std::weak_ptr<rpc::Caller> caller) : turns(std::move(of)), begun(std::move(caller)) {}
  void begin() {
    Phase expected = Phase::waiting;
    if (!phase.compare_exchange_strong(expected, Phase::held)) return turns->end();
    begun.set({});
  }
  void finish() {
    if (phase.exchange(Phase::over) == Phase::held) turns->end();
  }
};

DistributedOptimizer::State::ClosureStep::~ClosureStep() {
  if (open_) {
    // The owner puts its parameters back before it takes the next request.
    for (Future<void>& aborted : state_.call_decided<void>([step = report_.step](const auto& optimizer) {
           return optimizer.template rpc_async<&RemoteOptimizer::abort>(step);
         })) {
      aborted.forget();
    }
  }
  if (turn_) turn_->finish();
}

Result<void> DistributedOptimizer::State::ClosureStep::wait() {
  turn_ = std::make_shared<Turn>(state_.turns_, state_.caller_);
  Future<void> begun = turn_->begun.future();
  state_.turns_->take({[turn = turn_] { turn->begin(); },
                       [turn = turn_](const Error& error) {
                         turn->begun.set(Error(error.code(), error.worker(), "a step " + error.text()));
                       }});
  return std::move(begun).result();
}

Result<SearchReply> DistributedOptimizer::State::ClosureStep::evaluate(const Closure& closure, std::uint64_t number) {
  const Result<Evaluation> value = [&] {
    const InClosure inside(&state_);
    return closure();
  }();
  if (!value) return value.error();
  const auto& record = value->context.record();
  if (!record) return Error(Errc::bad_arguments, "the closure returned an autograd context that was moved away");
  if (Result<void> fits = check_context(*record); !fits) return fits.error();
  if (number == 1) report_.loss = value->loss;
  const Owner& owner = state_.owners_[0];
  const SearchOrder order{report_.step, number, value->loss, state_.rates_.lrs_of(owner.groups)};
  Future<SearchReply> reply;
  open_ = true;
  autograd::ContextView(record).bind(
      [&] { reply = owner.optimizer.with(state_.call_options()).rpc_async<&RemoteOptimizer::search>(order); })();
  return std::move(reply).result();
}

Result<StepReport> DistributedOptimizer::State::ClosureStep::run(const Closure& closure) {
  {
    const base::LockGuard lock(state_.mutex_);
    report_.step = state_.last_ = StepNumber{state_.last_.value + 1};
  }
  for (bool wanted = true; wanted;) {
    const Result<SearchReply> reply = evaluate(closure, ++report_.evaluations);
    if (!reply) return fail(reply.error());
    wanted = reply->wants_another;
    if (!wanted) report_.owners = {{state_.owners_[0].worker, StepDone{report_.step, reply->stepped}}};
  }
  open_ = false;
  const base::LockGuard lock(state_.mutex_);
  state_.report_ = report_;
  return report_;
}

Result<StepReport> DistributedOptimizer::State::ClosureStep::fail(const Error& error) {
  report_.owners = {{state_.owners_[0].worker, error}};
  {
    const base::LockGuard lock(state_.mutex_);
    state_.report_ = report_;
  }
  return Error(error.code(), error.worker(),
               "step " + std::to_string(report_.step.value) + " was given up in evaluation " +
                   std::to_string(report_.evaluations) + ", the parameters go back to where they were: " + error.text(),
               std::make_shared<Error>(error));
}

}  // namespace caftan::optim
