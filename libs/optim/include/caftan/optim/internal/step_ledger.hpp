/// `StepLedger`: the rules by which the owner of parameters runs, repeats or refuses steps. Requests of one optimizer
/// come one at a time; each may come twice. Start with `admit_step`.
#pragma once

#include <optional>

#include "caftan/base/result.hpp"
#include "caftan/optim/step_messages.hpp"

namespace caftan::optim {

/// How a request that is not refused is carried out.
enum class Admission {
  run,     ///< carry the request out, then report how it ended
  repeat,  ///< the request was carried out already: send the same reply again, change nothing
};

/// Threads: one at a time.
class StepLedger {
 public:
  /// Admits or refuses a step in one phase. A step that was prepared before is dropped. Errors: bad_arguments (a later
  /// step was run already).
  Result<Admission> admit_step(StepNumber step);
  /// Admits or refuses the first phase of a step. An earlier prepared step is dropped, because its step coordinator has
  /// given it up. Errors: bad_arguments (this step or a later one was run already).
  Result<Admission> admit_prepare(StepNumber step);
  /// Says what to do when the commit of a step in two phases arrives. Errors: bad_arguments (the step is not the one
  /// that is prepared here).
  Result<Admission> admit_commit(StepNumber step);
  /// Says what to do with an evaluation of a step by a closure. The first one of a later step drops what was prepared.
  /// Errors: bad_arguments (this step or a later one was run already; the evaluation is not the next one of the open
  /// step).
  Result<Admission> admit_search(StepNumber step, std::uint64_t evaluation);
  /// Drops a prepared step. Returns whether it was prepared here.
  bool abort(StepNumber step);

  // How what was admitted ended.
  void prepared(StepNumber step, const Result<Prepared>& outcome);
  /// An evaluation was taken. Where no other is wanted, the step was run.
  void searched(const SearchReply& reply);
  /// The open step by a closure was rolled back.
  void search_dropped() noexcept { search_.reset(); }
  void applied(StepNumber step, Result<StepDone> outcome);
  /// A saved state was loaded whose optimizer had run `step` last: the next step may have any number above it.
  void loaded(StepNumber step);

  /// Precondition of these getters: the matching request was admitted as `repeat`.
  const Prepared& prepared() const noexcept { return *prepared_; }
  const SearchReply& searched() const noexcept { return *search_; }
  const Result<StepDone>& done() const noexcept { return *done_; }
  /// Returns the last step that was run, also if it failed.
  StepNumber last() const noexcept { return last_; }
  /// Returns the last step that was made: one that failed does not count.
  StepNumber made() const noexcept { return made_; }
  /// Returns whether `step` is open, by a closure.
  bool is_open(StepNumber step) const noexcept { return search_ && search_->wants_another && search_->step == step; }

 private:
  StepNumber last_;
  StepNumber made_;
  std::optional<Result<StepDone>> done_;  // outcome of the step last_; none after a load
  std::optional<Prepared> prepared_;
  std::optional<SearchReply> search_;  // the last evaluation of a step by a closure
};

}  // namespace caftan::optim
