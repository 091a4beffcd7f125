#include "caftan/sim/internal/cosim_plan.hpp"

#include <algorithm>
#include <cmath>

#include "caftan/base/internal/settings_document.hpp"
#include "caftan/base/settings_io.hpp"
#include "caftan/base/whole_file.hpp"

namespace caftan::sim {
namespace {

Error wrong_cosim(std::string text) { return Error(Errc::invalid_config, std::move(text)); }

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Returns a number of a scenario; nullopt if it is none.
std::optional<double> number_of(const SettingsNode& node) {
  if (node.kind == SettingsNode::Kind::integer) return static_cast<double>(std::get<std::int64_t>(node.scalar));
  if (node.kind == SettingsNode::Kind::number) return std::get<double>(node.scalar);
  return std::nullopt;
}

}  // namespace

Result<void> CosimPlan::connect() {
  if (components_.empty()) return wrong_cosim("the co-simulation has no components");
  for (const Component& component : components_) {
    const auto same = std::count_if(components_.begin(), components_.end(),
                                    [&](const Component& other) { return other.name == component.name; });
    if (same > 1) return wrong_cosim("two components have the name '" + component.name + "'");
    if (component.every == 0)
      return wrong_cosim("the component '" + component.name + "' steps once in 0 base steps: at least 1");
  }
  if (auto done = set_step(); !done) return done;
  for (const std::string& text : config_.connections) {
    if (auto done = connect_one(text); !done) return done;
  }
  for (const Component& component : components_) {
    for (std::size_t i = 0; i < component.variables.size(); ++i) {
      if (component.variables[i].kind == VariableKind::input && !component.has_source[i])
        warnings_.push_back("the input '" + component.name + "." + component.variables[i].name +
                            "' has no source: it keeps its initial value");
    }
  }
  return read_scenario();
}

Result<void> CosimPlan::set_step() {
  const std::string key = "base_step = " + format_number(config_.base_step);
  const Result<Time> step = time_of(config_.base_step);
  if (!step) return wrong_cosim(key + ": " + step.error().text());
  // A decimal fraction of units is rarely a double: what is meant is the nearest tick, as far as a double can say.
  const double ticks = config_.base_step * static_cast<double>(kTicksPerUnit);
  if (step->ticks < 1 || std::abs(ticks - static_cast<double>(step->ticks)) > 1e-6 * std::max(1.0, ticks * 1e-9))
    return wrong_cosim(key + ": it is not a whole number of ticks of 1e-9 units");
  base_step_ = delay_ = *step;
  if (config_.algorithm == CosimAlgorithm::jacobi) return {};
  const auto count = static_cast<std::int64_t>(components_.size());
  if (step->ticks % count != 0)
    return wrong_cosim(key + ": gauss_seidel divides it among " + std::to_string(count) +
                       " components, which leaves no whole ticks");
  delay_ = Time{step->ticks / count};
  return {};
}

Result<CosimPlan::Place> CosimPlan::find(std::string_view name, std::string_view what) const {
  std::vector<std::string> all;
  for (std::uint32_t c = 0; c < components_.size(); ++c) {
    for (std::uint32_t v = 0; v < components_[c].variables.size(); ++v) {
      all.push_back(components_[c].name + "." + components_[c].variables[v].name);
      if (all.back() == name) return Place{c, v};
    }
  }
  return wrong_cosim(std::string(what) + ": there is no variable '" + std::string(name) + "'" +
                     did_you_mean(name, all));
}

Result<void> CosimPlan::connect_one(const std::string& text) {
  const std::string what = "connections, '" + text + "'";
  const std::size_t arrow = text.find("->");
  if (arrow == std::string::npos)
    return wrong_cosim(what + ": a connection is written 'component.output -> component.input'");
  const Result<Place> from = find(trimmed(std::string_view(text).substr(0, arrow)), what);
  if (!from) return from.error();
  const Result<Place> to = find(trimmed(std::string_view(text).substr(arrow + 2)), what);
  if (!to) return to.error();
  Component& source = components_[from->component];
  Component& target = components_[to->component];
  const auto named = [](const Component& component, std::uint32_t variable) {
    return "'" + component.name + "." + component.variables[variable].name + "'";
  };
  if (source.variables[from->variable].kind != VariableKind::output)
    return wrong_cosim(what + ": " + named(source, from->variable) + " is no output");
  if (target.variables[to->variable].kind != VariableKind::input)
    return wrong_cosim(what + ": " + named(target, to->variable) + " is no input");
  if (from->component == to->component) return wrong_cosim(what + ": a component is not connected to itself");
  if (target.has_source[to->variable])
    return wrong_cosim(what + ": the input " + named(target, to->variable) + " has two sources");
  target.has_source[to->variable] = true;
  source.links.push_back({from->variable, to->component, to->variable});
  return {};
}

Result<void> CosimPlan::read_scenario() {
  if (!config_.scenario) return {};
  const Result<std::string> text = base::read_whole_file(*config_.scenario);
  if (!text) return wrong_cosim("scenario: " + text.error().text());
  Diagnostics diagnostics(config_.scenario->string());
  const SettingsNode root = parse_settings(*text, diagnostics);
  const auto add = [&](const SettingsNode& at, Time time, const std::string& name, Change::Kind kind, double value) {
    const Result<Place> place = find(name, "scenario");
    if (!place) return diagnostics.error(at.place, place.error().text());
    Component& component = components_[place->component];
    const VariableKind is = component.variables[place->variable].kind;
    if (is == VariableKind::output)
      return diagnostics.error(at.place, "'" + name + "' is an output: only inputs and parameters change");
    component.changes.push_back({time, place->component, place->variable, kind, value});
  };
  const auto read_one = [&](const SettingsNode& one) {
    const SettingsEntry* const when = one.find("time");
    const std::optional<double> units = when ? number_of(when->value) : std::nullopt;
    const Result<Time> time = time_of(units.value_or(-1));
    if (!time) return diagnostics.error(one.place, "each [[at]] needs `time`, a number of units >= 0");
    for (const SettingsEntry& entry : one.entries) {
      const bool is_set = entry.key == "set";
      if (entry.key == "time") continue;
      if (is_set || entry.key == "bias") {
        for (const SettingsEntry& variable : entry.value.entries) {
          const std::optional<double> value = number_of(variable.value);
          if (!value)
            diagnostics.error(variable.value.place,
                              "'" + variable.key + "' is changed to a number, not to " + variable.value.describe());
          if (value) add(variable.value, *time, variable.key, is_set ? Change::Kind::set : Change::Kind::bias, *value);
        }
      } else if (entry.key == "reset") {
        for (const SettingsNode& name : entry.value.items) {
          if (const auto* variable = std::get_if<std::string>(&name.scalar))
            add(name, *time, *variable, Change::Kind::reset, 0);
        }
      } else {
        diagnostics.error(entry.key_place, "unknown key '" + entry.key + "'" +
                                               did_you_mean(entry.key, {"time", "set", "bias", "reset"}));
      }
    }
  };
  for (const SettingsEntry& entry : root.entries) {
    if (entry.key != "at")
      diagnostics.error(entry.key_place, "unknown key '" + entry.key + "': a scenario is a list of [[at]]");
    for (const SettingsNode& one : entry.value.items) read_one(one);
  }
  if (!diagnostics.ok()) return diagnostics.to_error();
  for (Component& component : components_) {
    std::stable_sort(component.changes.begin(), component.changes.end(),
                     [](const Change& a, const Change& b) { return a.time < b.time; });
  }
  return {};
}

}  // namespace caftan::sim
