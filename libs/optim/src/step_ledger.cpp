#include "caftan/optim/internal/step_ledger.hpp"

#include <string>
#include <utility>

namespace caftan::optim {
namespace {

Error is_over(StepNumber step, StepNumber last) {
  return Error(Errc::bad_arguments, "step " + std::to_string(step.value) + " is over: this owner has run step " +
                                        std::to_string(last.value) + " already");
}

}  // namespace

Result<Admission> StepLedger::admit_step(StepNumber step) {
  if (step == last_ && done_) return Admission::repeat;
  if (step <= last_) return is_over(step, last_);
  prepared_.reset();
  return Admission::run;
}

Result<Admission> StepLedger::admit_prepare(StepNumber step) {
  if (step <= last_) return is_over(step, last_);
  if (prepared_ && prepared_->step == step) return Admission::repeat;
  prepared_.reset();
  return Admission::run;
}

Result<Admission> StepLedger::admit_commit(StepNumber step) {
  if (step == last_ && done_) return Admission::repeat;
  if (prepared_ && prepared_->step == step) return Admission::run;
  return Error(Errc::bad_arguments, "step " + std::to_string(step.value) + " is not prepared here");
}

bool StepLedger::abort(StepNumber step) {
  if (!prepared_ || prepared_->step != step) return false;
  prepared_.reset();
  return true;
}

void StepLedger::prepared(StepNumber step, const Result<Prepared>& outcome) {
  prepared_.reset();
  if (outcome) prepared_ = Prepared{step, outcome->gradients, outcome->squared_norm};
}

void StepLedger::applied(StepNumber step, Result<StepDone> outcome) {
  last_ = step;
  done_.emplace(std::move(outcome));
  prepared_.reset();
}

void StepLedger::loaded(StepNumber step) {
  last_ = step;
  done_.reset();
  prepared_.reset();
}

}  // namespace caftan::optim
