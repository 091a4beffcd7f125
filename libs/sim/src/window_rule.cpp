#include "caftan/sim/internal/window_rule.hpp"

#include <algorithm>

namespace caftan::sim {

WindowRule::WindowRule(std::uint32_t self, std::uint32_t partitions, Time lookahead)
    : self_(self),
      lookahead_(lookahead),
      missing_(partitions),
      has_reported_(partitions),
      earliest_(partitions, kNever) {}

bool WindowRule::on_report(std::uint32_t partition, const Report& report) {
  if (has_reported_[partition] || report.sent.size() != earliest_.size()) return false;
  has_reported_[partition] = true;
  --missing_;
  earliest_[partition] = std::min(earliest_[partition], report.next);
  // What was sent counts at its receiver.
  for (std::size_t to = 0; to < earliest_.size(); ++to) earliest_[to] = std::min(earliest_[to], report.sent[to]);
  return true;
}

bool WindowRule::is_at_border() const noexcept {
  return std::all_of(earliest_.begin(), earliest_.end(), [this](Time least) { return least >= granted_; });
}

Time WindowRule::bound() const noexcept {
  Time bound = granted_;
  if (earliest_.size() == 1) return bound;
  for (std::uint32_t other = 0; other < earliest_.size(); ++other) {
    // An event of its own comes back at the earliest by way of another partition.
    const Time least = later(earliest_[other], lookahead_);
    bound = std::min(bound, other == self_ ? later(least, lookahead_) : least);
  }
  return bound;
}

void WindowRule::begin_round() {
  ++round_;
  missing_ = static_cast<std::uint32_t>(earliest_.size());
  std::fill(has_reported_.begin(), has_reported_.end(), false);
  std::fill(earliest_.begin(), earliest_.end(), kNever);
}

}  // namespace caftan::sim
