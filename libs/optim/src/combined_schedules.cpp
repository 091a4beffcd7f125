#include "caftan/optim/combined_schedules.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "option_check.hpp"

namespace caftan::optim {

CombinedSchedule::CombinedSchedule(const char* name, LearningRates& optimizer, Schedules parts)
    : AnySchedule(optimizer), parts_(std::move(parts)) {
  const auto refuse = [name](const std::string& why) {
    throw RpcException(Error(Errc::bad_arguments, std::string(name) + ": " + why));
  };
  if (parts_.empty()) refuse("it has no schedule; at least one is needed");
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i]) refuse("schedule " + std::to_string(i) + " is empty");
    if (&parts_[i]->optimizer() != &optimizer) refuse("schedule " + std::to_string(i) + " is over another optimizer");
  }
}

ScheduleState CombinedSchedule::state() const {
  ScheduleState state = AnySchedule::state();
  for (const auto& part : parts_) state.parts.push_back(part->state());
  return state;
}

Result<void> CombinedSchedule::check(const ScheduleState& state) const {
  if (Result<void> fits = AnySchedule::check(state); !fits) return fits;
  if (state.parts.size() != parts_.size()) {
    return Error(Errc::bad_arguments, "the saved schedule has " + std::to_string(state.parts.size()) +
                                          " parts, here are " + std::to_string(parts_.size()));
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (Result<void> fits = parts_[i]->check(state.parts[i]); !fits) return fits;
  }
  return {};
}

void CombinedSchedule::take(const ScheduleState& state) {
  AnySchedule::take(state);
  for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i]->take(state.parts[i]);
}

// ---- SequentialLR

SequentialLR::SequentialLR(LearningRates& optimizer, Schedules parts, std::vector<std::int64_t> milestones)
    : CombinedSchedule("SequentialLR", optimizer, std::move(parts)), milestones_(std::move(milestones)) {
  OptionCheck check("SequentialLR");
  check.require(milestones_.size() + 1 == this->parts(), "the number of milestones",
                static_cast<double>(milestones_.size()),
                "one less than that of the schedules, " + std::to_string(this->parts()));
  std::int64_t before = 0;
  for (const std::int64_t milestone : milestones_) {
    check.require(milestone > before, "a milestone", static_cast<double>(milestone), "> " + std::to_string(before));
    before = milestone;
  }
  check.or_throw();
  begin();
}

void SequentialLR::begin() {
  // Making the parts has changed the rates.
  for (std::size_t group = 0; group < groups(); ++group) rates().set_lr(group, base_lr(group));
  begin_part(0);
}

void SequentialLR::restart() {
  set_epoch(0);
  restart_part(0);
}

void SequentialLR::step() {
  const std::int64_t now = epoch() + 1;
  const auto after = std::upper_bound(milestones_.begin(), milestones_.end(), now);
  const auto part = static_cast<std::size_t>(after - milestones_.begin());
  if (part > 0 && milestones_[part - 1] == now) {
    restart_part(part);
  } else {
    step_part(part);
  }
  set_epoch(now);
}

// ---- ChainedScheduler

ChainedScheduler::ChainedScheduler(LearningRates& optimizer, Schedules parts)
    : CombinedSchedule("ChainedScheduler", optimizer, std::move(parts)) {}

void ChainedScheduler::begin() {
  for (std::size_t part = 0; part < parts(); ++part) begin_part(part);
}

void ChainedScheduler::restart() {
  set_epoch(0);
  restart_part(0);
  for (std::size_t part = 1; part < parts(); ++part) begin_part(part);
}

void ChainedScheduler::step() {
  for (std::size_t part = 0; part < parts(); ++part) step_part(part);
  set_epoch(epoch() + 1);
}

}  // namespace caftan::optim
