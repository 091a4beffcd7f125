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

Result<Admission> StepLedger::admit_search(StepNumber step, std::uint64_t evaluation) {
  if (search_ && search_->step == step && search_->evaluation == evaluation) return Admission::repeat;
  if (step <= last_) return is_over(step, last_);
  const std::uint64_t next = is_open(step) ? search_->evaluation + 1 : 1;
  if (evaluation != next) {
    return Error(Errc::bad_arguments, "evaluation " + std::to_string(evaluation) + " of step " +
                                          std::to_string(step.value) + " does not follow here: the next one is " +
                                          std::to_string(next));
  }
  prepared_.reset();
  return Admission::run;
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

void StepLedger::searched(const SearchReply& reply) {
  search_ = reply;
  if (!reply.wants_another) {
    last_ = made_ = reply.step;
    done_.emplace(StepDone{reply.step, reply.stepped});
  }
}

void StepLedger::applied(StepNumber step, Result<StepDone> outcome) {
  last_ = step;
  if (outcome) made_ = step;
  done_.emplace(std::move(outcome));
  prepared_.reset();
}

void StepLedger::loaded(StepNumber step) {
  last_ = made_ = step;
  done_.reset();
  prepared_.reset();
  search_.reset();
}

}  // namespace caftan::optim
