#include "settings_limits.hpp"

#include <limits>

#include "caftan/base/settings_io.hpp"

namespace caftan {
namespace {

std::string end_text(const SettingField& field, const SettingBound& bound) {
  switch (field.kind) {
    case SettingKind::number: {
      std::string text = format_number(bound.number);
      if (text.ends_with(".0")) text.resize(text.size() - 2);
      return text;
    }
    case SettingKind::duration:
      return format_duration(bound.integer);
    case SettingKind::bytes:
      return format_bytes(bound.integer);
    default:
      if (bound.integer == std::numeric_limits<std::int64_t>::max()) return "2^63-1";
      return std::to_string(bound.integer);
  }
}

std::string range_with(const SettingField& field, bool lower, bool upper, bool condition) {
  if (lower && upper) {
    return (field.lower->open ? ">" : "") + end_text(field, *field.lower) + ".." + (field.upper->open ? "<" : "") +
           end_text(field, *field.upper);
  }
  if (lower && field.lower->open) return "> " + end_text(field, *field.lower);
  if (lower) return condition ? ">= " + end_text(field, *field.lower) : end_text(field, *field.lower) + "..";
  if (upper) return (field.upper->open ? "< " : "<= ") + end_text(field, *field.upper);
  return "";
}

template <class T, class Write>
std::string list_text(const std::vector<T>& items, Write write) {
  std::string text = "[";
  for (const T& item : items) text += (text.size() > 1 ? ", " : "") + write(item);
  return text + "]";
}

}  // namespace

std::string range_text(const SettingField& field) {
  return range_with(field, field.lower && !field.lower->implied, field.upper && !field.upper->implied, false);
}

std::string condition_text(const SettingField& field, bool implied) {
  return range_with(field, field.lower && (implied || !field.lower->implied),
                    field.upper && (implied || !field.upper->implied), true);
}

std::string choices_text(const SettingField& field, bool notes) {
  std::string text;
  for (const SettingChoice& choice : field.choices) {
    if (!text.empty()) text += " | ";
    text += choice.name;
    if (notes && !choice.note.empty()) text += " (" + choice.note + ")";
  }
  return text;
}

std::string value_text(const SettingField& field, const SettingValue& value) {
  switch (field.kind) {
    case SettingKind::boolean:
      return std::get<bool>(value) ? "true" : "false";
    case SettingKind::integer:
      return std::to_string(std::get<std::int64_t>(value));
    case SettingKind::number:
      return format_number(std::get<double>(value));
    case SettingKind::duration:
      return quote_toml(format_duration(std::get<std::int64_t>(value)));
    case SettingKind::bytes:
      return quote_toml(format_bytes(std::get<std::int64_t>(value)));
    case SettingKind::texts:
      return list_text(std::get<std::vector<std::string>>(value), quote_toml);
    case SettingKind::integers:
      return list_text(std::get<std::vector<std::int64_t>>(value),
                       [](std::int64_t item) { return std::to_string(item); });
    case SettingKind::choice:
      if (field.choice_by_number) {
        return quote_toml(field.choices.at(static_cast<std::size_t>(std::get<std::int64_t>(value))).name);
      }
      return quote_toml(std::get<std::string>(value));
    case SettingKind::text:
    case SettingKind::path:
      return quote_toml(std::get<std::string>(value));
    case SettingKind::table:
      return "";
  }
  return "";
}

std::string plain_text(const SettingField& field) {
  const SettingValue value = field.get();
  if (std::holds_alternative<std::monostate>(value)) return "none";
  if (const auto* text = std::get_if<std::string>(&value)) return text->empty() ? "none" : *text;
  if (field.kind == SettingKind::number) {
    std::string text = format_number(std::get<double>(value));
    if (text.ends_with(".0")) text.resize(text.size() - 2);
    return text;
  }
  const std::string text = value_text(field, value);
  return text.starts_with('"') ? text.substr(1, text.size() - 2) : text;
}

}  // namespace caftan
