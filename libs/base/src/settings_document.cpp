// The border to toml++: the one place that calls it and catches what it throws.
#include "caftan/base/internal/settings_document.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "caftan/base/settings_io.hpp"
#include "settings_nesting.hpp"

namespace caftan {
namespace {

SettingsPlace place_of(const toml::source_region& source) {
  SettingsPlace place{.line = static_cast<int>(source.begin.line), .column = static_cast<int>(source.begin.column)};
  if (source.end.line == source.begin.line && source.end.column > source.begin.column) {
    place.length = static_cast<int>(source.end.column - source.begin.column);
  }
  return place;
}

template <class T>
std::string written(const T& value) {
  std::ostringstream stream;
  stream << value;
  return std::move(stream).str();
}

/// The recursion is bounded, because `parse` refuses text that `find_too_deep` finds.
SettingsNode convert(const toml::node& node) {  // NOLINT(misc-no-recursion)
  SettingsNode result;
  result.place = place_of(node.source());
  if (const auto* boolean = node.as_boolean()) {
    result.kind = SettingsNode::Kind::boolean;
    result.scalar = boolean->get();
  } else if (const auto* integer = node.as_integer()) {
    result.kind = SettingsNode::Kind::integer;
    result.scalar = integer->get();
  } else if (const auto* number = node.as_floating_point()) {
    result.kind = SettingsNode::Kind::number;
    result.scalar = number->get();
  } else if (const auto* text = node.as_string()) {
    result.kind = SettingsNode::Kind::text;
    result.scalar = text->get();
  } else if (const auto* list = node.as_array()) {
    result.kind = SettingsNode::Kind::list;
    for (const toml::node& item : *list) result.items.push_back(convert(item));
  } else if (const auto* table = node.as_table()) {
    for (const auto& [key, value] : *table) {
      result.entries.push_back({std::string(key.str()), place_of(key.source()), convert(value)});
    }
    std::ranges::stable_sort(result.entries, {}, [](const SettingsEntry& entry) {
      return std::pair(entry.key_place.line, entry.key_place.column);
    });
  } else {
    result.kind = SettingsNode::Kind::date;
    if (const auto* date = node.as_date()) result.scalar = written(date->get());
    if (const auto* time = node.as_time()) result.scalar = written(time->get());
    if (const auto* moment = node.as_date_time()) result.scalar = written(moment->get());
  }
  return result;
}

/// Returns the table that `text` writes. If `text` is no TOML or is nested too deep, returns nullopt, with the place
/// and the reason.
std::optional<SettingsNode> parse(std::string_view text, SettingsPlace& place, std::string& reason) {
  if (const auto found = find_too_deep(text)) {
    place = found->place;
    reason = found->reason;
    return std::nullopt;
  }
  try {
    return convert(toml::parse(text));
  } catch (const toml::parse_error& error) {
    place = place_of(error.source());
    reason = error.description();
    return std::nullopt;
  }
}

bool is_bare_text(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_./:+-~").find(c) != std::string_view::npos;
  });
}

/// All places become "command line": a line and column inside an override mean nothing to the user who typed it.
void move_to(SettingsNode& node, int index) {  // NOLINT(misc-no-recursion)
  node.place = {.override_index = index};
  for (SettingsNode& item : node.items) move_to(item, index);
  for (SettingsEntry& entry : node.entries) {
    entry.key_place = {.override_index = index};
    move_to(entry.value, index);
  }
}

std::optional<SettingsNode> parse_value(const std::string& text) {
  SettingsPlace ignored_place;
  std::string ignored_reason;
  // A value with a line break could bring further keys in.
  if (text.find('\n') == std::string::npos) {
    if (auto table = parse("value = " + text, ignored_place, ignored_reason)) {
      return std::move(table->entries.front().value);
    }
  }
  if (!is_bare_text(text)) return std::nullopt;
  SettingsNode node;
  node.kind = SettingsNode::Kind::text;
  node.scalar = text;
  return node;
}

}  // namespace

const SettingsEntry* SettingsNode::find(std::string_view key) const {
  const auto found = std::ranges::find(entries, key, &SettingsEntry::key);
  return found == entries.end() ? nullptr : &*found;
}

std::string SettingsNode::describe() const {
  switch (kind) {
    case Kind::boolean:
      return std::get<bool>(scalar) ? "true" : "false";
    case Kind::integer:
      return "the integer " + std::to_string(std::get<std::int64_t>(scalar));
    case Kind::number:
      return "the number " + format_number(std::get<double>(scalar));
    case Kind::text:
      return "the string " + quote_toml(std::get<std::string>(scalar));
    case Kind::date:
      return "the date or time " + std::get<std::string>(scalar);
    case Kind::list:
      return "a list";
    case Kind::table:
      return "a table";
  }
  return "";
}

SettingsNode parse_settings(std::string_view text, Diagnostics& diagnostics) {
  SettingsPlace place;
  std::string reason;
  if (auto root = parse(text, place, reason)) return *std::move(root);
  diagnostics.error(place, reason);
  return {};
}

SettingsNode merge_settings(SettingsNode below, const SettingsNode& above) {  // NOLINT(misc-no-recursion)
  constexpr auto kTable = SettingsNode::Kind::table;
  if (below.kind != kTable || above.kind != kTable) return above;
  for (const SettingsEntry& entry : above.entries) {
    const auto found = std::ranges::find(below.entries, entry.key, &SettingsEntry::key);
    if (found == below.entries.end()) {
      below.entries.push_back(entry);
      continue;
    }
    // A key that only gets further keys below it keeps the place where its table begins.
    if (found->value.kind != kTable || entry.value.kind != kTable) found->key_place = entry.key_place;
    found->value = merge_settings(std::move(found->value), entry.value);
  }
  return below;
}

void apply_override(SettingsNode& root, std::string_view assignment, int index, Diagnostics& diagnostics) {
  const SettingsPlace place{.override_index = index};
  const std::size_t equals = assignment.find('=');
  if (equals == 0 || equals == std::string_view::npos) {
    return diagnostics.error(place, "an override is written key=value");
  }
  auto value = parse_value(std::string(assignment.substr(equals + 1)));
  if (!value) return diagnostics.error(place, "what follows '=' is no TOML value; put quotes around a string");
  move_to(*value, index);

  if (std::ranges::count(assignment.substr(0, equals), '.') >= kMaxKeyParts) {
    return diagnostics.error(place, "a key has more than " + std::to_string(kMaxKeyParts) + " parts");
  }
  SettingsNode* table = &root;
  std::string_view path = assignment.substr(0, equals);
  while (true) {
    const std::size_t dot = path.find('.');
    const std::string key(path.substr(0, dot));
    if (key.empty()) return diagnostics.error(place, "a part of the key is empty");
    auto entry = std::ranges::find(table->entries, key, &SettingsEntry::key);
    if (entry == table->entries.end()) {
      table->entries.push_back({key, place, {}});
      table->entries.back().value.place = place;
      entry = std::prev(table->entries.end());
    }
    if (dot == std::string_view::npos) {
      entry->value = merge_settings(std::move(entry->value), *value);
      return;
    }
    if (entry->value.kind != SettingsNode::Kind::table) {
      return diagnostics.error(place, "'" + key + "' is " + entry->value.describe() + ", not a table");
    }
    table = &entry->value;
    path.remove_prefix(dot + 1);
  }
}

}  // namespace caftan
