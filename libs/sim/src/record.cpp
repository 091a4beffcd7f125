#include "caftan/sim/record.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "caftan/base/settings_diagnostics.hpp"
#include "caftan/base/settings_io.hpp"

namespace caftan::sim {

Recorder::Recorder(RecordPlan plan) : plan_(std::move(plan)) {}

std::uint32_t Recorder::number_of(std::string_view name) {
  const auto [found, is_new] = numbers_.try_emplace(std::string(name), static_cast<std::uint32_t>(names_.size()));
  if (is_new) {
    names_.emplace_back(name);
    wanted_.push_back(plan_.all || std::find(plan_.series.begin(), plan_.series.end(), name) != plan_.series.end());
  }
  return found->second;
}

void Recorder::record(Time now, LpId lp, std::string_view name, double value) {
  const std::uint32_t number = number_of(name);
  if (!wanted_[number]) return;
  if (plan_.every.ticks > 0) {
    const auto [last, is_first] = last_.try_emplace(std::uint64_t{lp.value} << 32 | number, now);
    if (!is_first && now.ticks - last->second.ticks < plan_.every.ticks) return;
    last->second = now;
  }
  ++kept_;
  kept_now_.push_back({now, lp, number, value});
}

std::vector<Record> Recorder::take() {
  std::vector<Record> records;
  records.reserve(kept_now_.size());
  for (const Kept& kept : kept_now_) records.push_back({kept.time, kept.lp, names_[kept.name], kept.value});
  kept_now_.clear();
  return records;
}

std::vector<Recorder::Last> Recorder::last() const {
  std::vector<Last> all;
  for (const auto& [key, time] : last_) {
    all.push_back({LpId(key >> 32), names_[static_cast<std::uint32_t>(key)], time});
  }
  std::sort(all.begin(), all.end(),
            [](const Last& a, const Last& b) { return std::tie(a.lp, a.name) < std::tie(b.lp, b.name); });
  return all;
}

void Recorder::restore(const Last& last) {
  last_[std::uint64_t{last.lp.value} << 32 | number_of(last.name)] = last.time;
}

std::vector<std::string> Recorder::missing() const {
  std::vector<std::string> texts;
  for (const std::string& name : plan_.series) {
    if (!numbers_.contains(name)) texts.push_back("'" + name + "'" + did_you_mean(name, names_));
  }
  return texts;
}

void sort_records(std::vector<Record>& records) {
  std::stable_sort(records.begin(), records.end(),
                   [](const Record& a, const Record& b) { return std::tie(a.time, a.lp) < std::tie(b.time, b.lp); });
}

std::string series_csv(std::span<const Record> records, bool head) {
  std::string text = head ? "time,lp,name,value\n" : "";
  for (const Record& record : records) {
    text += to_string(record.time) + "," + std::to_string(record.lp.value) + "," + record.name + "," +
            format_number(record.value) + "\n";
  }
  return text;
}

}  // namespace caftan::sim
