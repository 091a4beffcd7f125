#include "caftan/sim/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "caftan/base/internal/overloaded.hpp"
#include "caftan/base/settings_io.hpp"

namespace caftan::sim {

void Tally::add(double value) noexcept {
  ++count_;
  const double before = value - mean_;
  mean_ += before / static_cast<double>(count_);
  squares_ += before * (value - mean_);
  least_ = std::min(least_, value);
  largest_ = std::max(largest_, value);
}

void Tally::merge(const Tally& other) noexcept {
  if (other.count_ == 0) return;
  if (count_ == 0) {
    *this = other;
    return;
  }
  const auto mine = static_cast<double>(count_);
  const auto more = static_cast<double>(other.count_);
  const double apart = other.mean_ - mean_;
  count_ += other.count_;
  const auto all = static_cast<double>(count_);
  mean_ += apart * more / all;
  squares_ += other.squares_ + apart * apart * mine * more / all;
  least_ = std::min(least_, other.least_);
  largest_ = std::max(largest_, other.largest_);
}

double Tally::deviation() const noexcept {
  return count_ < 2 ? 0 : std::sqrt(squares_ / static_cast<double>(count_ - 1));
}

void TimeAverage::set(Time now, double value) noexcept {
  const Time span{now.ticks - since_.ticks};
  area_ += value_ * span.units();
  span_.ticks += span.ticks;
  since_ = now;
  value_ = value;
  largest_ = std::max(largest_, value);
}

void TimeAverage::reset(Time now) noexcept {
  area_ = 0;
  span_ = {};
  since_ = now;
  largest_ = value_;
}

void TimeAverage::merge(const TimeAverage& other) noexcept {
  area_ += other.area_;
  span_.ticks += other.span_.ticks;
  value_ += other.value_;
  largest_ = std::max(largest_, other.largest_);
}

double TimeAverage::mean() const noexcept { return span_.ticks > 0 ? area_ / span_.units() : value_; }

void Histogram::add(double value) noexcept {
  std::size_t at = counts_.size() - 1;
  if (value < low_) {
    at = 0;
  } else if (value < high_) {
    const auto bins = static_cast<double>(counts_.size() - 2);
    at = std::min(1 + static_cast<std::size_t>((value - low_) / (high_ - low_) * bins), counts_.size() - 2);
  }
  ++counts_[at];
}

void Histogram::merge(const Histogram& other) {
  for (std::size_t i = 0; i < std::min(counts_.size(), other.counts_.size()); ++i) counts_[i] += other.counts_[i];
}

void StatisticsVisitor::operator()(std::string_view name, Tally& tally, std::string_view unit) {
  if (!to_) return tally.reset();
  to_->push_back({lp_, std::string(name), std::string(unit), tally});
}

void StatisticsVisitor::operator()(std::string_view name, TimeAverage& average, std::string_view unit) {
  if (!to_) return average.reset(now_);
  TimeAverage closed = average;
  closed.close(now_);
  to_->push_back({lp_, std::string(name), std::string(unit), closed});
}

void StatisticsVisitor::operator()(std::string_view name, Histogram& histogram, std::string_view unit) {
  if (!to_) return histogram.reset();
  to_->push_back({lp_, std::string(name), std::string(unit), histogram});
}

Result<std::vector<MergedStatistic>> merge_statistics(std::span<const LpStatistic> all) {
  std::vector<MergedStatistic> merged;
  std::unordered_map<std::string, std::size_t> places;
  for (const LpStatistic& one : all) {
    const auto [found, is_new] = places.try_emplace(one.name, merged.size());
    if (is_new) {
      merged.push_back({one.name, one.unit, 1, one.value});
      continue;
    }
    MergedStatistic& into = merged[found->second];
    const auto unlike = [&](const char* what) {
      return Error(Errc::bad_arguments, "the statistic '" + one.name + "' of LP " + std::to_string(one.lp.value) + " " +
                                            what + " than the same name has in an earlier LP");
    };
    if (into.value.index() != one.value.index()) return unlike("is of another kind");
    if (const auto* histogram = std::get_if<Histogram>(&one.value)) {
      const Histogram& before = std::get<Histogram>(into.value);
      if (before.low() != histogram->low() || before.high() != histogram->high() ||
          before.counts().size() != histogram->counts().size())
        return unlike("has other parts");
    }
    ++into.processes;
    std::visit([&](auto& value) { value.merge(std::get<std::remove_cvref_t<decltype(value)>>(one.value)); },
               into.value);
  }
  return merged;
}

std::string scalars_csv(std::span<const MergedStatistic> merged) {
  std::string text = "statistic,unit,measure,value\n";
  for (const MergedStatistic& one : merged) {
    const auto row = [&](const std::string& measure, const std::string& value) {
      const auto quoted = [](const std::string& from) {
        if (from.find_first_of(",\"\n\r") == std::string::npos) return from;
        std::string to = "\"";
        for (const char c : from) to += c == '"' ? std::string("\"\"") : std::string(1, c);
        return to + "\"";
      };
      text += quoted(one.name) + "," + quoted(one.unit) + "," + measure + "," + value + "\n";
    };
    row("processes", std::to_string(one.processes));
    std::visit(base::Overloaded{[&](const Tally& tally) {
                                  row("count", std::to_string(tally.count()));
                                  row("mean", format_number(tally.mean()));
                                  row("deviation", format_number(tally.deviation()));
                                  row("least", format_number(tally.least()));
                                  row("largest", format_number(tally.largest()));
                                },
                                [&](const TimeAverage& average) {
                                  row("mean", format_number(average.mean()));
                                  row("largest", format_number(average.largest()));
                                },
                                [&](const Histogram& histogram) {
                                  const auto counts = histogram.counts();
                                  const std::size_t bins = counts.size() - 2;
                                  for (std::size_t i = 0; i < counts.size(); ++i) {
                                    const double low = histogram.low() + (histogram.high() - histogram.low()) *
                                                                             static_cast<double>(i - 1) /
                                                                             static_cast<double>(bins);
                                    row(i == 0 ? "below" : "from " + format_number(low), std::to_string(counts[i]));
                                  }
                                }},
               one.value);
  }
  return text;
}

}  // namespace caftan::sim
