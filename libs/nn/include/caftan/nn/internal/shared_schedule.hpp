/// `SharedSchedule`: which contexts of the trainers of a shared module may read, which version, and when their
/// gradients are applied. Events go in, what to do comes out; no tensors, clocks or threads. Start with `on_call`.
/// Rules CM-1 to CM-24: docs/protocols/consistency.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "caftan/base/error.hpp"
#include "caftan/base/ids.hpp"
#include "caftan/base/result.hpp"
#include "caftan/nn/consistency.hpp"
#include "caftan/nn/step_log.hpp"

namespace caftan::nn {

/// What the schedule asks for, to be done in the order of the list.
namespace shared_action {
/// Call VersionStore::pin: `version`, which is the present one, has that many more readers.
struct Pin {
  ModelVersion version;
  std::uint32_t readers = 1;
};
/// Call VersionStore::unpin: `version` has one reader less.
struct Unpin {
  ModelVersion version;
};
/// Run that many waiting calls of the context, each on `version`; report the end of each by `on_return`.
struct Run {
  ContextId context;
  ModelVersion version;
  std::uint32_t calls = 1;
};
/// Run that many waiting evaluations on `version`; report the end of each by `on_evaluated`.
struct RunEvaluations {
  ModelVersion version;
  std::uint32_t count = 1;
};
/// Answer that many waiting calls of the context with the error.
struct RefuseCalls {
  ContextId context;
  std::uint32_t calls = 1;
  Error why;
};
/// Answer the step of the context with the error; its gradients are dropped.
struct RefuseStep {
  ContextId context;
  Error why;
};
/// Add the gradients in the order of the record, divide by their number, step once; report the end by `on_applied`.
struct Apply {
  StepRecord step;
};
/// Answer the context's step with success: the step that has its gradients is applied.
struct AnswerStep {
  ContextId context;
  ModelVersion step;
};
/// Call `on_straggler_timeout(timer)` when ConsistencyOptions::straggler_timeout has passed.
struct StartTimer {
  std::uint64_t timer = 0;
};
}  // namespace shared_action

using SharedAction = std::variant<shared_action::Pin, shared_action::Unpin, shared_action::Run,
                                  shared_action::RunEvaluations, shared_action::RefuseCalls, shared_action::RefuseStep,
                                  shared_action::Apply, shared_action::AnswerStep, shared_action::StartTimer>;
using SharedActions = std::vector<SharedAction>;

/// Threads: one at a time.
class SharedSchedule {
 public:
  /// @param trainers  how many there are, all of them expected: 0, 1, ...
  /// @param first     version of the parameters now
  /// Errors: those of check_consistency.
  static Result<SharedSchedule> make(const ConsistencyOptions& options, std::uint32_t trainers,
                                     ModelVersion first = {});

  // ---- a context of a trainer

  /// A call of the context has come. It runs, waits, or is refused: bad_arguments (a trainer or context that cannot
  /// call), peer_down (the trainer is gone), lease_conflict. One that waits runs when its turn comes, also if its
  /// caller waits no longer.
  [[nodiscard]] SharedActions on_call(const ContextId& context, TrainerNumber trainer);
  /// A call that ran has returned or thrown.
  [[nodiscard]] SharedActions on_return(const ContextId& context);
  /// The context's gradients are here, checked. They are applied, now or later, or refused: bad_arguments (nothing was
  /// read, a call still runs, or the context has stepped already), stale_gradient, round_closed.
  /// @param batch  what the trainer calls its input, for the log
  [[nodiscard]] SharedActions on_step(const ContextId& context, std::uint64_t batch);
  /// The context was released or aborted, or its home is lost. Call it once for each context; afterwards only
  /// `on_return` may be called for the context.
  [[nodiscard]] SharedActions on_end(const ContextId& context);

  // ---- the module

  /// The step that `Apply` asked for has ended. After an error the parameters are as they were before.
  [[nodiscard]] SharedActions on_applied(const Result<void>& outcome);
  [[nodiscard]] SharedActions on_straggler_timeout(std::uint64_t timer);
  /// The trainer is lost, or has left: its contexts end, no later one is served.
  [[nodiscard]] SharedActions on_gone(TrainerNumber trainer);

  /// A call outside of training has come: it reads a version and takes part in nothing else.
  [[nodiscard]] SharedActions on_evaluate();
  [[nodiscard]] SharedActions on_evaluated(ModelVersion version);

  /// Returns how many steps were applied.
  ModelVersion version() const noexcept { return version_; }
  /// Returns the trainers whose gradients the open round waits for; none in the other modes, and while a step is
  /// applied.
  std::vector<TrainerNumber> awaited() const;
  /// Returns how many contexts are known: each from its first call until it has ended and its calls have returned.
  std::size_t contexts() const noexcept { return contexts_.size(); }

 private:
  enum class Phase : std::uint8_t {
    waiting,    // for its first read
    open,       // has read a version
    delivered,  // its gradients are here
    over,       // they were applied or refused
  };
  struct Entry {
    TrainerNumber trainer;
    Phase phase = Phase::waiting;
    bool ended = false;
    bool is_pinned = false;
    std::uint32_t waiting = 0;  // calls
    std::uint32_t running = 0;  // calls
    std::uint64_t batch = 0;
    ModelVersion read{};
  };

  SharedSchedule(const ConsistencyOptions& options, std::uint32_t trainers, ModelVersion first)
      : options_(options), version_(first), live_(trainers, true) {}

  Error why_refused(const ContextId& context, TrainerNumber trainer) const;
  Error why_no_step(const ContextId& context) const;
  bool has_older(const ContextId& context) const;
  bool may_open(const Entry& entry) const;
  void open(const ContextId& context, Entry& entry, SharedActions& actions);
  void admit(SharedActions& actions);
  void retire(const ContextId& context, SharedActions& actions);
  void finish(const ContextId& context, SharedActions& actions);
  void end(const ContextId& context, const Error& why, SharedActions& actions);
  void step_next(SharedActions& actions);
  void close_round(SharedActions& actions);
  bool has_delivered(TrainerNumber trainer) const;
  bool is_complete() const;
  void apply(const std::vector<ContextId>& contexts, SharedActions& actions);

  ConsistencyOptions options_;
  ModelVersion version_;
  std::vector<bool> live_;  // of each trainer
  std::map<ContextId, Entry> contexts_;
  std::deque<ContextId> waiting_;      // in phase waiting, by arrival
  std::deque<ContextId> delivered_;    // contexts in phase delivered whose gradients are not being applied, by arrival
  std::optional<ContextId> holder_;    // holder of the lease, in mode locked
  std::optional<StepRecord> applied_;  // the step that is being applied
  std::uint64_t timer_ = 0;            // the last one
  bool timer_runs_ = false;
  bool is_late_ = false;           // the timer of this round has ended
  std::uint32_t evaluations_ = 0;  // that wait
};

}  // namespace caftan::nn
