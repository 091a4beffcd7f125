#include "sim/clock_meter.hpp"

#include <algorithm>

#include "caftan/base/settings_io.hpp"

namespace caftan::actors {
namespace {

double seconds(base::Duration duration) { return static_cast<double>(duration.count()) * 1e-9; }

/// Returns "1.23 M", "45.6 k", "12".
std::string scaled(double value) {
  if (value >= 1e9) return format_digits(value * 1e-9, 3) + " G";
  if (value >= 1e6) return format_digits(value * 1e-6, 3) + " M";
  if (value >= 1e4) return format_digits(value * 1e-3, 3) + " k";
  return format_digits(value, 3);
}

}  // namespace

ClockMeter::ClockMeter(std::uint32_t partitions, sim::Time lookahead, sim::Time from, sim::Time end,
                       std::uint64_t handled)
    : partitions_(partitions), lookahead_(lookahead), from_(from), end_(end), before_(handled) {
  sums_.border = from;
  sums_.counters.handled = handled;
}

void ClockMeter::on_border(const sim::BorderReport& sums, const std::vector<Work>& work, base::Duration elapsed) {
  const double since = seconds(elapsed - elapsed_);
  if (since > 0) events_per_s_ = static_cast<double>(sums.counters.handled - sums_.counters.handled) / since;
  sums_ = sums;
  work_ = work;
  elapsed_ = elapsed;
}

double ClockMeter::events_per_s() const noexcept { return events_per_s_; }

double ClockMeter::events_per_window() const noexcept {
  return sums_.windows == 0 ? 0 : static_cast<double>(handled()) / static_cast<double>(sums_.windows);
}

double ClockMeter::waiting() const noexcept {
  double busy = 0;
  double waiting = 0;
  for (const Work& one : work_) {
    busy += seconds(one.busy);
    waiting += seconds(one.waiting);
  }
  return busy + waiting > 0 ? waiting / (busy + waiting) : 0;
}

double ClockMeter::lambda() const noexcept {
  if (partitions_ < 2 || lookahead_ == sim::kNever || work_.empty()) return 0;
  double busy = 0;
  // The partition with the most to do waits the least: what it still waits is the time of the exchange.
  double tau = -1;
  for (const Work& one : work_) {
    busy += seconds(one.busy);
    if (one.windows == 0) continue;
    const double of_window = seconds(one.waiting) / static_cast<double>(one.windows);
    tau = tau < 0 ? of_window : std::min(tau, of_window);
  }
  const double units = sim::Time{sums_.border.ticks - from_.ticks}.units();
  if (tau <= 0 || units <= 0) return 0;
  // E / P: how long the events of one unit of time take.
  return lookahead_.units() * (busy / units) / tau;
}

std::string ClockMeter::line() const {
  std::string text = "t " + format_digits(sums_.border.units()) + " of " + format_digits(end_.units()) + "  " +
                     scaled(events_per_s_) + " events/s";
  if (partitions_ < 2) return text;
  text += "  window " + scaled(events_per_window()) + " events  waiting " + format_fixed(100 * waiting(), 0) + " %";
  if (lambda() > 0) text += "  lambda " + format_digits(lambda(), 2);
  return text;
}

std::vector<std::string> ClockMeter::report() const {
  std::vector<std::string> lines;
  const double took = seconds(elapsed_);
  lines.push_back("virtual time " + to_string(sums_.border) + ", " + std::to_string(handled()) + " events in " +
                  format_fixed(took, 2) + " s" +
                  (took > 0 ? ", " + scaled(static_cast<double>(handled()) / took) + " events/s" : std::string()) +
                  ", " + std::to_string(sums_.pending) + " pending");
  if (partitions_ < 2) return lines;
  lines.push_back(std::to_string(partitions_) + " partitions, " + std::to_string(sums_.windows) + " windows of " +
                  scaled(events_per_window()) + " events, waiting " + format_fixed(100 * waiting(), 1) + " %, " +
                  std::to_string(sums_.frames) + " frames (" + std::to_string(sums_.empty_frames) +
                  " without events), " + scaled(static_cast<double>(sums_.bytes)) + "B" +
                  (lambda() > 0 ? ", lambda " + format_digits(lambda(), 2) : std::string()));
  if (lookahead_ != sim::kNever && sums_.least_delay != sim::kNever && sums_.least_delay > lookahead_) {
    lines.push_back("the lookahead could be " + to_string(sums_.least_delay) + " instead of " + to_string(lookahead_) +
                    ": no event between groups had a smaller delay");
  }
  return lines;
}

}  // namespace caftan::actors
