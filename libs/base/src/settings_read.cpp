#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <system_error>

#include "caftan/base/internal/read_settings.hpp"
#include "caftan/base/settings_io.hpp"
#include "settings_limits.hpp"

namespace caftan {
namespace {

using Kind = SettingsNode::Kind;

/// Reads one value into one field; errors name the field.
class FieldReader {
 public:
  FieldReader(const SettingsNode& node, SettingField& field, const std::filesystem::path& base,
              Diagnostics& diagnostics)
      : node_(node), field_(field), base_(base), diagnostics_(diagnostics) {}

  void read() {
    switch (field_.kind) {
      case SettingKind::boolean:
        return node_.kind == Kind::boolean ? field_.set(std::get<bool>(node_.scalar)) : fail("true or false");
      case SettingKind::integer:
        if (node_.kind == Kind::integer) return read_integer(std::get<std::int64_t>(node_.scalar));
        return is_too_large_an_integer() ? fail_range() : fail("an integer");
      case SettingKind::number:
        return read_number();
      case SettingKind::duration:
        return read_with_unit(parse_duration, "ns, us, ms, s, min, h", "10s");
      case SettingKind::bytes:
        return read_with_unit(parse_bytes, "B, KiB, MiB, GiB, TiB", "64MiB");
      case SettingKind::choice:
        return read_choice();
      case SettingKind::text:
        return node_.kind == Kind::text ? field_.set(text()) : fail("a string");
      case SettingKind::path:
        return read_path();
      case SettingKind::texts:
        return read_list<std::string>(Kind::text, "a list of strings");
      case SettingKind::integers:
        return read_list<std::int64_t>(Kind::integer, "a list of integers");
      case SettingKind::table:
        return;
    }
  }

 private:
  const std::string& text() const { return std::get<std::string>(node_.scalar); }

  void fail(const std::string& wanted) {
    diagnostics_.error(node_.place, field_.name + " must be " + wanted + ", is " + node_.describe());
  }

  template <class T>
  bool in_range(T value, T SettingBound::*member) {
    const auto below = [&](const SettingBound& bound) {
      return value < bound.*member || (bound.open && value == bound.*member);
    };
    const auto above = [&](const SettingBound& bound) {
      return value > bound.*member || (bound.open && value == bound.*member);
    };
    const bool low = field_.lower && below(*field_.lower);
    const bool high = field_.upper && above(*field_.upper);
    if (!low && !high) return true;
    const bool implied = (low && field_.lower->implied) || (high && field_.upper->implied);
    diagnostics_.error(node_.place, field_.name + " must be " + condition_text(field_, implied) + ", is " + shown());
    return false;
  }

  /// Returns the value as the file has it.
  std::string shown() const {
    if (node_.kind == Kind::text) return text();
    if (node_.kind == Kind::integer) return std::to_string(std::get<std::int64_t>(node_.scalar));
    std::string number = format_number(std::get<double>(node_.scalar));
    if (number.ends_with(".0")) number.resize(number.size() - 2);
    return number;
  }

  void read_integer(std::int64_t value) {
    if (in_range(value, &SettingBound::integer)) field_.set(value);
  }

  void read_number() {
    double value = 0;
    if (node_.kind == Kind::number) {
      value = std::get<double>(node_.scalar);
    } else if (node_.kind == Kind::integer) {
      value = static_cast<double>(std::get<std::int64_t>(node_.scalar));
    } else if (const auto read = number_of_the_command_line()) {
      value = *read;
    } else {
      return fail("a number");
    }
    if (!std::isfinite(value)) {
      return diagnostics_.error(node_.place, field_.name + " must be a finite number, is " + shown());
    }
    if (in_range(value, &SettingBound::number)) field_.set(value);
  }

  void read_with_unit(Result<std::int64_t> (*parse)(std::string_view), const std::string& units,
                      const std::string& usual) {
    const std::string own = plain_text(field_);
    const std::string example = " such as " + quote_toml(own == "none" ? usual : own);
    if (node_.kind != Kind::text) return fail("a string with a unit" + example);
    const Result<std::int64_t> value = parse(text());
    if (!value && value.error().code() == Errc::limit_exceeded) return fail_range();
    if (!value) return fail("a string with a unit (" + units + ")" + example);
    read_integer(*value);
  }

  /// Returns whether the value is an integer of the command line that 64 bits do not hold: it is no TOML value, so the
  /// override was read as text. A value that is text for another reason (`.5`, `007`, quotes) stays text, as in a file.
  bool is_too_large_an_integer() const {
    if (node_.kind != Kind::text || node_.place.override_index < 0) return false;
    std::int64_t ignored = 0;
    const char* const end = text().data() + text().size();
    const auto [stopped, error] = std::from_chars(text().data(), end, ignored);
    return stopped == end && error == std::errc::result_out_of_range;
  }

  /// Returns the number of an override that was read as text because TOML has no number so large; infinity for one that
  /// no double holds.
  std::optional<double> number_of_the_command_line() const {
    if (node_.kind != Kind::text || node_.place.override_index < 0) return std::nullopt;
    double value = std::numeric_limits<double>::infinity();
    const char* const end = text().data() + text().size();
    const auto [stopped, error] = std::from_chars(text().data(), end, value);
    if (stopped != end || error == std::errc::invalid_argument) return std::nullopt;
    if (error == std::errc() && !is_too_large_an_integer()) return std::nullopt;
    return value;
  }

  /// Reports a value that has the right form and that no field could hold; the message always names a range.
  void fail_range() {
    using Limits = std::numeric_limits<std::int64_t>;
    const bool plain = field_.kind == SettingKind::integer;
    const std::int64_t unit = plain ? 1 : field_.kind == SettingKind::duration ? 3'600'000'000'000 : 1LL << 40;
    SettingField bounded = field_;
    if (!bounded.lower) bounded.lower = SettingBound{.integer = plain ? Limits::min() : 0};
    if (!bounded.upper) bounded.upper = SettingBound{.integer = Limits::max() - Limits::max() % unit};
    diagnostics_.error(node_.place, field_.name + " must be " + condition_text(bounded, true) + ", is " + shown());
  }

  void read_choice() {
    if (node_.kind != Kind::text) return fail("a string: " + choices_text(field_, false));
    const auto found = std::ranges::find(field_.choices, text(), &SettingChoice::name);
    if (found == field_.choices.end()) {
      std::vector<std::string> names;
      for (const SettingChoice& choice : field_.choices) names.push_back(choice.name);
      return diagnostics_.error(node_.place, field_.name + " must be " + choices_text(field_, false) + ", is " +
                                                 quote_toml(text()) + did_you_mean(text(), names));
    }
    if (field_.choice_by_number) return field_.set(static_cast<std::int64_t>(found - field_.choices.begin()));
    field_.set(text());
  }

  void read_path() {
    if (node_.kind != Kind::text) return fail("a string");
    if (text().empty()) return diagnostics_.error(node_.place, field_.name + " must not be empty");
    if (text().find('\0') != std::string::npos) {
      return diagnostics_.error(node_.place, field_.name + " must be a path, has a NUL character");
    }
    field_.set((base_ / text()).lexically_normal().string());
  }

  template <class T>
  void read_list(Kind kind, const std::string& wanted) {
    if (node_.kind != Kind::list) return fail(wanted);
    std::vector<T> values;
    for (const SettingsNode& item : node_.items) {
      if (item.kind != kind) {
        return diagnostics_.error(item.place, field_.name + " must be " + wanted + ", has " + item.describe());
      }
      values.push_back(std::get<T>(item.scalar));
    }
    field_.set(std::move(values));
  }

  const SettingsNode& node_;
  SettingField& field_;
  const std::filesystem::path& base_;
  Diagnostics& diagnostics_;
};

/// Takes the initial value of a path as if the file had it.
void resolve_initial(SettingField& field, const std::filesystem::path& base) {
  const SettingValue value = field.get();
  const auto* const text = std::get_if<std::string>(&value);
  if (text && !text->empty()) field.set((base / *text).lexically_normal().string());
}

void report_unknown(const SettingsEntry& entry, const std::vector<SettingField>& fields, const ReadSettings& options,
                    Diagnostics& diagnostics) {
  std::vector<std::string> names = options.other_keys;
  for (const SettingField& field : fields) names.push_back(field.name);
  std::string text = "unknown key '" + entry.key + "'";
  // A key from the command line contains the name of its table already.
  if (entry.key_place.override_index < 0 && !options.table.empty()) text += " in [" + options.table + "]";
  if (!options.owner.empty()) text += " (" + options.owner + ")";
  std::string hint;
  if (!options.help.empty()) {
    hint = "`" + options.help + "` lists its " + std::to_string(count_settings(fields)) + " keys";
  }
  diagnostics.error(entry.key_place, text + did_you_mean(entry.key, names), hint);
}

}  // namespace

void read_settings(const SettingsNode& table, std::vector<SettingField>& fields,  // NOLINT(misc-no-recursion)
                   const ReadSettings& options, Diagnostics& diagnostics) {
  for (const SettingsEntry& entry : table.entries) {
    const bool elsewhere = std::ranges::find(options.other_keys, entry.key) != options.other_keys.end();
    const bool known = std::ranges::find(fields, entry.key, &SettingField::name) != fields.end();
    if (!known && !elsewhere) report_unknown(entry, fields, options, diagnostics);
  }
  for (SettingField& field : fields) {
    const SettingsEntry* entry = table.find(field.name);
    if (field.kind == SettingKind::table) {
      if (entry && entry->value.kind != Kind::table) {
        diagnostics.error(entry->value.place, field.name + " must be a table, is " + entry->value.describe());
        continue;
      }
      ReadSettings inner = options;
      inner.table = options.table.empty() ? field.name : options.table + "." + field.name;
      inner.other_keys.clear();
      SettingsNode missing;
      missing.place = table.place;
      read_settings(entry ? entry->value : missing, field.fields, inner, diagnostics);
    } else if (entry) {
      FieldReader(entry->value, field, options.base, diagnostics).read();
    } else if (field.required) {
      std::string text = "missing key '" + field.name + "'";
      if (!options.table.empty()) text += " in [" + options.table + "]";
      if (!options.owner.empty()) text += " (" + options.owner + ")";
      diagnostics.error(table.place, text);
    } else if (field.kind == SettingKind::path) {
      resolve_initial(field, options.base);
    }
  }
}

}  // namespace caftan
