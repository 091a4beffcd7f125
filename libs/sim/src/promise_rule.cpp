#include "caftan/sim/internal/promise_rule.hpp"

#include <algorithm>

namespace caftan::sim {

PromiseRule::PromiseRule(std::uint32_t self, std::uint32_t partitions, Time lookahead)
    : self_(self), lookahead_(lookahead), promises_(partitions), reached_(partitions, Time{-1}) {
  promises_[self] = kNever;
  reached_[self] = kNever;
}

void PromiseRule::grant(Time border) noexcept {
  granted_ = border;
  has_reached_ = false;
}

void PromiseRule::resume(Time border) noexcept {
  for (Time& promise : promises_) promise = std::max(promise, border);
}

bool PromiseRule::on_promise(std::uint32_t partition, Time promise, Time reached) {
  if (promise < promises_[partition] || reached > promise) return false;
  promises_[partition] = promise;
  reached_[partition] = std::max(reached_[partition], reached);
  return true;
}

Time PromiseRule::least_promise() const noexcept { return *std::min_element(promises_.begin(), promises_.end()); }

Time PromiseRule::bound() const noexcept { return std::min(granted_, least_promise()); }

Time PromiseRule::promise(Time next) const noexcept { return later(std::min(next, least_promise()), lookahead_); }

bool PromiseRule::may_reach(Time next) const noexcept { return next >= granted_ && least_promise() >= granted_; }

bool PromiseRule::is_at_border() const noexcept {
  return has_reached_ &&
         std::all_of(reached_.begin(), reached_.end(), [this](Time reached) { return reached >= granted_; });
}

bool PromiseRule::waits_for(std::uint32_t partition) const noexcept {
  return partition != self_ &&
         (has_reached_ ? reached_[partition] < granted_ : promises_[partition] == least_promise());
}

}  // namespace caftan::sim
