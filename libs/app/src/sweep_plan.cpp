#include "caftan/app/internal/sweep_plan.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

#include "caftan/base/internal/joined.hpp"
#include "caftan/base/internal/read_settings.hpp"
#include "caftan/base/settings_io.hpp"

namespace caftan::app {
namespace {

Error wrong(const std::string& assignment, const std::string& what) {
  return {Errc::invalid_config, printable(assignment) + ": " + what};
}

Error too_many(const std::string& what) {
  return {Errc::limit_exceeded, what + " more than " + std::to_string(SweepPlan::kMostRuns) + " runs"};
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// Finds the commas that separate values: those in no quotes and no brackets.
class ValueSplitter {
 public:
  /// Returns false if a bracket is closed that was not opened.
  bool take(char c) {
    if (escaped_) {
      escaped_ = false;
    } else if (quote_ != 0) {
      escaped_ = c == '\\' && quote_ == '"';
      if (c == quote_) quote_ = 0;
    } else if (c == '"' || c == '\'') {
      quote_ = c;
    } else if (c == '[' || c == '{') {
      closing_ += c == '[' ? ']' : '}';
    } else if (c == ']' || c == '}') {
      if (closing_.empty() || closing_.back() != c) return false;
      closing_.pop_back();
    }
    return true;
  }
  bool is_outside() const { return quote_ == 0 && closing_.empty(); }

 private:
  char quote_ = 0;
  bool escaped_ = false;
  std::string closing_;
};

Result<std::vector<std::string>> split_values(const std::string& assignment, std::string_view text) {
  std::vector<std::string> values(1);
  ValueSplitter splitter;
  for (const char c : text) {
    if (c == ',' && splitter.is_outside()) {
      values.emplace_back();
      continue;
    }
    if (!splitter.take(c)) return wrong(assignment, std::string("a '") + c + "' closes no bracket");
    values.back() += c;
  }
  if (!splitter.is_outside()) return wrong(assignment, "a quote or a bracket is not closed");
  for (std::string& value : values) {
    value = std::string(trimmed(value));
    if (value.empty()) return wrong(assignment, "a value is empty; values are written a,b,c or 1..10");
  }
  return values;
}

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Appends the integers of "1..10", or the value itself if it is no range.
Result<void> append_range(const std::string& assignment, const std::string& value, std::vector<std::string>& values) {
  const std::size_t dots = value.find("..");
  const auto first = dots == std::string::npos ? std::nullopt : integer(std::string_view(value).substr(0, dots));
  const auto last = dots == std::string::npos ? std::nullopt : integer(std::string_view(value).substr(dots + 2));
  if (!first || !last) {
    values.push_back(value);
    return {};
  }
  if (*first > *last) return wrong(assignment, value + " counts down; write the smaller end first");
  const std::uint64_t more = static_cast<std::uint64_t>(*last) - static_cast<std::uint64_t>(*first);
  if (more >= SweepPlan::kMostRuns) return too_many(printable(assignment) + ": a sweep has no");
  for (std::uint64_t i = 0; i <= more; ++i) {
    values.push_back(std::to_string(*first + static_cast<std::int64_t>(i)));
  }
  return {};
}

Result<SweepAxis> parse_axis(const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == 0 || equals == std::string::npos) {
    return wrong(assignment, "is no KEY=VALUES; write key=1..10, key=a,b or key=value");
  }
  auto items = split_values(assignment, std::string_view(assignment).substr(equals + 1));
  if (!items) return items.error();
  SweepAxis axis{.key = assignment.substr(0, equals)};
  for (const std::string& item : *items) {
    if (auto appended = append_range(assignment, item, axis.values); !appended) return appended.error();
  }
  std::vector<std::string> sorted = axis.values;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    return wrong(assignment, "the value " + *twice + " stands there twice");
  }
  return axis;
}

std::string text_of(const SweepAxis& axis) {
  std::string text = axis.key + "=";
  for (const std::string& value : axis.values) text += (&value == &axis.values.front() ? "" : ",") + value;
  return text;
}

struct StateFile {
  int sweep = 1;
  std::string digest;
  std::vector<std::string> keys;
  std::vector<std::int64_t> succeeded;
  std::vector<std::int64_t> failed;

  static void settings(auto& s, StateFile& c) {
    s("sweep", c.sweep, "version of this file").range(1, 1).required();
    s("digest", c.digest, "of the application file").required();
    s("keys", c.keys, "with their values").required();
    s("succeeded", c.succeeded, "runs, numbered from 1").required();
    s("failed", c.failed, "runs, numbered from 1").required();
  }
};

std::vector<std::int64_t> numbers_of(const std::vector<std::size_t>& runs) {
  std::vector<std::int64_t> numbers;
  for (const std::size_t run : runs) numbers.push_back(static_cast<std::int64_t>(run) + 1);
  return numbers;
}

}  // namespace

Result<SweepPlan> SweepPlan::parse(std::span<const std::string> assignments) {
  SweepPlan plan;
  for (const std::string& assignment : assignments) {
    auto axis = parse_axis(assignment);
    if (!axis) return axis.error();
    if (std::ranges::find(plan.axes_, axis->key, &SweepAxis::key) != plan.axes_.end()) {
      return wrong(assignment, "the key stands there twice; write all of its values behind one '='");
    }
    if (axis->values.size() > kMostRuns / plan.runs_) return too_many("a sweep has no");
    plan.runs_ *= axis->values.size();
    plan.axes_.push_back(*std::move(axis));
  }
  return plan;
}

std::vector<std::string> SweepPlan::values_of(std::size_t run) const {
  std::vector<std::string> values(axes_.size());
  for (std::size_t i = axes_.size(); i-- > 0;) {
    values[i] = axes_[i].values[run % axes_[i].values.size()];
    run /= axes_[i].values.size();
  }
  return values;
}

std::vector<std::string> SweepPlan::overrides_of(std::size_t run) const {
  std::vector<std::string> overrides = values_of(run);
  for (std::size_t i = 0; i < axes_.size(); ++i) overrides[i].insert(0, axes_[i].key + "=");
  return overrides;
}

std::string SweepPlan::describe(std::size_t run) const {
  std::vector<std::string> overrides = overrides_of(run);
  std::vector<std::string> varying;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].values.size() > 1) varying.push_back(std::move(overrides[i]));
  }
  return printable(base::joined(varying, " "));
}

SweepState::SweepState(std::string digest, const SweepPlan& plan)
    : digest_(std::move(digest)), outcomes_(plan.runs(), Outcome::open) {
  for (const SweepAxis& axis : plan.axes()) keys_.push_back(text_of(axis));
}

Result<SweepState> SweepState::parse(std::string_view text, const std::string& digest, const SweepPlan& plan) {
  Diagnostics diagnostics("sweep.toml");
  diagnostics.set_source(std::string(text));
  const SettingsNode root = parse_settings(text, diagnostics);
  StateFile file;
  std::vector<SettingField> fields = bind_settings(file);
  if (diagnostics.ok()) read_settings(root, fields, {}, diagnostics);
  if (!diagnostics.ok()) return diagnostics.to_error();

  SweepState state(digest, plan);
  if (file.digest != digest) {
    return Error(Errc::invalid_config, "the application file is another one, or was changed since (digest " +
                                           printable(file.digest) + ", now " + digest + ")");
  }
  if (file.keys != state.keys_) {
    return Error(Errc::invalid_config, "the keys are others: it was begun with " +
                                           printable(base::joined(file.keys, " ")) + ", now they are " +
                                           printable(base::joined(state.keys_, " ")));
  }
  for (const auto& [numbers, outcome] :
       {std::pair(&file.succeeded, Outcome::success), std::pair(&file.failed, Outcome::failure)}) {
    for (const std::int64_t number : *numbers) {
      if (number < 1 || static_cast<std::uint64_t>(number) > plan.runs()) {
        return Error(Errc::invalid_config,
                     "sweep.toml names a run " + std::to_string(number) + " of " + std::to_string(plan.runs()));
      }
      state.outcomes_[static_cast<std::size_t>(number - 1)] = outcome;
    }
  }
  return state;
}

std::string SweepState::text() const {
  StateFile file{.digest = digest_,
                 .keys = keys_,
                 .succeeded = numbers_of(all(Outcome::success)),
                 .failed = numbers_of(all(Outcome::failure))};
  return "# How far a sweep is: the same command with --out and this folder goes on with it.\n" +
         dump_settings(bind_settings(file), "");
}

std::vector<std::size_t> SweepState::left() const {
  std::vector<std::size_t> runs;
  for (std::size_t run = 0; run < outcomes_.size(); ++run) {
    if (!has_succeeded(run)) runs.push_back(run);
  }
  return runs;
}

std::vector<std::size_t> SweepState::all(Outcome outcome) const {
  std::vector<std::size_t> runs;
  for (std::size_t run = 0; run < outcomes_.size(); ++run) {
    if (outcomes_[run] == outcome) runs.push_back(run);
  }
  return runs;
}

std::string sweep_run_name(std::size_t run, std::size_t runs) {
  const std::string number = std::to_string(run + 1);
  const std::size_t width = std::max<std::size_t>(3, std::to_string(runs).size());
  return std::string(width - std::min(width, number.size()), '0') + number;
}

base::Duration sweep_time_left(base::Duration until_last, std::size_t ended, std::size_t left, base::Duration now) {
  const auto each = until_last / static_cast<base::Duration::rep>(ended);
  return std::max(base::Duration::zero(), each * static_cast<base::Duration::rep>(left) - (now - until_last));
}

}  // namespace caftan::app
