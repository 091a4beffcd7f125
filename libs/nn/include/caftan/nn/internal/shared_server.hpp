/// `SharedServer`: what the actor of a shared module decides. Requests of trainers and the ends of jobs go in; replies,
/// and the jobs that `SharedModuleJobs` has, come out. It asks `SharedSchedule` who reads and steps when, and keeps
/// what belongs to each reading: its copy of the module, its door, its gradients. Start with `handle`.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "caftan/autograd/gradient_book.hpp"
#include "caftan/base/clock.hpp"
#include "caftan/nn/internal/shared_copy.hpp"
#include "caftan/nn/internal/shared_schedule.hpp"
#include "caftan/nn/shared_module.hpp"
#include "caftan/rpc/future.hpp"
#include "caftan/rpc/request.hpp"

namespace caftan::nn {

/// An evaluation: 1, 2, ...
struct EvaluationId {
  std::uint64_t value = 0;
  auto operator<=>(const EvaluationId&) const = default;
};
/// Who reads a version.
using Reader = std::variant<ContextId, EvaluationId>;

/// What an evaluation reads, until its end is reported.
struct OpenedEvaluation {
  RRef<ServedModule> module;
  ModelVersion version;
  EvaluationId evaluation;
};

/// One gradient of a step.
struct Delivered {
  std::vector<at::Tensor> gradients;       ///< of the trained parameters, undefined where there is none
  std::shared_ptr<const SharedCopy> read;  ///< whose buffers the context has written
};

/// What happens to a shared module: requests first, then the ends of jobs.
namespace shared_event {
struct Join {
  TrainerNumber trainer;
  std::string worker;
  Promise<void> reply;
};
/// The trainer's last handle is gone, or its worker is lost.
struct Gone {
  TrainerNumber trainer;
};
/// A context wants to read.
struct Open {
  ContextId context;
  TrainerNumber trainer;
  Promise<Reading> reply;
};
struct Step {
  ContextId context;
  TrainerNumber trainer;
  std::uint64_t batch = 0;
  autograd::GradientBook book;  ///< the context's gradients at this worker
  Promise<StepResult> reply;
  std::optional<StepRates> rates{};      ///< of the trainer's schedule
  std::weak_ptr<rpc::BeginGate> call{};  ///< the call that waits for the reply
};
/// The caller of the context's step, which came before, waits until a little after that time.
struct Waits {
  ContextId context;
  base::TimePoint answer_by;
};
/// The context is over at this worker.
struct Over {
  ContextId context;
};
struct Evaluate {
  Promise<OpenedEvaluation> reply;
};
/// The evaluation is over.
struct Evaluated {
  EvaluationId evaluation;
};
struct AskStatus {
  Promise<SharedStatus> reply;
};
/// What `SharedModuleJobs::copy` was asked for has ended.
struct Copied {
  Reader reader;
  Result<std::shared_ptr<SharedCopy>> copy;
};
/// What `SharedModuleJobs::check` was asked for has ended.
struct Checked {
  ContextId context;
  Result<void> outcome;
};
/// What `SharedModuleJobs::apply` was asked for has ended.
struct Applied {
  Result<void> outcome;
};
/// No call is inside of the reader's closed door any more.
struct Emptied {
  Reader reader;
};
/// The time that `SharedModuleJobs::start_timer` was asked for has passed.
struct TimePassed {
  std::uint64_t timer = 0;
};
/// The time that `SharedModuleJobs::wake_at` was asked for has come.
struct Woken {
  base::TimePoint at;
};
}  // namespace shared_event

/// One of them.
using SharedEvent =
    std::variant<shared_event::Join, shared_event::Gone, shared_event::Open, shared_event::Step, shared_event::Waits,
                 shared_event::Over, shared_event::Evaluate, shared_event::Evaluated, shared_event::AskStatus,
                 shared_event::Copied, shared_event::Checked, shared_event::Applied, shared_event::Emptied,
                 shared_event::TimePassed, shared_event::Woken>;

/// The work that a SharedServer asks for. Each call begins a job and does not block; its end comes back as an event.
class SharedModuleJobs {
 public:
  virtual ~SharedModuleJobs() = default;
  /// Gives a copy the values that the module has now. @param copy  null: make one
  virtual void copy(const Reader& reader, std::shared_ptr<SharedCopy> copy) = 0;
  /// Checks whether a step can be made by these gradients, at these rates. Nothing changes.
  virtual void check(const ContextId& context, std::vector<at::Tensor> gradients,
                     const std::optional<StepRates>& rates) = 0;
  /// Writes the step into the log and makes it: of the module's values all change, or none.
  /// @param delivered  in the order of the record's contributions
  virtual void apply(const StepRecord& step, std::vector<Delivered> delivered) = 0;
  /// Closes the door of the reader's copy.
  virtual void close(const Reader& reader, const SharedCopy& copy) = 0;
  virtual void start_timer(std::uint64_t timer) = 0;
  virtual void wake_at(base::TimePoint at) = 0;
};

/// Threads: one at a time.
class SharedServer {
 public:
  /// @param module   the module itself, with a closed door
  /// @param readers  what the doors of all copies look at
  /// @param jobs     outlives this
  /// Errors: those of check_consistency.
  static Result<SharedServer> make(const SharedOptions& options, std::shared_ptr<SharedCopy> module,
                                   std::shared_ptr<ReadersCount> readers, SharedModuleJobs& jobs);

  void handle(SharedEvent& event);

  /// Returns how many readings are known: contexts that have asked to read, and evaluations.
  std::size_t readings() const noexcept { return contexts_.size() + evaluations_.size(); }
  /// Returns how many copies of the module wait for a reader.
  std::size_t free_copies() const noexcept { return free_.size(); }

 private:
  enum class Phase : std::uint8_t {
    waiting,    // its mode does not let it read yet
    copying,    // a job gives its copy the values
    open,       // it reads
    failed,     // there was no copy for it
    checking,   // a job looks at its gradients
    delivered,  // they are applied next, or with the round
    closing,    // it is over, and calls of it still run
  };
  /// What belongs to a context.
  struct Entry {
    TrainerNumber trainer{};
    Phase phase = Phase::waiting;
    bool is_over = false;
    bool counted = false;       // in readers_
    std::uint32_t running = 0;  // calls, as the schedule counts them
    std::uint64_t batch = 0;
    std::optional<StepRates> rates{};
    ModelVersion version{};
    std::shared_ptr<SharedCopy> copy{};
    Error why_failed{};
    std::vector<Promise<Reading>> waiting{};
    std::vector<at::Tensor> gradients{};
    std::optional<Promise<StepResult>> step{};
    std::weak_ptr<rpc::BeginGate> call{};      // that waits for the step
    base::TimePoint answer_by = base::kNever;  // the step, whose caller waits little longer
  };
  struct Evaluation {
    ModelVersion version{};
    std::shared_ptr<SharedCopy> copy{};
    std::optional<Promise<OpenedEvaluation>> reply{};
  };
  struct Seat {
    std::string worker;
    bool is_gone = false;
  };

  SharedServer(const SharedOptions& options, SharedSchedule schedule, std::shared_ptr<SharedCopy> module,
               std::shared_ptr<ReadersCount> readers, SharedModuleJobs& jobs);

  void on(shared_event::Join& event);
  void on(shared_event::Gone& event);
  void on(shared_event::Open& event);
  void on(shared_event::Step& event);
  void on(shared_event::Waits& event);
  void on(shared_event::Woken& event);
  void on(shared_event::Over& event);
  void on(shared_event::Evaluate& event);
  void on(shared_event::Evaluated& event);
  void on(shared_event::AskStatus& event);
  void on(shared_event::Copied& event);
  void on(shared_event::Checked& event);
  void on(shared_event::Applied& event);
  void on(shared_event::Emptied& event);
  void on(shared_event::TimePassed& event);

  void perform(SharedActions actions);
  void perform(const shared_action::Pin&) {}    // each reader has a copy of its own
  void perform(const shared_action::Unpin&) {}  // which goes with the reader
  void perform(const shared_action::Run& action);
  void perform(const shared_action::RunEvaluations& action);
  void perform(const shared_action::RefuseCalls& action);
  void perform(const shared_action::RefuseStep& action);
  void perform(const shared_action::Apply& action);
  void perform(const shared_action::AnswerStep& action);
  void perform(const shared_action::StartTimer& action);

  void start_copy(const Reader& reader);
  void on_copied(const ContextId& context, Result<std::shared_ptr<SharedCopy>> copy);
  void on_copied(const EvaluationId& id, Result<std::shared_ptr<SharedCopy>> copy);
  void admit(const ContextId& context, Entry& entry);
  void answer_readers(Entry& entry);
  void fail_readers(Entry& entry, const Error& why);
  /// The context is over, or its trainer gone: ends its reading where no job and no call holds it, and its step where
  /// the caller is lost.
  void end(const ContextId& context);
  /// Reports the calls of the context that ran as returned.
  void report_returned(const ContextId& context, Entry& entry);
  /// Keeps a copy that has no reader for the next one, or drops it where there are enough.
  void give_back(std::shared_ptr<SharedCopy> copy);
  /// Forgets the context and gives its copy back.
  void forget(const ContextId& context);
  void apply_next();
  void wake_for(base::TimePoint at);
  Error still_open() const;

  const ConsistencyMode mode_;
  SharedSchedule schedule_;
  const std::shared_ptr<SharedCopy> module_;
  const std::shared_ptr<ReadersCount> readers_;
  SharedModuleJobs& jobs_;
  std::map<ContextId, Entry> contexts_;
  std::map<EvaluationId, Evaluation> evaluations_;
  std::deque<Promise<OpenedEvaluation>> waiting_evaluations_;
  EvaluationId last_evaluation_;
  std::vector<std::shared_ptr<SharedCopy>> free_;
  std::vector<std::optional<Seat>> seats_;  // of each trainer
  std::vector<std::uint64_t> staleness_;
  std::uint32_t copying_ = 0;               // jobs that read the module
  std::optional<StepRecord> next_;          // a step that waits for them
  std::uint32_t contributions_ = 0;         // of the step that is being applied
  base::TimePoint wake_at_ = base::kNever;  // the earliest time that jobs_ was asked to wake this at
};

}  // namespace caftan::nn
