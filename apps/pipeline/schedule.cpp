#include "pipeline/schedule.hpp"

#include <algorithm>
#include <utility>

namespace caftan::pipeline {

Schedule::Schedule(ScheduleName name, std::size_t stages, std::size_t micro_batches)
    : name_(name), stages_(stages), micro_batches_(micro_batches, MicroBatch{.left = std::vector<bool>(stages)}) {}

bool Schedule::may_begin_forward(std::size_t stage) const {
  const Stage& here = stages_[stage];
  if (here.begun == micro_batches_.size() || here.begun != here.forwards) return false;
  if (stage > 0 && stages_[stage - 1].forwards <= here.begun) return false;
  return name_ == ScheduleName::all_forward_then_backward || here.held < stages_.size() - stage;
}

std::vector<Begin> Schedule::take() {
  std::vector<Begin> begins;
  const std::size_t through = stages_.back().forwards;
  const bool is_waiting = name_ == ScheduleName::all_forward_then_backward && through < micro_batches_.size();
  for (std::size_t i = 0; i < through && !is_waiting; ++i) {
    if (std::exchange(micro_batches_[i].has_begun_back, true)) continue;
    begins.push_back({.kind = Begin::Kind::backward, .micro_batch = i});
  }
  for (std::size_t stage = stages_.size(); stage-- > 0;) {
    if (!may_begin_forward(stage)) continue;
    Stage& here = stages_[stage];
    begins.push_back({.kind = Begin::Kind::forward, .stage = stage, .micro_batch = here.begun++});
    ++here.held;
  }
  return begins;
}

void Schedule::end_forward(std::size_t stage, std::size_t micro_batch) { stages_[stage].forwards = micro_batch + 1; }

void Schedule::end_backward_at(std::size_t stage, std::size_t micro_batch) {
  auto left = micro_batches_[micro_batch].left.begin() + static_cast<std::ptrdiff_t>(stage);
  if (!*left) --stages_[stage].held;
  *left = true;
}

void Schedule::end_backward(std::size_t micro_batch) {
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) end_backward_at(stage, micro_batch);
  micro_batches_[micro_batch].has_ended = true;
}

bool Schedule::is_done() const noexcept {
  return std::ranges::all_of(micro_batches_, [](const MicroBatch& one) { return one.has_ended; });
}

}  // namespace caftan::pipeline
