#include "caftan/sim/internal/grant_rule.hpp"

#include <algorithm>
#include <cmath>

#include "caftan/base/settings_io.hpp"

namespace caftan::sim {

Result<GrantRule> GrantRule::make(const GrantOptions& options, std::uint32_t partitions, Time from) {
  GrantRule rule;
  const auto wrong = [](const std::string& key, double value, const std::string& why) {
    return Error(Errc::invalid_config, key + " = " + format_number(value) + ": " + why);
  };
  const auto read = [&](const char* key, double units, Time& into) -> Result<void> {
    const Result<Time> time = time_of(units);
    if (!time) return wrong(key, units, time.error().text());
    into = *time;
    return {};
  };
  if (auto done = read("end_time", options.end_time, rule.end_); !done) return done.error();
  if (rule.end_ <= Time{}) return wrong("end_time", options.end_time, "it must be more than 0");
  if (rule.end_ <= from)
    return wrong("end_time", options.end_time, "the checkpoint is at " + to_string(from) + " already");
  if (auto done = read("checkpoint.every", options.checkpoint_every, rule.checkpoint_every_); !done)
    return done.error();
  if (options.checkpoint_every > 0 && rule.checkpoint_every_ == Time{})
    return wrong("checkpoint.every", options.checkpoint_every, "it is less than one tick");
  if (auto done = read("warmup", options.warmup, rule.warmup_); !done) return done.error();
  if (rule.warmup_ >= rule.end_ && rule.warmup_ > Time{})
    return wrong("warmup", options.warmup, "it is not before end_time");
  for (const double at : options.pause_at) {
    Time pause;
    if (auto done = read("pause_at", at, pause); !done) return done.error();
    if (pause >= rule.end_) return wrong("pause_at", at, "it is not before end_time");
    if (pause > from) rule.pauses_.push_back(pause);
  }
  std::sort(rule.pauses_.begin(), rule.pauses_.end());
  if (!(options.real_time >= 0) || std::isinf(options.real_time))
    return wrong("real_time", options.real_time, "it is a number of units a second, at least 0");
  rule.real_time_ = options.real_time;
  rule.from_ = from;
  rule.border_ = from;
  rule.has_reported_.assign(partitions, true);
  rule.next_event_ = from;
  return rule;
}

Time GrantRule::due(base::Duration elapsed) const noexcept {
  const double units = real_time_ * (static_cast<double>(elapsed.count()) * 1e-9);
  const Result<Time> since = time_of(std::max(units, 0.0));
  return later(from_, since ? *since : kNever);
}

Time GrantRule::lateness(base::Duration elapsed) const noexcept {
  if (real_time_ == 0) return {};
  const Time at = std::min(due(elapsed), end_);
  return at > border_ ? Time{at.ticks - border_.ticks} : Time{};
}

std::optional<Grant> GrantRule::next(base::Duration elapsed, Time most) const {
  if (border_ >= end_) return std::nullopt;
  Time to = end_;
  Time save = kNever;
  if (checkpoint_every_ > Time{}) {
    // Multiples of `every` from 0 on, so that a resumed run saves at the same borders.
    const std::int64_t count = border_.ticks / checkpoint_every_.ticks + 1;
    save = count > kNever.ticks / checkpoint_every_.ticks ? kNever : Time{count * checkpoint_every_.ticks};
    to = std::min(to, save);
  }
  if (warmup_ > border_) to = std::min(to, warmup_);
  const auto pause = std::upper_bound(pauses_.begin(), pauses_.end(), border_);
  if (pause != pauses_.end()) to = std::min(to, *pause);
  if (step_asked_) to = std::min(to, later(std::max(next_event_, border_), Time{1}));
  to = std::min(to, std::max(most, later(border_, Time{1})));
  if (real_time_ > 0) {
    to = std::min(to, due(elapsed));
    if (to <= border_) return std::nullopt;
  }
  return Grant{.border = to,
               .saves = to == save,
               .ends_warmup = warmup_ > Time{} && to == warmup_,
               .pauses = pause_asked_ || (step_asked_ && to > next_event_) || (pause != pauses_.end() && to == *pause),
               .ends = to == end_};
}

void GrantRule::on_granted(const Grant& grant) {
  border_ = grant.border;
  if (grant.pauses) pause_asked_ = step_asked_ = false;
  missing_ = static_cast<std::uint32_t>(has_reported_.size());
  has_reported_.assign(has_reported_.size(), false);
  next_event_ = kNever;
  sums_ = BorderReport{.border = grant.border};
}

Result<void> GrantRule::on_report(std::uint32_t partition, const BorderReport& report) {
  const auto wrong = [&](const std::string& what) {
    return Error(Errc::malformed_payload, "the report of partition " + std::to_string(partition) + " " + what);
  };
  if (partition >= has_reported_.size() || has_reported_[partition]) return wrong("was not asked for");
  if (report.border != std::min(border_, report.finish))
    return wrong("is of the border " + to_string(report.border) + ", not of " + to_string(border_));
  has_reported_[partition] = true;
  --missing_;
  sums_.counters.sent += report.counters.sent;
  sums_.counters.handled += report.counters.handled;
  sums_.counters.cancelled += report.counters.cancelled;
  sums_.pending += report.pending;
  sums_.windows = std::max(sums_.windows, report.windows);
  sums_.frames += report.frames;
  sums_.empty_frames += report.empty_frames;
  sums_.bytes += report.bytes;
  sums_.finish = std::min(sums_.finish, report.finish);
  sums_.least_delay = std::min(sums_.least_delay, report.least_delay);
  sums_.next = next_event_ = std::min(next_event_, report.next);
  end_ = std::min(end_, report.finish);
  if (missing_ > 0) return {};
  const EventCounters& sums = sums_.counters;
  if (sums.sent == sums.handled + sums_.pending + sums.cancelled) return {};
  return Error(Errc::malformed_payload, "at the border " + to_string(border_) + " the partitions have sent " +
                                            std::to_string(sums.sent) + " events, but handled " +
                                            std::to_string(sums.handled) + ", cancelled " +
                                            std::to_string(sums.cancelled) + ", and " + std::to_string(sums_.pending) +
                                            " are pending: this is an error of Caftan's own (SM-4)");
}

bool GrantRule::is_over() const noexcept { return border_ >= end_ || next_event_ == kNever; }

}  // namespace caftan::sim
